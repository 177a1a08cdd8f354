"""Consolidation: nodes whose pods fit on free capacity, or on free capacity and one cheaper node.

Several nodes at once are tried before any single one; of single nodes, which can be deleted or replaced by a cheaper
node, and if not, why. Empty nodes are handled by the emptiness method. Source: Karpenter,
pkg/controllers/disruption/{consolidation,multinodeconsolidation,singlenodeconsolidation}.go."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from leeward.disruption.balanced import LEAST_SCORE
from leeward.disruption.candidates import Candidate
from leeward.disruption.command import (
    Command,
    CommandDecision,
    MethodName,
    MethodOutcome,
    MethodVerdict,
    PlannedReplacement,
)
from leeward.disruption.do_not_disrupt import why_node_is_kept
from leeward.disruption.methods.command_sequences import Chosen, CommandSequences
from leeward.disruption.methods.emptiness import CONSOLIDATING, Emptiness, runs_on
from leeward.disruption.methods.method import NO_TIME, considered, in_order, no_section
from leeward.disruption.methods.multi_node_consolidation import (
    MOST_TARGETS,
    RUNNERS_UP,
    Proposal,
    is_exhaustive,
    multi_node_proposals,
    with_zones,
)
from leeward.disruption.planning_state import PlanningState, TrialRemoval, on_free_capacity, with_new_nodes
from leeward.disruption.savings import dollars, price_of_all, reason_not_worth, saved, score_of
from leeward.disruption.targets import LaunchTarget, targets, why_failed_before, why_no_spot
from leeward.policy.document import DisruptionReason, NodePolicy
from leeward.snapshot.cluster import ClusterSnapshot

FOR_DELETIONS, FOR_SETS, FOR_REPLACEMENTS = 0.4, 0.5, 0.6  # of the time left; the command sequences take the rest


class SingleNodeConsolidation:
    """One run's pass over single nodes. `targets`: the cheapest first."""

    def __init__(self, state: PlanningState, known: tuple[tuple[LaunchTarget, ...], Mapping[str, str]]) -> None:
        self._state = state
        self.targets, self._no_targets = known

    def deletions(self, candidates: Iterable[Candidate]) -> dict[str, TrialRemoval]:
        """Return the candidates tried, with the result of removing each; a missing one was not reached in time."""
        tried: dict[str, TrialRemoval] = {}
        for candidate in candidates:
            if not self._state.more():
                break
            removal = on_free_capacity(self._state, [candidate])
            if removal.why == NO_TIME:
                break
            tried[candidate.name] = removal
        return tried

    def proposals(
        self, candidates: Sequence[Candidate], tried: Mapping[str, TrialRemoval]
    ) -> dict[str, Proposal | str]:
        """Return for each candidate its proposal alone, else why there is none, in their order."""
        return {one.name: self._alone(one, tried.get(one.name)) for one in candidates}

    def _alone(self, candidate: Candidate, removal: TrialRemoval | None) -> Proposal | str:
        if removal is None:
            return NO_TIME
        usage = self._state.usage
        blocked = ""
        if not removal.why:
            blocked = usage.reason_not_to_shrink(candidate) or reason_not_worth([candidate], 0.0)
            if not blocked:
                return Proposal(nodes=(candidate,), placements=removal.placements)
        replaced = self._replaced(candidate)
        if isinstance(replaced, Proposal):
            return replaced
        return (
            f"its pods fit on other nodes, but {blocked}; {replaced}"
            if blocked
            else f"{removal.why.rstrip('.')}; {replaced}"
        )

    def _replaced(self, candidate: Candidate) -> Proposal | str:
        """Replace the candidate by one node of the cheapest group that is possible."""
        if candidate.price is None:
            return "its price is not known, so nothing is known to be cheaper"
        refusals: list[str] = []
        for target in self.targets:
            why = self._reason_against(candidate, target)
            if not why and not self._state.more():
                return NO_TIME
            proposal = why or self._by(candidate, target)
            if isinstance(proposal, Proposal):
                return proposal
            refusals.append(proposal)
        return refusals[0] if refusals else self._nothing_to_launch()

    def _reason_against(self, candidate: Candidate, target: LaunchTarget) -> str:
        """Return why the target is not possible, as far as that is known without a try."""
        expensive = reason_not_worth([candidate], target.cheapest)
        if expensive:
            cheapest = dollars(target.cheapest)
            price = "unknown" if candidate.price is None else dollars(candidate.price)
            return f"{expensive} ({target.group} costs {cheapest} or more an hour, the node {price})"
        spot = why_no_spot(candidate, target)
        if spot:
            return spot
        if not target.can_launch([candidate]):
            return f"group {target.group} is at its MaxSize"
        if not self._state.usage.may_shrink([candidate], grows=target.group):
            return self._state.usage.reason_not_to_shrink(candidate)
        return why_failed_before(self._state.snapshot, [candidate], target.group)

    def _by(self, candidate: Candidate, target: LaunchTarget) -> Proposal | str:
        removal = with_new_nodes(self._state, [candidate], target)
        if removal.why == NO_TIME:
            return NO_TIME
        if removal.why:
            return f"with a new node of {target.group} too: {removal.why}"
        if not removal.new_nodes:
            return f"a new node of {target.group} would not be needed"
        expensive = reason_not_worth([candidate], removal.price)
        if expensive:
            return f"{expensive} ({target.group} in {removal.new_nodes[0].zone} is {dollars(removal.price)})"
        return with_zones(self._state, (candidate,), target, removal)

    def _nothing_to_launch(self) -> str:
        if not self._no_targets:
            return "no group can launch anything in its place"
        return "; ".join(f"group {name} is no target: {why}" for name, why in sorted(self._no_targets.items()))


