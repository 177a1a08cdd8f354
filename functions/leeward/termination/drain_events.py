"""Events of a drain on its Node: what it waits for, what blocks it, and that it has given up.

A drain that has given up is reported by PodEvictionFailure alone: "cannot drain yet" would be false from then on."""

from datetime import datetime, timedelta

from leeward.model.node import Node
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes
from leeward.termination.progress import Progress, moved_last
from leeward.termination.situation import Situation
from leeward.termination.target_deregistration import Awaited

DEREGISTERING, DETACHING = "AwaitingDeregistration", "AwaitingVolumeDetachment"  # reasons of Events
BLOCKED, GAVE_UP = "DrainBlocked", "PodEvictionFailure"
BLOCKED_AFTER = timedelta(seconds=30)  # without a pod that moved: until then a drain is only waiting for its turn
LONGEST = 1000


def report_awaited(awaited: Awaited, reason: str, node: Node, situation: Situation, ports: Ports) -> str:
    """Record the awaited objects where people look, and return them as one sentence."""
    record, why = situation.record, "; ".join(awaited.sentences)
    ports.claims.note_attempt(record.instance, record.attempt, blocked_by=awaited.sentences)
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    kubernetes.event(node, reason=reason, message=why[:LONGEST], warning=False, now=ports.clock.now())
    return why


def report_blocked(
    node: Node,
    situation: Situation,
    started: datetime,
    why: str,
    progress: Progress,
    kubernetes: Kubernetes,
    now: datetime,
) -> None:
    """Report what blocks a drain that continues, once no pod has moved for a while."""
    if progress.blocked_by and not progress.moved and now >= moved_last(situation.record, started) + BLOCKED_AFTER:
        message = f"cannot drain yet: {why}"[:LONGEST]
        kubernetes.event(node, reason=BLOCKED, message=message, warning=True, now=now)


def report_given_up(node: Node, message: str, kubernetes: Kubernetes, now: datetime) -> None:
    """Report that the time of the drain has passed and that pods are left."""
    kubernetes.event(node, reason=GAVE_UP, message=message[:LONGEST], warning=True, now=now)
