"""Read of one object: its value, or why it is unavailable. A failure stops no other read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, TypeVar

from leeward.errors import AccessDeniedError, InvalidPolicyError, LeewardError

T = TypeVar("T")


class ErrorCause(Enum):
    """Cause for which an object is unavailable."""

    DENIED = auto()  # the permission is missing
    FAILED = auto()
    INVALID = auto()  # it was read, and cannot be parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadFact:
    """Object that could not be read. `permission`: what the read takes; `reason`: a sentence."""

    permission: str
    reason: str
    cause: ErrorCause = ErrorCause.DENIED


Read: TypeAlias = T | UnreadFact


def read(permission: str, look: Callable[[], T]) -> Read[T]:
    """Read one object. `permission` names what the read takes, as a policy or a role would have to grant it."""
    try:
        return look()
    except InvalidPolicyError as error:
        reason = "; ".join(str(error).splitlines())
        return UnreadFact(permission=permission, reason=reason, cause=ErrorCause.INVALID)
    except LeewardError as error:
        cause = ErrorCause.DENIED if isinstance(error, AccessDeniedError) else ErrorCause.FAILED
        return UnreadFact(permission=permission, reason=_sentence(error), cause=cause)


def read_each(names: Iterable[str], permission: str, look: Callable[[str], T]) -> dict[str, Read[T]]:
    """Read several objects, by name."""

    def at(name: str) -> Read[T]:
        return read(permission, lambda: look(name))

    return {name: at(name) for name in names}


def _sentence(error: LeewardError) -> str:
    """Return one line: AWS's message may have several."""
    return " ".join(f"it could not be read: {error}".split())
