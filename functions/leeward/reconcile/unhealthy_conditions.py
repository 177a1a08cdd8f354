"""Unhealthy conditions of a node, and since when: the evidence for a repair.

The API server judges the kubelet's silence (`Ready` is Unknown or False), EC2 a failed status check."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from leeward.model.node import Node
from leeward.policy.document import RepairPolicy
from leeward.reconcile.node_health import NodeHealth


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """Unhealthy condition. `since` None if its begin is unknown; `due`: when a repair may begin, None for never as
    things stand; `what` begins a sentence about the node.
    """

    what: str
    since: datetime | None
    due: datetime | None


def ailment(node: Node, rules: RepairPolicy, health: NodeHealth) -> Ailment | None:
    """Return the condition that is due first, or None for a healthy node."""
    found = [one for one in (_not_ready(node, rules), _impaired(node, rules, health)) if one is not None]
    return min(found, key=lambda one: (one.due is None, one.due or health.now), default=None)


def ails(node: Node, health: NodeHealth) -> bool:
    """Return whether the circuit breaker counts it: its instance runs, and it is NotReady or fails a check, however
    long.
    """
    return not health.gone(node) and (not node.ready or node.instance_id in health.impaired)


def spoken(span: timedelta) -> str:
    """Format a duration: `45 s`, `12 min`, `3 h 5 min`."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds} s"
    hours, minutes = divmod(seconds // 60, 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)


def _not_ready(node: Node, rules: RepairPolicy) -> Ailment | None:
    if node.ready:
        return None
    since = node.not_ready_since or node.created
    why = f" ({node.not_ready_why})" if node.not_ready_why else ""
    return Ailment(what=f"NotReady{why}", since=since, due=since + rules.not_ready_after)


def _impaired(node: Node, rules: RepairPolicy, health: NodeHealth) -> Ailment | None:
    found = health.impaired.get(node.instance_id)
    if found is None:
        return None
    due = found.since + rules.impaired_after if found.since else None
    return Ailment(what=f"impaired (EC2's {' and '.join(found.checks)} status check fails)", since=found.since, due=due)
