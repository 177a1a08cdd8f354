"""Taints on the nodes of one cluster's messages, all at once and right after their terminations have been claimed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from leeward.errors import LeewardError, ObjectGoneError
from leeward.interruption.decision import Action, Decision, NodeDecision
from leeward.interruption.world import World
from leeward.isolation import Executor, attempt
from leeward.model.node import Node, Taint, disruption_taint
from leeward.ports import Ports

# Effect of `kubectl cordon`: Kubernetes itself keeps this taint on a node while spec.unschedulable is set. Our own
# taint would mean a node under termination, count as a disruption, and be removed by the minute reconciler.
CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTaint:
    """Node to be tainted."""

    cluster: str
    node: Node
    taint: Taint


@dataclass(slots=True)
class TaintResult:
    """Result of tainting, by instance id. `fresh`: nodes that carried no taint of ours before."""

    fresh: dict[str, Node] = field(default_factory=dict)
    failed: dict[str, LeewardError] = field(default_factory=dict)


def taint_nodes(
    decided: Iterable[tuple[Decision, NodeDecision]], world: World, ports: Ports, workers: int, each: Executor
) -> TaintResult:
    """Taint and cordon, at most `workers` at a time. Idempotent: tainted nodes are left out.

    A failed taint is noted, never raised: the drain step taints again.
    """
    node_taints = tuple(_wanted(decided, world, ports.deployment).values())
    tainting = TaintResult()
    outcomes = each(lambda node_taint: attempt(lambda: _taint(node_taint, ports)), node_taints, workers)
    for node_taint, outcome in zip(node_taints, outcomes, strict=True):
        if isinstance(outcome, LeewardError):
            tainting.failed[node_taint.node.instance_id] = outcome
        elif outcome is not None and not node_taint.node.tainted:
            tainting.fresh[node_taint.node.instance_id] = outcome
    return tainting


def _wanted(decided: Iterable[tuple[Decision, NodeDecision]], world: World, deployment: str) -> dict[str, NodeTaint]:
    """Return one taint per node; a termination wins over a cordon. A deferred change is tainted when it is started."""
    wanted: dict[str, NodeTaint] = {}
    for decision, verdict in decided:
        node = world.nodes.get(verdict.instance)
        if node is None or verdict.cluster is None or verdict.action is Action.NONE or decision.deferred:
            continue
        known = wanted.get(verdict.instance)
        if known is None or known.taint is CORDONED:
            taint = CORDONED if verdict.action is Action.CORDON else disruption_taint(deployment)
            if not _carries(node, taint):
                wanted[verdict.instance] = NodeTaint(cluster=verdict.cluster, node=node, taint=taint)
    return wanted


def _carries(node: Node, taint: Taint) -> bool:
    same = any((there.key, there.effect) == (taint.key, taint.effect) for there in node.taints)
    return node.unschedulable and (same or taint is CORDONED)


def _taint(node_taint: NodeTaint, ports: Ports) -> Node | None:
    try:
        return ports.clusters.kubernetes(node_taint.cluster).taint(node_taint.node, node_taint.taint)
    except ObjectGoneError:
        return None
