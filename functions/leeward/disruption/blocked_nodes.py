"""Nodes that are not disrupted: Events with the reason why no method selects them (docs/features.md, K3, K11), and
those that pods have kept for long.

Events are rate-limited without stored state: each decision covers some of the nodes, chosen by their names and the
time, so that each node gets an Event about once in a quarter of an hour, in large clusters once in an hour or two.

A node counts as blocked for long once its policy has wanted it gone (expired, drifted and replaceable) or a pod's grace
has been over for `BLOCKED_LONG`, while one of its pods opts out of disruption, is beyond the limits of planning, or is
held by a finalizer. Budgets are left out: `leeward blockers` shows them, and they usually pass."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from zlib import crc32

from leeward.budgets.disruption_budgets import never_allows
from leeward.disruption.candidates import expires
from leeward.disruption.command import DisruptionPlan, MethodName
from leeward.disruption.do_not_disrupt import OptOut, pod_opt_outs
from leeward.disruption.methods import consolidation
from leeward.disruption.methods.expiration import why_kept_forever
from leeward.disruption.planning_state import PlanningState
from leeward.drift.detect import Remedy
from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors, reraise
from leeward.model.group import Group
from leeward.model.lifecycle import ENDING, IN_WORK, role_of
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.well_known import DISRUPTION_WINDOW
from leeward.policy.document import DisruptionReason, NodePolicy
from leeward.ports.kubernetes import Clusters
from leeward.snapshot.cluster import ClusterSnapshot

EVENTS_AT_ONCE = 50  # Events of one decision, about
LEAST_TURNS = 3
TURN = 300  # seconds: the rate of fn disruption-planner
UNCONSOLIDATABLE, DISRUPTION_BLOCKED = "Unconsolidatable", "DisruptionBlocked"  # reasons of Events
LONGEST = 1000
VOLUNTARY = frozenset(
    {DisruptionReason.EMPTY, DisruptionReason.DRIFTED, DisruptionReason.UNDERUTILIZED, DisruptionReason.EXPIRED}
)
BLOCKED_LONG = timedelta(days=1)  # a night's batch job or a release freeze of a day is no reason for an alarm
OPENS_SOON = timedelta(days=7)  # a weekly disruption window is an agreement, not an obstacle
MOST_NAMED = 10  # nodes of a namespace in the log


def write_blocked_events(
    snapshot: ClusterSnapshot,
    plan: DisruptionPlan,
    more: Callable[[], bool],
    clusters: Clusters,
    note: Callable[[str, LeewardError], object] = reraise,
) -> int:
    """Return the number of Events requested. `note` receives each node whose Event could not be written and the error;
    without it the first error is raised.
    """
    kubernetes = clusters.kubernetes(snapshot.cluster)
    disrupted = {name for command in plan.commands for name in command.nodes}
    written = 0
    for node in sorted(snapshot.nodes, key=lambda node: node.name):
        if node.name in disrupted or not _turn(snapshot, node):
            continue
        event = blocked_event(snapshot, plan, node)
        if event is None:
            continue
        if not more():
            break
        with isolate_errors(partial(note, node.name)), suppress(ObjectGoneError):
            kubernetes.event(node, reason=event[0], message=event[1], warning=False, now=snapshot.now)
            written += 1
    return written


def blocked_event(snapshot: ClusterSnapshot, plan: DisruptionPlan, node: Node) -> tuple[str, str] | None:
    """Return (reason of the Event, sentence). A node that no method may disrupt is blocked; one that consolidation has
    evaluated, or skips for its own reasons, is not consolidatable.

    None for a node that is leaving, for one that could be removed or was not evaluated in time, and where the operator
    has switched disruption off: no policy, no section, doNotDisrupt, a pause, budgets that never allow any node.
    `Unconsolidatable` is said only where consolidation is on and a budget may allow it some time.
    """
    group, policy = snapshot.group_of(node), snapshot.policy_of_node(node)
    if group is None or policy is None or _is_leaving(snapshot, group, node) or _is_off(snapshot, group, policy):
        return None
    forbidden = {
        reason for reason in VOLUNTARY if never_allows(policy.disruption.budgets, reason, snapshot.zone_of(node))
    }
    if forbidden == VOLUNTARY:
        return None
    verdicts = plan.verdicts[node.name]
    said = verdicts[MethodName.CONSOLIDATION]
    blocked = not any(verdict.candidate for verdict in verdicts.values())
    if blocked and len({verdict.reason for verdict in verdicts.values()}) == 1:
        return DISRUPTION_BLOCKED, said.reason[:LONGEST]
    if DisruptionReason.UNDERUTILIZED in forbidden or consolidation.why_off(snapshot, policy) or not said.stays:
        return None
    return UNCONSOLIDATABLE, said.reason[:LONGEST]


def _is_off(snapshot: ClusterSnapshot, group: Group, policy: NodePolicy) -> bool:
    rules = policy.disruption
    return not rules.present or rules.do_not_disrupt or bool(snapshot.policies.pauses.voluntary(group.name))


def _is_leaving(snapshot: ClusterSnapshot, group: Group, node: Node) -> bool:
    """Return whether the node is being terminated, by whatever controller, or its instance does not run any more."""
    instance = snapshot.instance_of(node)
    return (
        node.tainted
        or node.deleting
        or (instance is not None and instance.state != "running")
        or role_of(group.lifecycle_of(node.instance_id)) in ENDING | IN_WORK
        or node.instance_id in snapshot.claimed
        or node.instance_id in snapshot.terminating
    )


def _turn(snapshot: ClusterSnapshot, node: Node) -> bool:
    turns = max(LEAST_TURNS, -(-len(snapshot.nodes) // EVENTS_AT_ONCE))
    return (crc32(node.name.encode()) + int(snapshot.now.timestamp()) // TURN) % turns == 0


def long_blocked(state: PlanningState) -> Mapping[str, tuple[str, ...]]:
    """Return the nodes, by the namespace of the pods that have kept them for longer than `BLOCKED_LONG`."""
    snapshot, latest = state.snapshot, state.snapshot.now - BLOCKED_LONG
    nodes: dict[str, set[str]] = {}
    for node in snapshot.nodes:
        policy = snapshot.policy_of_node(node)
        if policy is None:
            continue
        wanted = _wanted_since(state, node, policy)
        for pod in snapshot.pods_on(node.name):
            since = list(_since(pod, wanted, snapshot.now))
            if since and min(since) <= latest:
                nodes.setdefault(pod.namespace, set()).add(node.name)
    return {namespace: tuple(sorted(nodes[namespace])) for namespace in sorted(nodes)}


def _wanted_since(state: PlanningState, node: Node, policy: NodePolicy) -> datetime | None:
    """Return since when the policy wants the node gone; None while it does not. Consolidation wants no node in
    particular.
    """
    moments: list[datetime] = []
    expiry = expires(node, policy.disruption)
    if expiry is not None and not why_kept_forever(state.snapshot, node, policy):
        moments.append(expiry)
    drifted = state.drift[node.name]
    if drifted.since is not None and drifted.remedy is Remedy.REPLACE and policy.disruption.drift:
        moments.append(drifted.since)
    return min((moment for moment in moments if moment <= state.snapshot.now), default=None)


def _since(pod: Pod, wanted: datetime | None, now: datetime) -> Iterator[datetime]:
    """Yield the moments from which the pod has kept its node."""
    if pod.deletion is not None and pod.finalizers and not pod.mirror:
        yield pod.deletion
    opt_outs = [one for one in pod_opt_outs(pod, now) if not _opens_soon(one, now)]
    held = opt_outs or (pod.beyond_limit and pod.evictable)
    if wanted is not None and held:
        yield max(wanted, pod.started or wanted)


def _opens_soon(opt_out: OptOut, now: datetime) -> bool:
    """Return whether it is a disruption window that opens within a week."""
    return opt_out.key == DISRUPTION_WINDOW and opt_out.until is not None and opt_out.until - now <= OPENS_SOON
