"""Nodes that the pods of each namespace keep by their own fields: opt-outs, finalizers, lists beyond the limits of
planning. Pods carry these, so the namespace names the owner."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leeward.blockers.blocker import Blocker, BlockerKind
from leeward.disruption.blocked_nodes import BLOCKED_LONG
from leeward.model.times import format_instant

BY_AUTHORS = frozenset(
    {
        BlockerKind.DO_NOT_DISRUPT,
        BlockerKind.SAFE_TO_EVICT,
        BlockerKind.DISRUPTION_WINDOW,
        BlockerKind.BEYOND_LIMITS,
        BlockerKind.POD_FINALIZER,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptByNamespace:
    """One namespace. `since`: the earliest moment that is known; `long`: nodes kept for longer than `BLOCKED_LONG`."""

    namespace: str
    pods: int
    nodes: tuple[str, ...]
    since: datetime | None
    long: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; `docs/schema/blockers.json` describes it."""
        return {
            "namespace": self.namespace,
            "pods": self.pods,
            "nodes": list(self.nodes),
            "since": format_instant(self.since) if self.since else None,
            "keptLong": list(self.long),
        }


def kept_by_namespace(blockers: Iterable[Blocker], now: datetime) -> tuple[KeptByNamespace, ...]:
    """Return the namespaces whose pods keep a node by their own fields, by name."""
    held: dict[str, list[Blocker]] = {}
    for blocker in blockers:
        if blocker.kind in BY_AUTHORS and blocker.pod is not None:
            held.setdefault(blocker.pod.partition("/")[0], []).append(blocker)
    return tuple(_kept(namespace, held[namespace], now) for namespace in sorted(held))


def _kept(namespace: str, held: list[Blocker], now: datetime) -> KeptByNamespace:
    return KeptByNamespace(
        namespace=namespace,
        pods=len({blocker.pod for blocker in held}),
        nodes=tuple(sorted({blocker.node for blocker in held})),
        since=min((blocker.since for blocker in held if blocker.since), default=None),
        long=tuple(sorted({one.node for one in held if one.since is not None and now - one.since > BLOCKED_LONG})),
    )
