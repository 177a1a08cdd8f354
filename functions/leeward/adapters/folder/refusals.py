"""Refusal of everything that a snapshot folder cannot answer or do."""

from typing import Any, NoReturn

from leeward.errors import NotInSnapshotError


class Refusing:
    """Port whose methods raise NotInSnapshotError, except those that a subclass has. `holds`: what a folder lacks."""

    holds = "it is a cluster's state at one moment"

    def __getattr__(self, name: str) -> Any:
        """Return a method that raises NotInSnapshotError; private and special names are no methods of a port."""
        if name.startswith("_"):
            raise AttributeError(name)

        def refuse(*_: object, **__: object) -> NoReturn:
            raise NotInSnapshotError(
                f"--snapshot: found a command that needs {type(self).__name__}.{name}, which no folder can answer "
                f"({self.holds}), expected --cluster NAME"
            )

        return refuse


class NotInFolder(Refusing):
    """Stand-in for a port that a folder has nothing of."""

    def __init__(self, holds: str) -> None:
        self.holds = holds
