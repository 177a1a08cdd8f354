"""Repair of unhealthy nodes: claim those whose verdict requires it, once it is sure (docs/features.md, X15).

Sure means: observed in two passes, most of a minute apart and within ten, so that an API server that has just restarted
has heard the kubelets; and read once more past every cache, so that no stale answer ends anything. A node that fails a
check of EC2 is observed twice as well. A node whose instance is gone needs no second observation: nothing runs there.

A repair waits until a condition has lasted, so a writer that renews its `lastTransitionTime` would put it off without
an end: the first sight of a condition, and of other controllers' taints, is noted on each Node that has them. A
condition that is healthy at one pass begins again."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from leeward.cluster.facets import Known, known_or
from leeward.cluster.state import ClusterState
from leeward.errors import ObjectGoneError
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.node import Node
from leeward.model.node_condition import READY, NodeCondition, noted
from leeward.model.node_owners import FOREIGN_TAINTS, taint_since
from leeward.model.nodegroup import NodeRepair
from leeward.model.termination import (
    MOST_A_DAY,
    Cause,
    CauseKind,
    Reboot,
    RebootBy,
    Status,
    TerminationRecord,
    reboots_of_a_day,
)
from leeward.model.well_known import FIRST_SEEN
from leeward.policy.repair import RepairPolicy, rule_for
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Catalog
from leeward.reconcile.result import ReconcileResult
from leeward.reconcile.second_observation import seen_before
from leeward.reconcile.unhealthy_nodes import Act, CircuitBreaker, RepairVerdict, is_unhealthy, rules_of, verdicts
from leeward.termination.requests import start, subject_of

JOINS_WITHIN = timedelta(minutes=10)  # a new Node is NotReady at first: no write for each of them
MOST_WRITES = 100  # in a pass; in a large outage the others follow in the next passes
COOLDOWN = timedelta(hours=1)  # a node that was returned to service is left to its owner for so long
EVENT = "UnhealthyNode"  # reason of the Event on the Node


def note_first_seen(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Write the annotation of each node of the selected groups where it changes. Idempotent: earlier moments stay."""
    now, kubernetes = ports.clock.now(), ports.clusters.kubernetes(state.cluster)
    state = _with_overrides(state, ports.catalog)
    changes = ((node, noted(node, _lasting(node, state, now), now)) for node in state.nodes if _stays(node, state))
    written = [(node, note) for node, note in changes if note != node.annotations.get(FIRST_SEEN)]
    for node, note in written[:MOST_WRITES]:
        with result.isolate(node.name), suppress(ObjectGoneError):
            kubernetes.annotate(node, {FIRST_SEEN: note})


def _with_overrides(state: ClusterState, catalog: Catalog) -> ClusterState:
    """Load EKS' repair overrides where a policy imports them: they name further conditions."""
    policies = {group.name: state.policy_of(group) for group in state.selected if group.nodegroup is not None}
    if any(policy is not None and policy.repair.imports_from_eks for policy in policies.values()):
        return replace(state, node_repair=Known(catalog.node_repair(state.cluster)))
    return state


def _stays(node: Node, state: ClusterState) -> bool:
    """Return whether the node is one that Leeward looks after, and that nothing is ending."""
    group = state.group_of(node)
    if group is None or state.policy_of(group) is None or state.policies.pauses.everything(group.name):
        return False
    ends = node.deleting or node.tainted or node.instance_id in state.claimed or state.is_superseded(node)
    return not ends and group.lifecycle_of(node.instance_id) == IN_SERVICE


def _lasting(node: Node, state: ClusterState, now: datetime) -> Iterator[str]:
    """Yield the types of the unhealthy conditions, and the taints that carry no time of their own."""
    group, policy = state.group_of(node), state.policy_of_node(node)
    if policy is not None and policy.repair.enabled:
        rules = rules_of(policy, group, state).conditions
        yield from (condition.type for condition in node.monitored if rule_for(condition, rules))
        if not node.ready and now - node.created > JOINS_WITHIN:
            yield READY
    if foreign := [taint for taint in node.taints if taint.key in FOREIGN_TAINTS]:
        bare = replace(node, annotations={})
        yield from (taint.key for taint in foreign if taint_since(bare, taint, now) is None)