class Consolidation:
    """Method that deletes or replaces; at most one command a run, because a command changes the state in which all
    others were tried.
    """

    name = MethodName.CONSOLIDATION
    reason = DisruptionReason.UNDERUTILIZED

    def reason_to_keep(self, state: PlanningState, candidate: Candidate) -> str:
        """Return why not: switched off, blocked by a pod, empty, kept, about to get pods, or not quiet long enough."""
        landing = state.arrivals.get(candidate.name, "")
        return (
            why_off(state.snapshot, candidate.policy)
            or candidate.blocked_by
            or ("" if candidate.workload else "it is empty: the emptiness method decides about it")
            or why_node_is_kept(candidate.node)
            or (f"pod {landing} has no node and will land there" if landing else "")
            or _reason_not_quiet(state, candidate)
        )

    def decide(self, state: PlanningState) -> MethodOutcome:
        """Return one command; `docs/designs/disruption.md` describes the search."""
        ordered, verdicts = considered(self, state)
        ready: list[Candidate] = []
        for candidate in ordered:
            why = state.usage.reason_to_keep(candidate, self.reason) or _why_never_worth(candidate)
            if why:
                verdicts[candidate.name] = MethodVerdict(candidate=True, reason=why)
            else:
                ready.append(candidate)
        known = targets(state.snapshot, priced=True)
        removals = SingleNodeConsolidation(state.part(FOR_DELETIONS), known).deletions(ready)
        sets = multi_node_proposals(state.part(FOR_SETS), ready, removals, known[0])
        single_node = SingleNodeConsolidation(state.part(FOR_REPLACEMENTS), known)
        singles = single_node.proposals(ready, removals)
        alone = [one for one in singles.values() if isinstance(one, Proposal)]
        best = _best(sets, alone)
        chosen = _chosen(state, ready, single_node, best, [*sets, *alone]) if best else None
        for candidate in ready:
            verdicts[candidate.name] = _verdict(candidate, singles, chosen)
        return MethodOutcome(
            commands=(command_of(chosen),) if chosen else (),
            verdicts=in_order(state, verdicts),
            before_empty=chosen is not None and chosen.before_empty,
        )


def _why_never_worth(candidate: Candidate) -> str:
    """Return why no command with the node is worth its disruption under Balanced: a plain deletion, which saves all of
    its price, is not. Karpenter does not try such a node either (designs/balanced-consolidation.md, Candidate
    Filtering); beside better nodes it would only lower their score.
    """
    best = score_of([candidate], 0.0)
    if best is None or best.enough:
        return ""
    return f"consolidationPolicy Balanced asks for a score of {LEAST_SCORE:.2f}, at best it is less ({best.sentence})"


def _best(sets: Sequence[Proposal], singles: Sequence[Proposal]) -> Proposal | None:
    """Return the best proposal. Of single nodes that is the least disturbing, which comes first (docs/features.md,
    K10). Where several can be removed together, it is the one that saves most: they, or a single node after all.
    """
    if not sets:
        return next(iter(singles), None)
    return max((sets[0], *singles), key=lambda one: one.worth)


def _chosen(
    state: PlanningState,
    ready: Sequence[Candidate],
    single_node: SingleNodeConsolidation,
    best: Proposal,
    known: Sequence[Proposal],
) -> Chosen:
    """Return the proposal that saves most in the end, computed for few candidates only."""
    if not is_exhaustive(ready):
        return Chosen(proposal=best)
    emptiness = Emptiness()
    empty = [one for one in state.candidates.values() if not emptiness.reason_to_keep(state, one)]
    sequences = CommandSequences(state, ready, empty, single_node.targets[:MOST_TARGETS])
    others = sorted((one for one in known if one is not best), key=lambda one: one.worth, reverse=True)
    return sequences.choose(best, others[:RUNNERS_UP])


