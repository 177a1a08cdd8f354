"""Command sequences: the savings of a command together with the commands that can follow it in later runs.

Decides which of the proposed commands is best in the end; `multi_node_consolidation` proposes them. The command that
saves most now may leave nodes that no later command can remove, and an empty node that is removed now may have been
the free capacity for a more expensive one. So each of the best commands is simulated, followed each time by the
command that then saves most, until no command is left. Where budgets allow one node a run, the order of the nodes
matters more: each step is then followed by several commands. A command other than the first is chosen only if its
sequence saves more by at least the savings that its nodes' policies require of a command. Later runs decide again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leeward.disruption.candidates import Candidate
from leeward.disruption.methods.multi_node_consolidation import Proposal, affordable, best_sets, with_spare
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.savings import CENT_PARTS, threshold
from leeward.disruption.targets import LaunchTarget
from leeward.scheduling.packing import pack

MAX_SPARES = 16  # deletions with an additional node that are evaluated
BRANCHES = 3  # commands tried at each step of a sequence where budgets allow one node a run
MAX_BRANCHING_STEPS = 20  # over all sequences that begin with one command; later steps try one command


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Chosen proposal.

    `total`: dollars an hour that its sequence saves; None: that did not influence the choice. `before_empty`: the
    sequence saves more than one that begins with the removal of the empty nodes.
    """

    proposal: Proposal
    total: float | None = None
    before_empty: bool = False


class CommandSequences:
    """Sequences of one run. `empty`: nodes that the emptiness method would delete. `cheapest`: targets that commands
    may launch.
    """

    def __init__(
        self,
        state: PlanningState,
        candidates: Sequence[Candidate],
        empty: Sequence[Candidate],
        cheapest: Sequence[LaunchTarget],
    ) -> None:
        self._state, self._candidates, self._empty, self._cheapest = state, candidates, empty, cheapest
        self._branches, self._steps = BRANCHES if len(affordable(state, candidates)) <= 1 else 1, 0

    def choose(self, best: Proposal, others: Iterable[Proposal]) -> Chosen:
        """Return `best`, or the proposal whose sequence saves more; the choice so far once the time is used up."""
        others = list(others)
        total = self._total(best)
        chosen, first, most = best, total, total
        for proposal in (*others, *self._spares((best, *others))):
            total = self._total(proposal)
            if not self._state.more():
                break
            if total > most and _is_better(total, first, proposal):
                chosen, most = proposal, total
        before_empty = False
        if self._empty:
            after_empty = self._total(None)
            before_empty = self._state.more() and _is_better(most, after_empty, chosen)
        decisive = before_empty or chosen is not best
        return Chosen(proposal=chosen, total=most if decisive else None, before_empty=before_empty)

    def _spares(self, known: Iterable[Proposal]) -> list[Proposal]:
        """Return the known deletions, each with an additional node of each target, the best first.

        A deletion needs no such node itself; later commands of the sequence may.
        """
        deletions = [proposal for proposal in known if proposal.target is None]
        spares = (with_spare(self._state, deletion, target) for deletion in deletions for target in self._cheapest)
        proposals = [spare for spare in spares if spare is not None]
        return sorted(proposals, key=lambda proposal: proposal.worth, reverse=True)[:MAX_SPARES]

    def _total(self, first: Proposal | None) -> float:
        """Return the dollars an hour that a sequence saves. `first` None: it begins with the removal of the empty
        nodes.
        """
        later, self._steps = self._state.after(self._state.usage.copy()), 0
        with self._state.world.trial():
            return round(self._savings_of_sequence(later, first), CENT_PARTS)

    def _savings_of_sequence(self, later: PlanningState, step: Proposal | None) -> float:
        """Carry out a sequence from `step` on. Empty nodes that get no pod are removed last; `step` None: first."""
        if step is not None:
            return self._savings_from(later, step, self._candidates, self._empty)
        removed = [candidate for candidate in self._empty if _remove_empty(later, candidate)]
        empty = [candidate for candidate in self._empty if candidate not in removed]
        return _price(removed) + self._savings_after(later, self._candidates, empty)

    def _savings_from(
        self, later: PlanningState, step: Proposal, candidates: Sequence[Candidate], empty: Sequence[Candidate]
    ) -> float:
        saved = step.worth[0]
        if not _apply(later, step):
            return saved
        left = [candidate for candidate in candidates if candidate not in step.nodes]
        return saved + self._savings_after(later, left, empty)

    def _savings_after(
        self, later: PlanningState, candidates: Sequence[Candidate], empty: Sequence[Candidate]
    ) -> float:
        """Return the dollars an hour that the best of the next commands and its successors save.

        Where no command is left, the empty nodes are removed.
        """
        self._steps += 1
        most = self._branches if self._steps <= MAX_BRANCHING_STEPS else 1
        steps = best_sets(later, candidates, self._cheapest, most=most) if self._state.more() else ()
        if not steps:
            return _price(candidate for candidate in empty if _remove_empty(later, candidate))
        if len(steps) == 1:
            return self._savings_from(later, steps[0], candidates, empty)
        totals: list[float] = []
        for step in steps:
            branch = later.after(later.usage.copy())
            with later.world.trial():
                totals.append(self._savings_from(branch, step, candidates, empty))
        return max(totals)


def _is_better(total: float, other: float, proposal: Proposal) -> bool:
    """Return whether `total` exceeds `other` at all, and by at least the savings that the nodes' policies require."""
    return total > other and round(total - other, CENT_PARTS) >= threshold(proposal.nodes)


def _apply(later: PlanningState, step: Proposal) -> bool:
    """Carry out the command in the simulated world; False if the scheduler cannot place all pods at once."""
    world, usage = later.world, later.usage
    pods = [pod for name in sorted(candidate.name for candidate in step.nodes) for pod in world.remove(name)]
    templates = (step.target.template,) if step.target is not None else ()
    if step.spare:
        world.open(world.free_slots.of(templates)[0])
    packing = pack(world, pods, templates=templates, at_most=0 if step.spare else 1, whole=True)
    for candidate in step.nodes:
        world.forget(candidate.name)
        usage.resize(candidate.group.name, -1)
    if step.target is not None:
        usage.resize(step.target.group, 1)
    return packing.complete


def _remove_empty(later: PlanningState, candidate: Candidate) -> bool:
    """Remove the node if it is still empty and its group may shrink; return whether it was removed."""
    world, usage = later.world, later.usage
    if not all(pod.stays for pod in world.pods_on(candidate.name)) or usage.reason_not_to_shrink(candidate):
        return False
    world.remove(candidate.name)
    world.forget(candidate.name)
    usage.resize(candidate.group.name, -1)
    return True


def _price(nodes: Iterable[Candidate]) -> float:
    return sum(candidate.price or 0.0 for candidate in nodes)
