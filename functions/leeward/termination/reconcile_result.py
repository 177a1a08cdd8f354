"""What one sweep has found and mended, and the boundary that keeps one failure from stopping the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leeward.errors import LeewardError
from leeward.isolation import isolate_errors


@dataclass(slots=True)
class ReconcileResult:
    """What one sweep mended, by instance or node; `errors` names what it could not look at.

    `let_go`: Nodes that lost our finalizer, `held`: those that got it; `repaired`: instances claimed because their
    nodes are unhealthy, `deleted`: because somebody has deleted the Node. `foreign`: nodes that another
    deployment is terminating, with its id.
    """

    let_go: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    claimed: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    paced: list[str] = field(default_factory=list)
    labelled: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def note(self, what: str, error: LeewardError) -> None:
        """One thing that went wrong."""
        self.errors.append(f"{what}: {type(error).__name__}: {error}")

    def add(self, other: "ReconcileResult") -> None:
        """What another part of the same sweep has found."""
        for name in self.__slots__:
            getattr(self, name).extend(getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        """For the log."""
        return {name: getattr(self, name) for name in self.__slots__}


@contextmanager
def apart(what: str, found: ReconcileResult) -> Iterator[None]:
    """Note what goes wrong with one thing, whatever it is, so that the others are still looked at."""
    with isolate_errors(partial(found.note, what)):
        yield
