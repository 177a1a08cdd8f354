"""Command sequences: what a command saves together with the runs that can follow it.

The command that saves most now may leave nodes that no later command can remove, and an empty node that is removed now
may have been the free capacity for a more expensive one. So where candidates are few, each of the best commands is
carried out in the world, followed each time by the command that saves most then, until no command is left. Where
budgets allow one node a run, the order of the nodes decides what is left for the last ones: each of the best commands
is then followed by several. A command other than the first is chosen only where more is saved in the end, by at least
the savings that its nodes' policies require of a command; the runs after it decide again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leeward.disruption.candidates import Candidate
from leeward.disruption.methods.multi_node_consolidation import affordable, best_sets
from leeward.disruption.methods.proposals import Proposal, with_spare
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.savings import CENT_PARTS, threshold
from leeward.disruption.targets import Target
from leeward.scheduling.packing import pack

SPARES = 16  # of these, as many are evaluated
BRANCHES = 3  # commands that are tried at each step of a sequence of single nodes
MOST_STEPS = 20  # of the sequences that begin with one command; after that each step has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Chosen proposal. `total`: dollars an hour with the commands that can follow, None where that makes no difference
    to the choice. `before_empty`: it saves more than it would after the empty nodes have been removed.
    """

    proposal: Proposal
    total: float | None = None
    before_empty: bool = False


class CommandSequences:
    """Sequences of one run. `empty`: the nodes that emptiness would delete; `cheapest`: the targets that later commands
    may launch.
    """

    def __init__(
        self,
        state: PlanningState,
        candidates: Sequence[Candidate],
        empty: Sequence[Candidate],
        cheapest: Sequence[Target],
    ) -> None:
        self._state, self._candidates, self._empty, self._cheapest = state, candidates, empty, cheapest
        self._branches, self._steps = BRANCHES if len(affordable(state, candidates)) <= 1 else 1, 0

    def choose(self, best: Proposal, others: Iterable[Proposal]) -> Chosen:
        """Return `best` unless another proposal saves more in the end; the choice so far when the time is used up."""
        others = list(others)
        total = self._total(best)
        chosen, first, most = best, total, total
        for one in (*others, *self._spares((best, *others))):
            total = self._total(one)
            if not self._state.more():
                break
            if total > most and _is_better(total, first, one):
                chosen, most = one, total
        said = most if chosen is not best else None
        if not self._empty:
            return Chosen(proposal=chosen, total=said)
        after = self._total(None)
        before = self._state.more() and _is_better(most, after, chosen)
        return Chosen(proposal=chosen, total=most if before else said, before_empty=before)

    def _spares(self, known: Iterable[Proposal]) -> list[Proposal]:
        """Return deletions, each with a node of each target that none of them needs, the best first."""
        deletion = [one for one in known if one.target is None]
        tried = (with_spare(self._state, one, target) for one in deletion for target in self._cheapest)
        proposals = [one for one in tried if one is not None]
        return sorted(proposals, key=lambda one: one.worth, reverse=True)[:SPARES]

    def _total(self, first: Proposal | None) -> float:
        """Return the dollars an hour that are saved in the end. None: the empty nodes are removed first."""
        later, self._steps = self._state.after(self._state.usage.copy()), 0
        with self._state.world.trial():
            return round(self._savings_of_sequence(later, first), CENT_PARTS)

    def _savings_of_sequence(self, later: PlanningState, step: Proposal | None) -> float:
        """Carry out all commands. Empty nodes that get no pod are removed last; without a `step`, first."""
        if step is not None:
            return self._savings_from(later, step, self._candidates, self._empty)
        gone = [one for one in self._empty if _remove_empty(later, one)]
        empty = [one for one in self._empty if one not in gone]
        return _price(gone) + self._savings_after(later, self._candidates, empty)

    def _savings_from(
        self, later: PlanningState, step: Proposal, candidates: Sequence[Candidate], empty: Sequence[Candidate]
    ) -> float:
        saved = step.worth[0]
        if not _apply(later, step):
            return saved
        left = [one for one in candidates if one not in step.nodes]
        return saved + self._savings_after(later, left, empty)

    def _savings_after(
        self, later: PlanningState, candidates: Sequence[Candidate], empty: Sequence[Candidate]
    ) -> float:
        """Return the most that the next commands can save, or what the empty nodes save where there is none."""
        self._steps += 1
        most = self._branches if self._steps <= MOST_STEPS else 1
        steps = best_sets(later, candidates, self._cheapest, most=most) if self._state.more() else ()
        if not steps:
            return _price(one for one in empty if _remove_empty(later, one))
        if len(steps) == 1:
            return self._savings_from(later, steps[0], candidates, empty)
        totals: list[float] = []
        for step in steps:
            branch = later.after(later.usage.copy())
            with later.world.trial():
                totals.append(self._savings_from(branch, step, candidates, empty))
        return max(totals)


def _is_better(total: float, other: float, proposal: Proposal) -> bool:
    """Return whether the total is better by the savings that the nodes' policies require, and never by nothing."""
    return total > other and round(total - other, CENT_PARTS) >= threshold(proposal.nodes)


def _apply(later: PlanningState, step: Proposal) -> bool:
    """Remove the nodes and put their pods where the scheduler does; False where it cannot place them all at once."""
    world, usage = later.world, later.usage
    pods = [pod for name in sorted(one.name for one in step.nodes) for pod in world.remove(name)]
    templates = (step.target.template,) if step.target is not None else ()
    if step.spare:
        world.open(world.openings.of(templates)[0])
    packing = pack(world, pods, templates=templates, at_most=0 if step.spare else 1, whole=True)
    for one in step.nodes:
        world.forget(one.name)
        usage.resize(one.group.name, -1)
    if step.target is not None:
        usage.resize(step.target.group, 1)
    return packing.complete


def _remove_empty(later: PlanningState, candidate: Candidate) -> bool:
    """Return whether the empty node can be removed, and remove it: no pod has come to it, and its group may shrink."""
    world, usage = later.world, later.usage
    if not all(pod.stays for pod in world.pods_on(candidate.name)) or usage.why_not_smaller(candidate):
        return False
    world.remove(candidate.name)
    world.forget(candidate.name)
    usage.resize(candidate.group.name, -1)
    return True


def _price(nodes: Iterable[Candidate]) -> float:
    return sum(one.price or 0.0 for one in nodes)
