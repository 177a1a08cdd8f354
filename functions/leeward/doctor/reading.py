"""Reading one thing: what it gives, or why it could not be read. Nothing that fails stops anything else."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from leeward.doctor.facts import Read, Unread
from leeward.errors import AccessDeniedError, LeewardError

T = TypeVar("T")


def read(permission: str, look: Callable[[], T]) -> Read[T]:
    """`permission` is what the look takes, as whoever lacks it would have to write it into a policy or a role."""
    try:
        return look()
    except LeewardError as error:
        return Unread(permission=permission, why=_sentence(error), denied=isinstance(error, AccessDeniedError))


def read_each(names: Iterable[str], permission: str, look: Callable[[str], T]) -> dict[str, Read[T]]:
    """The same of several, by name."""

    def at(name: str) -> Read[T]:
        return read(permission, lambda: look(name))

    return {name: at(name) for name in names}


def _sentence(error: LeewardError) -> str:
    """One line: what AWS says may have several."""
    return " ".join(f"it could not be read: {error}".split())
