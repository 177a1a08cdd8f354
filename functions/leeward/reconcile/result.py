"""Result of one pass of the minute reconciler, and the boundary that keeps one failure from stopping the rest."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leeward.errors import LeewardError
from leeward.isolation import isolate_errors
from leeward.model.blocked import BlockedCause


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionNotice:
    """Something that lasts in a cluster: `what` in the words of the log. `group` empty: unknown, or the whole cluster;
    `causes`: of a blocked drain, each once.
    """

    cluster: str
    what: str
    group: str = ""
    causes: tuple[BlockedCause, ...] = ()

    def __str__(self) -> str:
        """Return `CLUSTER: what`, with the causes."""
        return f"{self.cluster}: {self.what}" + (f" ({', '.join(self.causes)})" if self.causes else "")


@dataclass(slots=True)
class ReconcileResult:
    """Fixes of one pass, by instance or node; `errors` names the objects that could not be handled.

    `repaired`: instances claimed because their nodes are unhealthy, `deleted`: because a person or a controller has
    deleted the Node, `evacuated`: because their zone is; `withdrawn`: instances whose maintenance AWS has taken back.
    `deferred`: instances whose maintenance waits for a budget. `foreign`: nodes that another deployment is terminating,
    with its id. `duplicates`: Nodes that share an instance. `blocked`: drains of which no pod moves, `pauses` those in
    force; `blocked_long`, `hooks_ending`, `pauses_forgotten`: what needs an operator. `shifted`: zonal shifts in
    effect; `shift_changes`: those that this pass saw begin or end.
    """

    restarted: list[str] = field(default_factory=list)
    claimed: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    untainted: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    labelled: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    finalizers_added: list[str] = field(default_factory=list)
    finalizers_removed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    evacuated: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    blocked: list[AttentionNotice] = field(default_factory=list)
    blocked_long: list[AttentionNotice] = field(default_factory=list)
    hooks_ending: list[AttentionNotice] = field(default_factory=list)
    pauses: list[AttentionNotice] = field(default_factory=list)
    pauses_forgotten: list[AttentionNotice] = field(default_factory=list)
    shifted: list[AttentionNotice] = field(default_factory=list)
    shift_changes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def note(self, what: str, error: LeewardError) -> None:
        """Add one failure."""
        self.errors.append(f"{what}: {type(error).__name__}: {error}")

    def isolate(self, what: str) -> AbstractContextManager[None]:
        """Add any failure raised inside the block, which is about this one object, so that the others are handled."""
        return isolate_errors(partial(self.note, what))

    def add(self, other: "ReconcileResult") -> None:
        """Add the result of another part of the same pass."""
        for name in self.__slots__:
            getattr(self, name).extend(getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        """Return the result as a document for the log."""
        return {name: list(map(str, getattr(self, name))) for name in self.__slots__}
