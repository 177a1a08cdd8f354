"""Events on nodes that are not disrupted: the reason why no method selects them (docs/features.md, K3, K11).

Rate-limited without stored state: each decision covers some of the nodes, chosen by their names and the time, so that
each node gets an Event about once in a quarter of an hour, in large clusters once in an hour or two."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from zlib import crc32

from leeward.disruption.command import MethodName, Plan
from leeward.disruption.methods.emptiness import NEVER
from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors, reraise
from leeward.model.node import Node
from leeward.ports.kubernetes import Clusters
from leeward.snapshot.cluster import ClusterSnapshot

EVENTS_AT_ONCE = 50  # Events of one decision, about
LEAST_TURNS = 3
TURN = 300  # seconds: the rate of fn disruption-planner
UNCONSOLIDATABLE, DISRUPTION_BLOCKED = "Unconsolidatable", "DisruptionBlocked"  # reasons of Events
LONGEST = 1000


def write_blocked_events(
    snapshot: ClusterSnapshot,
    plan: Plan,
    more: Callable[[], bool],
    clusters: Clusters,
    note: Callable[[str, LeewardError], object] = reraise,
) -> int:
    """Return the number of Events requested. Terminating nodes get none, nor do nodes of groups that no policy selects
    or whose policy switches nothing on; `Unconsolidatable` is said only where the policy consolidates.
    `note` receives each node whose Event could not be written and the error; without it the first error is raised.
    """
    kubernetes = clusters.kubernetes(snapshot.cluster)
    disrupted = {name for command in plan.commands for name in command.nodes}
    written = 0
    for node in sorted(snapshot.nodes, key=lambda node: node.name):
        policy = snapshot.policy_of_node(node)
        if node.name in disrupted or node.tainted or policy is None or not policy.disruption.present:
            continue
        if not _turn(snapshot, node):
            continue
        reason, message = blocked_event(plan, node.name)
        if reason == UNCONSOLIDATABLE and policy.disruption.consolidation_policy == NEVER:
            continue
        if not more():
            break
        with isolate_errors(partial(note, node.name)), suppress(ObjectGoneError):
            kubernetes.event(node, reason=reason, message=message, warning=False, now=snapshot.now)
            written += 1
    return written


def blocked_event(plan: Plan, node: str) -> tuple[str, str]:
    """Return (reason of the Event, sentence). A node that no method may disrupt is blocked; one that consolidation has
    evaluated, or skips for its own reasons, is not consolidatable.
    """
    verdicts = plan.verdicts[node]
    blocked = not any(verdict.candidate for verdict in verdicts.values())
    same = len({verdict.reason for verdict in verdicts.values()}) == 1
    said = verdicts[MethodName.CONSOLIDATION].reason
    return (DISRUPTION_BLOCKED if blocked and same else UNCONSOLIDATABLE), said[:LONGEST]


def _turn(snapshot: ClusterSnapshot, node: Node) -> bool:
    turns = max(LEAST_TURNS, -(-len(snapshot.nodes) // EVENTS_AT_ONCE))
    return (crc32(node.name.encode()) + int(snapshot.now.timestamp()) // TURN) % turns == 0
