"""Events on nodes that are not disrupted: the reason why no method selects them (docs/features.md, K3, K11).

Rate-limited without stored state: each decision covers some of the nodes, chosen by their names and the time, so that
each node gets an Event about once in a quarter of an hour, in large clusters once in an hour or two."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from zlib import crc32

from leeward.budgets.disruption_budgets import never_allows
from leeward.disruption.command import MethodName, Plan
from leeward.disruption.methods import consolidation
from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors, reraise
from leeward.model.group import Group
from leeward.model.lifecycle import ENDING, IN_WORK, role_of
from leeward.model.node import Node
from leeward.policy.document import NodePolicy, Reason
from leeward.ports.kubernetes import Clusters
from leeward.snapshot.cluster import ClusterSnapshot

EVENTS_AT_ONCE = 50  # Events of one decision, about
LEAST_TURNS = 3
TURN = 300  # seconds: the rate of fn disruption-planner
UNCONSOLIDATABLE, DISRUPTION_BLOCKED = "Unconsolidatable", "DisruptionBlocked"  # reasons of Events
LONGEST = 1000
VOLUNTARY = frozenset({Reason.EMPTY, Reason.DRIFTED, Reason.UNDERUTILIZED, Reason.EXPIRED})


def write_blocked_events(
    snapshot: ClusterSnapshot,
    plan: Plan,
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


def blocked_event(snapshot: ClusterSnapshot, plan: Plan, node: Node) -> tuple[str, str] | None:
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
    if Reason.UNDERUTILIZED in forbidden or consolidation.why_off(snapshot, policy) or not said.stays:
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
