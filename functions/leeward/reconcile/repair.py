"""Scan for unhealthy nodes in the minute reconciler: claim those whose verdict requires it, once it is sure.

Sure means: observed in two passes, most of a minute apart and within ten, so that an API server that has just restarted
has heard the kubelets; and read once more past every cache, so that no stale answer ends anything. A node that fails a
check of EC2 is observed twice as well. A node whose instance is gone needs no second observation: nothing runs there.
"""

from collections.abc import Mapping
from datetime import timedelta

from leeward.cluster.facets import Known, known_or
from leeward.cluster.state import ClusterState
from leeward.model.impairment import Impairment
from leeward.model.node import Node
from leeward.model.termination import Cause, CauseKind, Status, TerminationRecord
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances
from leeward.ports.records import Claims
from leeward.reconcile.cluster_view import ClusterView
from leeward.reconcile.result import ReconcileResult, apart
from leeward.reconcile.unhealthy_nodes import Act, Verdict, verdicts
from leeward.termination.execution import start
from leeward.termination.subject import subject_of

SECOND_SIGHT = timedelta(minutes=10)
APART = timedelta(seconds=50)  # a schedule that fires twice is no second observation
RESTS = timedelta(hours=1)  # cooldown: a node that was returned to service is left to its owner for so long
EVENT = "UnhealthyNode"  # reason of the Event on the Node


def replace_unhealthy(view: ClusterView, nodes: Mapping[str, Node], ports: Ports, found: ReconcileResult) -> None:
    """Claim and start, one after the other: each repair that is begun counts for the guards of the next pass."""
    if view.policies.settings.paused or not any(_repairs(view)):
        return
    health = _check_up(view, nodes, ports.instances)
    for name, verdict in verdicts(health, ports.clock.now()).items():
        if verdict.act is Act.REPLACE:
            node = next(node for node in health.nodes if node.name == name)
            with apart(name, found):
                found.repaired += _replace(node, verdict, view, health, ports)


def _repairs(view: ClusterView) -> tuple[bool, ...]:
    found = (view.policy_of(group) for group in view.selected)
    return tuple(policy.repair.enabled for policy in found if policy is not None)


def _check_up(view: ClusterView, nodes: Mapping[str, Node], instances: Instances) -> ClusterState:
    """Build the health check. EC2 describes only the nodes in doubt and those whose checks fail."""
    impaired = {name: one for name, one in instances.impaired().items() if name in nodes}
    suspects = sorted({name for name, node in nodes.items() if name and not node.ready} | impaired.keys())
    return ClusterState(
        cluster=view.cluster,
        policies=view.policies,
        node_list=Known(tuple(nodes.values())),
        groups={group.name: group for group in view.groups},
        instances=instances.describe(suspects) if suspects else {},
        impaired=Known(impaired),
        claims=Known(frozenset(view.records)),
    )


def _replace(node: Node, verdict: Verdict, view: ClusterView, health: ClusterState, ports: Ports) -> list[str]:
    """Claim the instance and return it once it is claimed. The cause is named by the attempt before: repeated, it adds
    nothing, and a node that was returned to service is claimed again after its cooldown.
    """
    now, instance = ports.clock.now(), health.instance_of(node)
    if instance is None or not (verdict.gone or _sure(node, known_or(health.impaired, {}), view, ports)):
        return []
    record = ports.claims.read(instance.id)
    if record is not None and _rests(record, ports.clock):
        return []
    cause = Cause(
        id=f"unhealthy#{instance.id}#{record.attempt if record else 0}",
        kind=CauseKind.UNHEALTHY,
        at=now,
        reason=verdict.reason,
    )
    group = health.group_of(node)
    subject = subject_of(instance, view.cluster, group=group.name if group else None, node=node.name)
    record = ports.claims.claim(subject, cause, now)
    if record.status is Status.CLOSED:
        return []
    start(record, ports)
    message = f"Leeward will {'remove' if verdict.gone else 'replace'} this node: {verdict.reason}"
    ports.clusters.kubernetes(view.cluster).event(node, reason=EVENT, message=message, warning=True, now=now)
    return [instance.id]


def _sure(node: Node, impaired: Mapping[str, Impairment], view: ClusterView, ports: Ports) -> bool:
    """Return whether the node is unhealthy at the second observation, and after a read that no cache answers: the same
    node, still unhealthy since then.
    """
    if not _seen_before(node, ports.clock, ports.claims):
        return False
    fresh = ports.clusters.kubernetes(view.cluster).node(node.name)
    if fresh is None or fresh.uid != node.uid or fresh.deleting:
        return False
    unchanged = (fresh.ready, fresh.not_ready_since) == (node.ready, node.not_ready_since)
    return unchanged or node.instance_id in impaired


def _seen_before(node: Node, clock: Clock, claims: Claims) -> bool:
    """Return whether a different pass has observed it before. The second entry lasts for as long as the first
    observation is too fresh.
    """
    now, fresh = clock.now(), f"unhealthy-fresh#{node.uid}"
    if claims.once(f"unhealthy#{node.uid}", SECOND_SIGHT, now):
        claims.once(fresh, APART, now)
        return False
    return claims.once(fresh, timedelta(), now)


def _rests(record: TerminationRecord, clock: Clock) -> bool:
    """Return whether its termination is under way, or has ended too recently to be begun again."""
    ended = record.times.get("closed")
    return record.status is Status.OPEN or (ended is not None and clock.now() - ended < RESTS)