def replace_unhealthy(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Claim and start, one after the other: each repair that is begun counts for the guards of the next pass."""
    if state.policies.pauses.voluntary() or not _repairs_any(state):
        return
    state = _with_health(state, ports, recent=True)
    judged = verdicts(state, ports.clock.now())
    for node in sorted(state.nodes, key=lambda node: node.name):
        verdict = judged[node.name]
        if verdict.acts:
            with result.isolate(node.name):
                result.repaired += _repair(node, verdict, state, ports)


def reason_to_wait(node: Node, cluster: str, ports: Ports) -> str:
    """Return why the repair of the node has to wait now, as its verdict would say, empty if it need not: a reboot asks
    again after its drain. Reads the whole cluster.
    """
    state = _read(cluster, ports)
    policy = state.policy_of_node(node)
    rules = rules_of(policy, state.group_of(node), state) if policy is not None else RepairPolicy()
    return state.why_shifted(state.zone_of(node)) or CircuitBreaker.of(state).reason_to_wait(node, rules, state)


def is_healthy_now(node: Node, cluster: str, ports: Ports) -> bool:
    """Return whether nothing would be repaired at the node any more. Reads the whole cluster."""
    return not is_unhealthy(node, _read(cluster, ports))


def _read(cluster: str, ports: Ports) -> ClusterState:
    groups = {group.name: group for group in ports.groups.of_clusters([cluster])}
    nodes = Known(tuple(ports.clusters.kubernetes(cluster).nodes()))
    policies = ports.clusters.policies(cluster)
    shifts = Known(ports.catalog.zonal_shifts(cluster))
    state = ClusterState(cluster=cluster, policies=policies, groups=groups, node_list=nodes, shifts=shifts)
    return _with_health(state, ports)


def _repairs_any(state: ClusterState) -> bool:
    policies = (state.policy_of(group) for group in state.selected)
    return any(policy.repair.enabled for policy in policies if policy is not None)


def _with_health(state: ClusterState, ports: Ports, *, recent: bool = False) -> ClusterState:
    """Load what EC2 says of the nodes, and EKS of the managed groups. EC2 describes only the nodes in doubt.

    `recent`: while every node is well, an empty answer about status checks of the last minutes is good enough. A check
    that begins to fail is read within three minutes, and each minute from then on: EC2 says since when it fails, so a
    repair after `impairedAfter` of 2 minutes begins no later than with a look each minute. Wherever a node is
    unhealthy, the guards count the checks of the present minute.
    """
    instances = ports.instances
    repair: Mapping[str, NodeRepair] = {}
    if any(group.nodegroup is not None for group in state.selected):
        repair = ports.catalog.node_repair(state.cluster)
    state = replace(state, node_repair=Known(repair))
    well = not any(is_unhealthy(node, state) for node in state.nodes)
    failing = instances.impaired(recent=recent and well)
    impaired = {name: one for name, one in failing.items() if state.node_of(name) is not None}
    state = replace(state, impaired=Known(impaired))
    suspects = sorted({node.instance_id for node in state.nodes if node.instance_id and is_unhealthy(node, state)})
    return replace(state, instances=instances.describe(suspects) if suspects else {})


def _repair(node: Node, verdict: RepairVerdict, state: ClusterState, ports: Ports) -> list[str]:
    """Claim the instance and return it once it is claimed. The cause is named by the attempt before: repeated, it adds
    nothing, and a node that was returned to service is claimed again after its cooldown.
    """
    now, instance = ports.clock.now(), state.instance_of(node)
    if instance is None or not (verdict.gone or _sure(node, verdict, state, ports)):
        return []
    record = ports.claims.read(instance.id)
    if record is not None and _cools_down(record, ports.clock):
        return []
    reboot, reason = _reboot(verdict, record, now), verdict.reason
    if verdict.act is Act.REBOOT and reboot is None:
        reason = f"{reason}, and it was rebooted {MOST_A_DAY} times within a day"
    cause = Cause(
        id=f"unhealthy#{instance.id}#{record.attempt if record else 0}",
        kind=CauseKind.UNHEALTHY,
        at=now,
        reason=reason,
        reboot=reboot,
    )
    group = state.group_of(node)
    subject = subject_of(instance, state.cluster, group=group.name if group else None, node=node.name)
    record = ports.claims.claim(subject, cause, now)
    if record.status is Status.CLOSED:
        return []
    start(record, ports)
    response = "reboot" if reboot else "remove" if verdict.gone else "replace"
    message = f"Leeward will {response} this node: {reason}"
    ports.clusters.kubernetes(state.cluster).event(node, reason=EVENT, message=message, warning=True, now=now)
    return [instance.id]


def _reboot(verdict: RepairVerdict, record: TerminationRecord | None, now: datetime) -> Reboot | None:
    """Return the reboot to ask for; None for a replacement, and for a node that was rebooted too often for another."""
    if verdict.act is not Act.REBOOT or verdict.condition is None:
        return None
    if record is not None and reboots_of_a_day(record.reboots.values(), now) >= MOST_A_DAY:
        return None
    return Reboot(by=RebootBy.LEEWARD, condition=verdict.condition.type, status=verdict.condition.status)


def _sure(node: Node, verdict: RepairVerdict, state: ClusterState, ports: Ports) -> bool:
    """Return whether the node is unhealthy at the second observation, and after a read that no cache answers: the same
    node, still unhealthy since then.
    """
    if not seen_before(f"unhealthy#{node.uid}", ports.clock, ports.claims):
        return False
    fresh = ports.clusters.kubernetes(state.cluster).node(node.name)
    if fresh is None or fresh.uid != node.uid or fresh.deleting:
        return False
    if verdict.condition is not None:
        return _lasts(verdict.condition, fresh, state)
    unchanged = (fresh.ready, fresh.not_ready_since) == (node.ready, node.not_ready_since)
    return unchanged or node.instance_id in known_or(state.impaired, {})


def _lasts(condition: NodeCondition, fresh: Node, state: ClusterState) -> bool:
    """Return whether the Node still has the condition, by the same rule: its time and reason may have been renewed."""
    policy = state.policy_of_node(fresh)
    if policy is None:
        return False
    rules = rules_of(policy, state.group_of(fresh), state).conditions
    same = (known for known in fresh.monitored if (known.type, known.status) == (condition.type, condition.status))
    return any(rule_for(known, rules) == rule_for(condition, rules) for known in same)


def _cools_down(record: TerminationRecord, clock: Clock) -> bool:
    """Return whether its termination is under way, or has ended too recently to be begun again."""
    ended = record.times.get("closed")
    return record.status is Status.OPEN or (ended is not None and clock.now() - ended < COOLDOWN)
