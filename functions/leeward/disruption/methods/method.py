"""Interface of a disruption method, and the common part of expiration and drift.

Expiration and drift disrupt nodes one after the other, empty ones together first. A node whose pods fit on free
capacity is deleted where its group may shrink; else its own group launches the required capacity before the node is
terminated, and only where that group cannot, another one. Every command is tried in the world that the commands before
it leave behind, but counts on no node that they launch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from leeward.budgets.usage import BudgetUsage
from leeward.disruption.candidates import Candidate
from leeward.disruption.command import (
    Command,
    CommandDecision,
    MethodName,
    MethodOutcome,
    MethodVerdict,
)
from leeward.disruption.do_not_disrupt import why_node_is_kept
from leeward.disruption.planning_state import (
    PlanningState,
    TrialRemoval,
    apply,
    on_free_capacity,
    replacement,
    replacements,
    with_new_nodes,
)
from leeward.disruption.savings import saved
from leeward.disruption.targets import LaunchTarget, targets, why_failed_before
from leeward.policy.document import DisruptionReason, NodePolicy
from leeward.scheduling import outcome

NO_TIME = outcome.NO_TIME
Said = Callable[[Candidate], str]


class Method(Protocol):
    """One disruption method. It leaves the run's world and budgets unchanged."""

    @property
    def name(self) -> MethodName:
        """Name of the method as in `leeward plan --method`."""
        ...

    @property
    def reason(self) -> DisruptionReason:
        """Reason whose budgets the method spends."""
        ...

    def reason_to_keep(self, state: PlanningState, candidate: Candidate) -> str:
        """Return why the method skips the candidate, empty when it considers it."""
        ...

    def decide(self, state: PlanningState) -> MethodOutcome:
        """Return the commands of this run, and a verdict on every node."""
        ...


def considered(method: Method, state: PlanningState) -> tuple[list[Candidate], dict[str, MethodVerdict]]:
    """Return the considered candidates, the cheapest to disrupt first, and the verdicts on all other nodes."""
    verdicts = {node: MethodVerdict(candidate=False, reason=why) for node, why in state.reasons_to_keep.items()}
    taken: list[Candidate] = []
    for candidate in state.candidates.values():
        why = method.reason_to_keep(state, candidate)
        if why:
            verdicts[candidate.name] = MethodVerdict(candidate=False, reason=why)
        else:
            taken.append(candidate)
    return sorted(taken, key=lambda candidate: candidate.rank), verdicts


def in_order(state: PlanningState, verdicts: Mapping[str, MethodVerdict]) -> dict[str, MethodVerdict]:
    """Return the verdicts sorted by the names of all nodes."""
    return {name: verdicts[name] for name in sorted(node.name for node in state.snapshot.nodes)}


def no_section(policy: NodePolicy) -> str:
    """Return why no node of the policy is disrupted: it has no section that switches voluntary disruption on."""
    return f"policy {policy.name} has no disruption section"


def replace_in_turn(
    method: Method, state: PlanningState, *, rank: Callable[[Candidate], datetime], said: Said
) -> MethodOutcome:
    """Decide about the candidates one after the other. `rank`: their order; `said`: why a node is disrupted."""
    taken, verdicts = considered(method, state)
    ordered = sorted(taken, key=lambda one: (bool(one.pods), rank(one), one.rank))
    commands = _Commands(method, state, said)
    with state.world.trial():
        for candidate in ordered:
            verdicts[candidate.name] = MethodVerdict(candidate=True, reason=commands.take(candidate))
    return MethodOutcome(commands=commands.all(), verdicts=in_order(state, verdicts))


