"""Lookahead: computes what a command saves together with the runs that can follow it.

The command that saves most now may leave nodes that no later command can remove, and an empty node that is removed now
may have been the free capacity for a more expensive one. So where candidates are few, each of the best commands is
carried out in the world, followed each time by the command that saves most then, until no command is left. A command
other than the first is chosen only where more is saved in the end, by at least the savings that its nodes' policies
require of a command; the runs after it decide again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leeward.disruption.candidates import Candidate
from leeward.disruption.methods.multi_node_consolidation import best_sets
from leeward.disruption.methods.proposals import Proposal, with_spare
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.savings import CENT_PARTS, threshold
from leeward.disruption.targets import Target
from leeward.scheduling.packing import pack

SPARES = 16  # of these, as many are evaluated


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Chosen proposal. `total`: dollars an hour with the commands that can follow, None where that makes no difference
    to the choice. `before_empty`: it saves more than it would after the empty nodes have been removed.
    """

    proposal: Proposal
    total: float | None = None
    before_empty: bool = False


class Lookahead:
    """Lookahead of one run. `empty`: the nodes that emptiness would delete; `near`: the targets that later commands
    may launch.
    """

    def __init__(
        self, found: PlanningState, candidates: Sequence[Candidate], empty: Sequence[Candidate], near: Sequence[Target]
    ) -> None:
        self._found, self._candidates, self._empty, self._near = found, candidates, empty, near

    def choose(self, best: Proposal, others: Iterable[Proposal]) -> Chosen:
        """Return `best` unless another proposal saves more in the end; the choice so far when the time is used up."""
        others = list(others)
        total = self._total(best)
        chosen, first, most = best, total, total
        for one in (*others, *self._spares((best, *others))):
            total = self._total(one)
            if not self._found.more():
                break
            if total > most and _clearly(total, first, one):
                chosen, most = one, total
        said = most if chosen is not best else None
        if not self._empty:
            return Chosen(proposal=chosen, total=said)
        after = self._total(None)
        before = self._found.more() and _clearly(most, after, chosen)
        return Chosen(proposal=chosen, total=most if before else said, before_empty=before)

    def _spares(self, known: Iterable[Proposal]) -> list[Proposal]:
        """Return deletions, each with a node of each target that none of them needs, the best first."""
        bare = [one for one in known if one.target is None]
        tried = (with_spare(self._found, one, target) for one in bare for target in self._near)
        found = [one for one in tried if one is not None]
        return sorted(found, key=lambda one: one.worth, reverse=True)[:SPARES]

    def _total(self, first: Proposal | None) -> float:
        """Return the dollars an hour that are saved in the end. None: the empty nodes are removed first."""
        later = self._found.after(self._found.spending.copy())
        with self._found.world.trial():
            return round(self._until_the_end(later, first), CENT_PARTS)

    def _until_the_end(self, later: PlanningState, step: Proposal | None) -> float:
        """Carry out all commands. Empty nodes that get no pod are removed last; without a `step`, first."""
        left, empty, total = list(self._candidates), list(self._empty), 0.0
        if step is None:
            gone = [one for one in empty if _emptied(later, one)]
            empty, total = [one for one in empty if one not in gone], _price(gone)
            step = _next(later, left, self._near)
        while step is not None:
            total += step.worth[0]
            if not _carried_out(later, step):
                return total
            left = [one for one in left if one not in step.nodes]
            step = _next(later, left, self._near)
        return total + _price(one for one in empty if _emptied(later, one))


def _next(later: PlanningState, left: Sequence[Candidate], near: Sequence[Target]) -> Proposal | None:
    return next(iter(best_sets(later, left, near)), None)


def _clearly(total: float, other: float, proposal: Proposal) -> bool:
    """Return whether the total is better by the savings that the nodes' policies require, and never by nothing."""
    return total > other and round(total - other, CENT_PARTS) >= threshold(proposal.nodes)


def _carried_out(later: PlanningState, step: Proposal) -> bool:
    """Remove the nodes and put their pods where the scheduler does; False where it cannot place them all at once."""
    world, spending = later.world, later.spending
    pods = [pod for name in sorted(one.name for one in step.nodes) for pod in world.remove(name)]
    templates = (step.target.template,) if step.target is not None else ()
    if step.spare:
        world.open(world.openings.of(templates)[0])
    packing = pack(world, pods, templates=templates, at_most=0 if step.spare else 1, whole=True)
    for one in step.nodes:
        world.forget(one.name)
        spending.resize(one.group.name, -1)
    if step.target is not None:
        spending.resize(step.target.group, 1)
    return packing.complete


def _emptied(later: PlanningState, candidate: Candidate) -> bool:
    """Return whether the empty node can be removed, and remove it: no pod has come to it, and its group may shrink."""
    world, spending = later.world, later.spending
    if not all(pod.stays for pod in world.pods_on(candidate.name)) or spending.why_not_smaller(candidate):
        return False
    world.remove(candidate.name)
    world.forget(candidate.name)
    spending.resize(candidate.group.name, -1)
    return True


def _price(nodes: Iterable[Candidate]) -> float:
    return sum(one.price or 0.0 for one in nodes)
