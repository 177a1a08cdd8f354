"""Users that send requests."""

from __future__ import annotations

from dataclasses import dataclass

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    groups: tuple[str, ...]

    @property
    def is_master(self) -> bool:
        """True for members of system:masters, who may do everything, whatever the roles say."""
        return MASTERS in self.groups


ANONYMOUS = User(name="system:anonymous", groups=(UNAUTHENTICATED,))
