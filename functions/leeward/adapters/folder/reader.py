"""Snapshot folder: raw elements of its files, each file read and checked once, when it is first asked for.

Decides what a missing file means (no elements), which policies stand in the folder, and how a port refuses what no
folder can answer or do; `files.py` opens the files."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from leeward.adapters.folder.files import FILES, POLICY_FILE, read_elements
from leeward.adapters.folder.policy_files import read_documents
from leeward.errors import InvalidInputError, NotInSnapshotError
from leeward.policy.document import ClusterPolicies
from leeward.policy.parse import parse_documents


class Folder:
    """Folder of one cluster. `cluster`: whose settings policy.yaml may hold, of any cluster if it is empty."""

    def __init__(self, directory: str | Path, cluster: str = "") -> None:
        """Raise InvalidInputError for a folder that does not exist."""
        self.directory, self.cluster = Path(directory), cluster
        if not self.directory.is_dir():
            raise InvalidInputError(
                f"{self.directory}: found no such folder, expected a folder with nodes.json, pods.json …"
            )
        self._read: dict[str, Sequence[Mapping[str, Any]]] = {}

    def path(self, name: str) -> Path:
        """Return the path of NAME.json, whether it exists or not."""
        return self.directory / f"{name}.json"

    def has(self, name: str) -> bool:
        """Return whether the folder holds NAME.json."""
        return self.path(name).is_file()

    def elements(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the elements of NAME.json, keys with null left out; none where the file is missing. Raises
        InvalidInputError naming file, path, found and expected.
        """
        if name not in self._read:
            self._read[name] = read_elements(self.directory, FILES[name])
        return self._read[name]

    @property
    def has_policies(self) -> bool:
        """True where there is a policy.yaml."""
        return (self.directory / POLICY_FILE).exists()

    @cached_property
    def policies(self) -> ClusterPolicies:
        """Policies of policy.yaml, none without that file. Raises InvalidPolicyError."""
        documents = read_documents(self.directory / POLICY_FILE) if self.has_policies else []
        return parse_documents(documents, cluster=self.cluster)


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
