"""Read of one object: its value, or why it could not be read. A failure stops no other read."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from leeward.doctor.facts import Read, Unread
from leeward.errors import AccessDeniedError, LeewardError

T = TypeVar("T")


def read(permission: str, look: Callable[[], T]) -> Read[T]:
    """Read one object. `permission` names what the read takes, as a policy or a role would have to grant it."""
    try:
        return look()
    except LeewardError as error:
        return Unread(permission=permission, why=_sentence(error), denied=isinstance(error, AccessDeniedError))


def read_each(names: Iterable[str], permission: str, look: Callable[[str], T]) -> dict[str, Read[T]]:
    """Read several objects, by name."""

    def at(name: str) -> Read[T]:
        return read(permission, lambda: look(name))

    return {name: at(name) for name in names}


def _sentence(error: LeewardError) -> str:
    """Return one line: AWS's message may have several."""
    return " ".join(f"it could not be read: {error}".split())