def _verdict(candidate: Candidate, singles: dict[str, Proposal | str], chosen: Chosen | None) -> MethodVerdict:
    if chosen is not None and candidate in chosen.proposal.nodes:
        return MethodVerdict(candidate=True, reason=f"it is removed: {_why(chosen)}", stays=False)
    alone = singles.get(candidate.name, NO_TIME)
    if isinstance(alone, str):
        return MethodVerdict(candidate=True, reason=alone, stays=alone != NO_TIME)
    said = f"it could be removed ({_what(alone)}), but another command comes first in this run"
    return MethodVerdict(candidate=True, reason=said, stays=False)


def command_of(chosen: Chosen) -> Command:
    """Return the command of a proposal."""
    best = chosen.proposal
    new = _replacement(best)
    return Command(
        decision=CommandDecision.REPLACE if new else CommandDecision.DELETE,
        nodes=tuple(sorted(one.name for one in best.nodes)),
        reason=_why(chosen),
        replacements=(new,) if new else (),
        savings=saved(best.nodes, best.price),
        score=None if (found := score_of(best.nodes, best.price)) is None else round(found.value, 4),
        cost=sum(one.cost for one in best.nodes),
        placements=best.placements,
    )


def _replacement(best: Proposal) -> PlannedReplacement | None:
    if best.target is None:
        return None
    launchable = best.target.launchable
    return PlannedReplacement(
        group=best.target.group,
        types=launchable.types,
        zones=best.zones,
        capacity=launchable.capacity,
        price=best.price,
    )


def _why(chosen: Chosen) -> str:
    """Return the reason with the total savings it is chosen for, where these exceed its own."""
    what = _what(chosen.proposal)
    return what if chosen.total is None else f"{what}, and {dollars(chosen.total)} in the end, more than other ways"


def _what(best: Proposal) -> str:
    """Describe the proposal: `the pods of 3 nodes fit on other nodes and a cheaper one of web-b, saves $0.12 of $0.48
    an hour`.
    """
    whose = "its pods" if len(best.nodes) == 1 else f"the pods of {len(best.nodes)} nodes"
    found = score_of(best.nodes, best.price)
    scored = "" if found is None else f" ({found.sentence})"
    return f"{whose} fit on other nodes{_new(best)}{_saves(best)}{scored}"


def _saves(best: Proposal) -> str:
    """Return what the proposal saves, of the nodes' price where that is more."""
    savings, before = saved(best.nodes, best.price), price_of_all(best.nodes)
    if savings is None or before is None:
        return ""
    if savings < 0:
        return f", costs {dollars(-savings)} an hour more"
    whole = "" if dollars(savings) == dollars(before) else f" of {dollars(before)}"
    return f", saves {dollars(savings)}{whole} an hour"


def _new(best: Proposal) -> str:
    if best.target is None:
        return ""
    group = best.target.group
    return f", one of {group} is for what can follow" if best.spare else f" and a cheaper one of {group}"


def why_off(snapshot: ClusterSnapshot, policy: NodePolicy) -> str:
    """Return which switch of cluster or policy keeps underutilized nodes, empty when none does."""
    rules = policy.disruption
    if not snapshot.policies.settings.consolidation:
        return "consolidation is switched off for the cluster"
    if not rules.present:
        return no_section(policy)
    if rules.consolidation_policy not in CONSOLIDATING:
        return f"policy {policy.name} says consolidationPolicy {rules.consolidation_policy}"
    return f"policy {policy.name} says consolidateAfter Never" if rules.consolidate_after is None else ""


def _reason_not_quiet(state: PlanningState, candidate: Candidate) -> str:
    """Return how long the node has still to be quiet, empty when it has been. The time counts from the newest start or
    end of a pod there, else from the node's creation; daemon and static pods come and go with the node and do not
    count, as in Karpenter (pkg/controllers/nodeclaim/podevents). A time that is yet to come counts as now.
    """
    after, now = candidate.policy.disruption.consolidate_after or timedelta(), state.snapshot.now
    newest = min(max(runs_on(state.snapshot, candidate.node), default=candidate.node.created), now)
    left = newest + after - now
    if left <= timedelta():
        return ""
    ago, rest = int((after - left).total_seconds()), int(left.total_seconds())
    return f"the newest pod started or ended {ago} s ago: {rest} s of consolidateAfter are left"
