"""Emptiness: nodes on which only DaemonSet and static pods are left, all at once.

The time counts from the annotation `leeward.dev/empty-since`, which is written when a node is first observed empty, or
from the newest start or end of a pod that ran since: between two observations a short job comes and goes.
Source: Karpenter v0.30, pkg/controllers/deprovisioning/emptiness.go: a node on which a pod is about to land is not
empty."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from leeward.disruption.balanced import BALANCED
from leeward.disruption.candidates import Candidate
from leeward.disruption.command import Command, CommandDecision, MethodName, MethodOutcome, MethodVerdict
from leeward.disruption.do_not_disrupt import TRUE, why_node_is_kept
from leeward.disruption.methods.method import considered, in_order, no_section
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.savings import saved
from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.times import format_instant, parse_instant
from leeward.policy.document import DisruptionReason, NodePolicy
from leeward.snapshot.cluster import ClusterSnapshot

UNDERUTILIZED = "WhenEmptyOrUnderutilized"
CONSOLIDATING = frozenset({UNDERUTILIZED, BALANCED})  # policies that consolidate underutilized nodes as well
NEVER = "Never"


class Emptiness:
    """Method that deletes and never replaces."""

    name = MethodName.EMPTINESS
    reason = DisruptionReason.EMPTY

    def reason_to_keep(self, state: PlanningState, candidate: Candidate) -> str:
        """Return why not: off, blocked by a pod, not empty, kept, not empty long enough, or its group cannot shrink."""
        return (
            why_off(state.snapshot, candidate.policy)
            or candidate.blocked_by
            or reason_not_empty(state, candidate)
            or _why_kept(candidate)
            or _reason_to_wait(candidate, state.snapshot)
            or state.usage.reason_not_to_shrink(candidate)
        )

    def decide(self, state: PlanningState) -> MethodOutcome:
        """Return all empty nodes in one command, as far as budgets and group sizes allow: the most expensive first."""
        empty, verdicts = considered(self, state)
        usage, removed = state.usage.copy(), list[Candidate]()
        for candidate in sorted(empty, key=lambda one: (-(one.price or 0.0), one.rank)):
            why = usage.reason_not_to_shrink(candidate) or usage.reason_to_keep(candidate, self.reason)
            if not why:
                usage.take(candidate)
                usage.resize(candidate.group.name, -1)
                removed.append(candidate)
            said = why or f"it is empty{_since_when(candidate, state.snapshot)} and is removed"
            verdicts[candidate.name] = MethodVerdict(candidate=True, reason=said)
        return MethodOutcome(commands=_commands(removed), verdicts=in_order(state, verdicts))


def _commands(removed: list[Candidate]) -> tuple[Command, ...]:
    if not removed:
        return ()
    removed = sorted(removed, key=lambda one: one.name)
    many = f"{len(removed)} nodes are" if len(removed) > 1 else "the node is"
    command = Command(
        decision=CommandDecision.DELETE,
        nodes=tuple(candidate.name for candidate in removed),
        reason=f"{many} empty: only DaemonSet and static pods are left",
        savings=saved(removed, 0.0),
    )
    return (command,)


def why_off(snapshot: ClusterSnapshot, policy: NodePolicy) -> str:
    """Return which switch of cluster or policy keeps empty nodes, empty when none does."""
    rules = policy.disruption
    if not snapshot.policies.settings.emptiness:
        return "emptiness is switched off for the cluster"
    if not rules.present:
        return no_section(policy)
    if rules.consolidation_policy == NEVER:
        return f"policy {policy.name} says consolidationPolicy Never"
    if rules.consolidate_after is None:
        return f"policy {policy.name} says consolidateAfter Never"
    return ""


def reason_not_empty(state: PlanningState, candidate: Candidate) -> str:
    """Return which pod runs there, or has no node and will land there; empty when there is none."""
    if candidate.workload:
        return f"it is not empty: pod {candidate.workload} runs there"
    landing = state.arrivals.get(candidate.name, "")
    return f"it is not empty for long: pod {landing} has no node and will land there" if landing else ""


def empty_since(snapshot: ClusterSnapshot, node: Node) -> datetime | None:
    """Return since when the node is empty: the time of the annotation, but not before its creation nor before the last
    start or end of a workload pod; of a pod that is being deleted its grace ends it. A time that is yet to come, of a
    clock that is ahead or of such a grace, counts as now. None where no annotation can be parsed.
    """
    try:
        noted = parse_instant(node.annotations.get(well_known.EMPTY_SINCE, ""))
    except (ValueError, OverflowError):
        return None
    return min(max(noted, node.created, *runs_on(snapshot, node)), snapshot.now)


def runs_on(snapshot: ClusterSnapshot, node: Node) -> Iterator[datetime]:
    """Yield the starts and ends of workload pods of the node; of one that is being deleted the end of its grace."""
    for pod in snapshot.pods_on(node.name):
        if not (pod.of_daemon_set or pod.mirror):
            yield from (moment for moment in (pod.started, pod.ended, pod.deletion) if moment is not None)


def _why_kept(candidate: Candidate) -> str:
    """Return the annotation that keeps the node. Under WhenEmptyOrUnderutilized and Balanced removing empty nodes is a
    part of consolidation, so its opt-outs hold.
    """
    underutilized = candidate.policy.disruption.consolidation_policy in CONSOLIDATING
    scale_down = candidate.node.annotations.get(well_known.SCALE_DOWN_DISABLED) == TRUE
    return why_node_is_kept(candidate.node) if underutilized or scale_down else ""


def _reason_to_wait(candidate: Candidate, snapshot: ClusterSnapshot) -> str:
    """Return how long the node has still to be empty; empty when it has been. It starts now without the annotation."""
    since, now = empty_since(snapshot, candidate.node), snapshot.now
    waits = candidate.policy.disruption.consolidate_after or timedelta()
    left = (now if since is None else since) + waits - now
    if left <= timedelta():
        return ""
    seen = "seen just now" if since is None else format_instant(since)
    return f"it is empty, since {seen}: {int(left.total_seconds())} s of consolidateAfter are left"


def _since_when(candidate: Candidate, snapshot: ClusterSnapshot) -> str:
    since = empty_since(snapshot, candidate.node)
    return f" since {format_instant(since)}" if since else ""
