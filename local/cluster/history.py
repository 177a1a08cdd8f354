"""Record of facts, for later proof: evicted pods, refused evictions, added and removed pods and nodes.

It records the actions of the cluster, not the requests of its clients; nothing in the model reads it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .timers import ModelTime
from .timestamps import rfc3339_micro


class FactKind(StrEnum):
    """Closed set of facts."""

    EVICTION_ACCEPTED = "eviction-accepted"
    EVICTION_REFUSED = "eviction-refused"
    POD_STARTED = "pod-started"
    POD_READY = "pod-ready"
    POD_NOT_READY = "pod-notready"
    POD_DELETION_STARTED = "pod-deletion-started"
    POD_DELETED = "pod-deleted"
    NODE_CREATED = "node-created"
    NODE_READY = "node-ready"
    NODE_NOT_READY = "node-notready"
    NODE_CORDONED = "node-cordoned"
    NODE_UNCORDONED = "node-uncordoned"
    NODE_TAINTED = "node-tainted"
    NODE_UNTAINTED = "node-untainted"
    NODE_DELETION_STARTED = "node-deletion-started"
    NODE_DELETED = "node-deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Fact of the history; `at` in seconds since 1970, `about` the object's path name."""

    at: float
    kind: FactKind
    about: str
    detail: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"at": rfc3339_micro(self.at), "kind": self.kind.value, "object": self.about, **self.detail}


class Cause(StrEnum):
    """Cause of the loss of a healthy pod."""

    EVICTION = "eviction"
    DELETE = "delete"
    NODE_LOSS = "node-loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class PdbViolation:
    """Budget that was satisfied before a disruption and is not after it."""

    at: float
    pdb: str
    pod: str
    cause: Cause
    healthy: int
    desired: int

    def as_json(self) -> dict[str, Any]:
        return {
            "at": rfc3339_micro(self.at),
            "pdb": self.pdb,
            "pod": self.pod,
            "cause": self.cause.value,
            "currentHealthy": self.healthy,
            "desiredHealthy": self.desired,
        }


class History:
    """Bounded history; the oldest facts are dropped first."""

    def __init__(self, time: ModelTime, *, limit: int = 200_000) -> None:
        self._time = time
        self._facts: deque[Fact] = deque(maxlen=limit)
        self._losses: deque[PdbViolation] = deque(maxlen=limit)
        self._violations: list[PdbViolation] = []

    def add(self, kind: FactKind, about: str, **detail: Any) -> None:
        """Add a fact; details that are None are omitted."""
        kept = {key: value for key, value in detail.items() if value is not None}
        self._facts.append(Fact(at=self._time.now(), kind=kind, about=about, detail=kept))

    def add_violation(self, *, pdb: str, pod: str, cause: Cause, healthy: int, desired: int) -> None:
        violation = PdbViolation(at=self._time.now(), pdb=pdb, pod=pod, cause=cause, healthy=healthy, desired=desired)
        (self._losses if cause is Cause.NODE_LOSS else self._violations).append(violation)

    def facts(self, kind: FactKind | None = None) -> list[Fact]:
        return [fact for fact in self._facts if kind is None or fact.kind is kind]

    def violations(self, *, node_loss: bool = False) -> Sequence[PdbViolation]:
        """Return the violations by eviction or delete, of which none is dropped; with `node_loss` also those by a
        failing node.
        """
        if not node_loss:
            return self._violations
        return sorted([*self._violations, *self._losses], key=lambda violation: violation.at)
