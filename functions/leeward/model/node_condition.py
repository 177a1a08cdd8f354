"""Conditions of a Node beside `Ready`, as the kubelet and the EKS node monitoring agent write them, and the first sight
of what lasts without a time to be trusted, kept in an annotation by the minute reconciler.

The `lastTransitionTime` of a condition is its writer's, and an agent may rewrite it while the status stays the same. A
taint without a value and without `timeAdded` has no time at all. An entry is `NAME=FIRST/LAST`. After a time without a
look, because the API server or the reconciler was away, the condition is not known to have lasted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from leeward.model.node import Node
from leeward.model.raw_fields import instant, text
from leeward.model.times import format_instant
from leeward.model.well_known import FIRST_SEEN

READY = "Ready"
PRESSURES = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure"})  # the kubelet's own, False on a healthy node
RENEWED = timedelta(minutes=5)  # one write in so long for each node that has anything to note
LOST_AFTER = timedelta(minutes=15)  # without a look
Sight = tuple[datetime, datetime]  # first, last


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCondition:
    """Condition of a Node. `status`: True, False or Unknown; `since`: its last transition, the Node's creation if the
    condition has none.
    """

    type: str
    status: str
    reason: str
    since: datetime


def monitored(conditions: Iterable[Mapping[str, Any]], created: datetime) -> tuple[NodeCondition, ...]:
    """Parse `status.conditions` without `Ready`, which the Node has in fields of its own, and without the kubelet's
    pressures while they are False: thousands of healthy Nodes are kept in memory.
    """
    return tuple(
        NodeCondition(
            type=kind,
            status=text(raw.get("status")),
            reason=text(raw.get("reason")),
            since=instant(raw.get("lastTransitionTime")) or created,
        )
        for raw in conditions
        if (kind := text(raw.get("type"))) not in {"", READY}
        if kind not in PRESSURES or raw.get("status") != "False"
    )


def first_seen(node: Node, now: datetime) -> Mapping[str, datetime]:
    """Return since when each condition (by its type) and taint (by its key) has been seen without a gap."""
    return {key: first for key, (first, last) in _sights(node).items() if now - last <= LOST_AFTER}


def noted(node: Node, lasting: Iterable[str], now: datetime) -> str | None:
    """Return the annotation that the node should have: first moments stay, what lasts no more is left out; None where
    nothing lasts.
    """
    known = _sights(node)
    entries = (f"{key}={_text(known.get(key), now)}" for key in sorted(set(lasting)))
    return ",".join(entries) or None


def _sights(node: Node) -> Mapping[str, Sight]:
    sights: dict[str, Sight] = {}
    for entry in node.annotations.get(FIRST_SEEN, "").split(","):
        key, _, moments = entry.rpartition("=")
        first, last = (instant(text) for text in (*moments.split("/", 1), "")[:2])
        if key and first is not None and last is not None:
            sights[key] = first, last
    return sights


def _text(sight: Sight | None, now: datetime) -> str:
    first, last = sight or (now, now)
    if now - last > LOST_AFTER:
        first = now
    return f"{format_instant(first)}/{format_instant(now if now - last >= RENEWED else last)}"