class _Commands:
    """Decisions of one method's run so far."""

    def __init__(self, method: Method, state: PlanningState, said: Said) -> None:
        self._method, self._state, self._said = method, state, said
        self._usage: BudgetUsage = state.usage.copy()
        known, self._no_targets = targets(state.snapshot, priced=False)
        self._targets: Sequence[LaunchTarget] = known
        self._empty: list[Candidate] = []
        self._commands: list[Command] = []

    def all(self) -> tuple[Command, ...]:
        """Return the commands, the empty nodes' first, in one."""
        if not self._empty:
            return tuple(self._commands)
        empty = sorted(self._empty, key=lambda one: one.name)
        why = self._said(empty[0]) if len(empty) == 1 else f"{len(empty)} nodes: {self._method.reason}"
        command = Command(
            decision=CommandDecision.DELETE,
            nodes=tuple(one.name for one in empty),
            reason=f"{why}; no pod has to move",
            savings=saved(empty, 0.0),
        )
        return (command, *self._commands)

    def take(self, candidate: Candidate) -> str:
        """Decide about one node, and return the sentence of its verdict."""
        said = self._said(candidate)
        why = self._usage.reason_to_keep(candidate, self._method.reason)
        if not why and not self._state.more():
            why = NO_TIME
        return f"{said}; {why}" if why else f"{said}; {self._command_for(candidate, said)}"

    def _command_for(self, candidate: Candidate, said: str) -> str:
        if not why_node_is_kept(candidate.node) and not self._usage.reason_not_to_shrink(candidate):
            removal = on_free_capacity(self._state, [candidate])
            if not removal.why:
                return self._deleted(candidate, removal, said)
        own = [one for one in self._targets if one.group == candidate.group.name]
        others = [one for one in self._targets if one.group != candidate.group.name and one.can_launch([candidate])]
        none = self._no_targets.get(candidate.group.name, "")
        why = f"its group {candidate.group.name} can launch nothing now{f': {none}' if none else ''}"
        for target in (*own, *others):
            failed = why_failed_before(self._state.snapshot, [candidate], target.group)
            if failed:
                why = failed
                continue
            removal = with_new_nodes(self._state, [candidate], target, at_most=None)
            if not removal.why and self._usage.may_shrink([candidate], grows=target.group):
                return self._replaced(candidate, target, removal, said)
            why = removal.why or f"its group {candidate.group.name} is at its MinSize"
        return why

    def _deleted(self, candidate: Candidate, removal: TrialRemoval, said: str) -> str:
        if candidate.pods or self._state.arrivals.get(candidate.name):
            why = f"{said}; its pods fit on other nodes"
            self._add(CommandDecision.DELETE, candidate, removal, why, saved([candidate], 0.0))
        else:
            self._empty.append(candidate)
        self._spend(candidate, None)
        apply(self._state, [candidate], removal)
        return "its pods fit on other nodes, it is removed" if candidate.pods else "no pod has to move, it is removed"

    def _replaced(self, candidate: Candidate, target: LaunchTarget, removal: TrialRemoval, said: str) -> str:
        """Replace the node. Its group gets a new node even where the pods would fit without: it is not to shrink."""
        zones = (candidate.zone,) if candidate.zone in target.by_zone else tuple(target.by_zone)
        coming = replacements(self._state, [candidate], target, removal) or [replacement(target, zones)]
        prices = [one.price for one in coming]
        known = None if any(price is None for price in prices) else sum(price or 0.0 for price in prices)
        savings = None if known is None else saved([candidate], known)
        savings = None if savings is None else max(savings, 0.0)
        nodes = f"{len(coming)} new nodes" if len(coming) > 1 else "a new node"
        why = f"{said}; {nodes} of {target.group} first"
        command = self._add(CommandDecision.REPLACE, candidate, removal, why, savings)
        self._commands[-1] = replace(command, replacements=tuple(coming))
        self._spend(candidate, target.group)
        apply(self._state, [candidate], removal)
        return f"{nodes} of {target.group} will take its place"

    def _add(
        self, decision: CommandDecision, candidate: Candidate, removal: TrialRemoval, why: str, savings: float | None
    ) -> Command:
        command = Command(
            decision=decision,
            nodes=(candidate.name,),
            reason=why,
            savings=savings,
            cost=candidate.cost,
            placements=removal.placements,
        )
        self._commands.append(command)
        return command

    def _spend(self, candidate: Candidate, grows: str | None) -> None:
        self._usage.take(candidate)
        self._usage.resize(candidate.group.name, -1)
        if grows:
            self._usage.resize(grows, 1)
