"""Verdicts on unhealthy nodes: those that are replaced, and one sentence for each that is not.

Doubtful evidence ends nothing: an API server that does not answer yields no health check at all, and a repair requires
two observations, the second past every cache (`leeward.repair.scan`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from leeward.disruption.do_not_disrupt import why_node_stays
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.model.node_owners import disruption_taint_of, foreign
from leeward.policy.document import NodePolicy
from leeward.repair.circuit_breaker import Storms
from leeward.repair.node_health import NodeHealth
from leeward.repair.unhealthy_conditions import Ailment, ailment, spoken

IN_SERVICE = "InService"
LEFT_BEHIND = timedelta(minutes=5)  # the cloud controller removes Nodes of dead instances, usually within a minute


class Act(StrEnum):
    """Actions on a node."""

    REPLACE = "replace"
    WAIT = "wait"  # until `until`, or until the next observation
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on one node. `until`: when a wait is over, None if only another read can show; `gone`: nothing but the
    Node object is left.
    """

    act: Act
    reason: str
    until: datetime | None = None
    gone: bool = False


def verdicts(health: NodeHealth) -> Mapping[str, Verdict]:
    """Return one verdict for every node, by name."""
    storms = Storms.of(health)
    return {node.name: _verdict(node, health, storms) for node in sorted(health.nodes, key=lambda node: node.name)}


def _verdict(node: Node, health: NodeHealth, storms: Storms) -> Verdict:
    group = health.group_of(node)
    policy = health.policy_of(group)
    others = next(_why_not_ours(node, group, policy), "")
    if others or group is None or policy is None:
        return Verdict(act=Act.LEFT, reason=others)
    left = next(_why_left(node, policy, health), "")
    if left:
        return Verdict(act=Act.LEFT, reason=left)
    if health.gone(node):
        return _gone(node, health)
    kept = next(_why_kept(node, group, health), "")
    if kept:
        return Verdict(act=Act.LEFT, reason=kept)
    found = ailment(node, policy.repair, health)
    if found is None:
        return Verdict(act=Act.LEFT, reason="it is Ready and passes EC2's status checks")
    return _timed(found, health) or _guarded(node, policy, found, health, storms)


def _why_not_ours(node: Node, group: Group | None, policy: NodePolicy | None) -> Iterator[str]:
    if others := foreign(node):
        yield others
    if group is None:
        yield "no Auto Scaling group of the cluster holds its instance"
    elif policy is None:
        yield f"no policy selects its group {group.name}"


def _why_left(node: Node, policy: NodePolicy, health: NodeHealth) -> Iterator[str]:
    if health.policies.settings.paused:
        yield "the cluster is paused"
    if not policy.repair.enabled:
        yield f"policy {policy.name} says repair.enabled: false"
    if node.instance_id in health.claimed:
        yield "a termination of it is under way"
    if node.deleting:
        yield "its Node object is being deleted"


def _why_kept(node: Node, group: Group, health: NodeHealth) -> Iterator[str]:
    """Yield the reasons to keep the node: another controller is ending it, or its owner keeps it."""
    if taint := disruption_taint_of(node):
        yield f"it is terminating already (taint {taint})"
    lifecycle = group.lifecycle_of(node.instance_id) or "nothing of it"
    if lifecycle != IN_SERVICE:
        yield f"its group {group.name} says {lifecycle}"
    instance = health.instance_of(node)
    if instance is not None and instance.state != "running":
        yield f"EC2 says its instance is {instance.state}"
    if stays := why_node_stays(node):
        yield stays


def _gone(node: Node, health: NodeHealth) -> Verdict:
    instance = health.instance_of(node)
    said = f"EC2 says its instance is {instance.state if instance else 'gone'}"
    if node.ready:
        return Verdict(act=Act.WAIT, reason=f"{said}, its kubelet still reports", gone=True)
    due = (node.not_ready_since or node.created) + LEFT_BEHIND
    if health.now < due:
        reason = f"{said}: the cloud controller is about to remove its Node"
        return Verdict(act=Act.WAIT, reason=reason, until=due, gone=True)
    return Verdict(act=Act.REPLACE, reason=f"{said}: only its Node is left", gone=True)


def _timed(found: Ailment, health: NodeHealth) -> Verdict | None:
    """Return the verdict to wait, or None once the condition has lasted long enough."""
    if found.due is None or found.since is None:
        return Verdict(act=Act.WAIT, reason=f"{found.what}, since when is not told")
    if health.now < found.due:
        lasted, wanted = spoken(health.now - found.since), spoken(found.due - found.since)
        return Verdict(act=Act.WAIT, reason=f"{found.what} for {lasted} of {wanted}", until=found.due)
    return None


def _guarded(node: Node, policy: NodePolicy, found: Ailment, health: NodeHealth, storms: Storms) -> Verdict:
    lasted = spoken(health.now - (found.since or health.now))
    held = storms.why_not(node, policy.repair, health)
    if held:
        return Verdict(act=Act.LEFT, reason=f"{found.what} for {lasted}, but {held}")
    return Verdict(act=Act.REPLACE, reason=f"{found.what} for {lasted}")
