"""Single-node consolidation: which candidates can be deleted or replaced by a cheaper node, and if not, why."""

from collections.abc import Iterable, Mapping, Sequence

from leeward.disruption.candidates import Candidate
from leeward.disruption.launch_inputs import why_failed_before
from leeward.disruption.methods.method import NO_TIME
from leeward.disruption.methods.proposals import Proposal, with_zones
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.removal import Removal, on_free_capacity, with_new_nodes
from leeward.disruption.savings import dollars, reason_not_worth
from leeward.disruption.targets import Target, why_no_spot


class SingleNodeConsolidation:
    """One run's pass over single nodes. `targets`: the cheapest first."""

    def __init__(self, state: PlanningState, known: tuple[tuple[Target, ...], Mapping[str, str]]) -> None:
        self._state = state
        self.targets, self._no_targets = known

    def deletions(self, candidates: Iterable[Candidate]) -> dict[str, Removal]:
        """Return the candidates tried, with the result of removing each; a missing one was not reached in time."""
        tried: dict[str, Removal] = {}
        for candidate in candidates:
            if not self._state.more():
                break
            removal = on_free_capacity(self._state, [candidate])
            if removal.why == NO_TIME:
                break
            tried[candidate.name] = removal
        return tried

    def proposals(self, candidates: Sequence[Candidate], tried: Mapping[str, Removal]) -> dict[str, Proposal | str]:
        """Return for each candidate its proposal alone, else why there is none, in their order."""
        return {one.name: self._alone(one, tried.get(one.name)) for one in candidates}

    def _alone(self, candidate: Candidate, removal: Removal | None) -> Proposal | str:
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

    def _reason_against(self, candidate: Candidate, target: Target) -> str:
        """Return why the target is not possible, as far as that is known without a try."""
        expensive = reason_not_worth([candidate], target.cheapest)
        if expensive:
            cheapest = dollars(target.cheapest)
            return f"{expensive} ({target.group} costs {cheapest} or more an hour, the node {_price(candidate)})"
        spot = why_no_spot(candidate, target)
        if spot:
            return spot
        if not target.can_launch([candidate]):
            return f"group {target.group} is at its MaxSize"
        if not self._state.usage.may_shrink([candidate], grows=target.group):
            return self._state.usage.reason_not_to_shrink(candidate)
        return why_failed_before(self._state.snapshot, [candidate], target.group)

    def _by(self, candidate: Candidate, target: Target) -> Proposal | str:
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


def _price(candidate: Candidate) -> str:
    return "unknown" if candidate.price is None else dollars(candidate.price)
