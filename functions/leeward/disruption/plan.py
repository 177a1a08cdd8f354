"""Plan of one run over all policies: the first method in the order that has a command, and why every node stays; and
the validation of its commands on a later snapshot. Nothing is executed here; the caller carries out the plan.

Source of the validation: Karpenter, pkg/controllers/disruption/validation.go. Of an empty set only the nodes that have
changed are dropped, because the others do not depend on them; any other command holds as a whole or not at all. Once
the replacements of a run have come up, its commands are checked as deletions beside nodes that exist, and the cost of a
new node is compared with the planned cost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from leeward.budgets.usage import BudgetUsage
from leeward.disruption.candidates import Candidate
from leeward.disruption.command import (
    Command,
    CommandDecision,
    DisruptionPlan,
    MethodName,
    MethodOutcome,
    MethodVerdict,
    PlannedReplacement,
)
from leeward.disruption.methods import ORDER, Method
from leeward.disruption.observation import seen_nodes, without_own_taints
from leeward.disruption.planning_state import (
    PlanningState,
    TrialRemoval,
    always,
    apply,
    in_zone,
    on_free_capacity,
    replacement,
    replacements,
    with_new_nodes,
)
from leeward.disruption.record import DisruptionRecord
from leeward.disruption.savings import reason_not_worth, saved, score_of
from leeward.disruption.targets import LaunchTarget, targets
from leeward.drift.detect import wanted_launches
from leeward.scheduling.outcome import NO_TIME
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.time_budget import SearchTime, TimeBudget

SHARES = {
    MethodName.EXPIRATION: 0.25,
    MethodName.DRIFT: 0.4,
    MethodName.EMPTINESS: 1.0,  # it tries nothing
    MethodName.CONSOLIDATION: 1.0,
}  # of the time that is left
CENTS = 1e-6  # dollars an hour that are no difference


def plan_disruption(
    snapshot: ClusterSnapshot,
    *,
    only: MethodName | None = None,
    more: Callable[[], bool] = always,
    budget: TimeBudget | None = None,
) -> DisruptionPlan:
    """Plan one run. `only`: this method alone acts. `budget`, and `more` before each try, limit the time for tries: the
    results until then are the plan; the candidates that are cheapest to disrupt are tried first.

    Every method gives its verdicts as if it were the one that acts, so that "why is it still here" has an answer.
    """
    return plan_in(PlanningState(snapshot, SearchTime(budget, more=more)), only=only)


def plan_in(state: PlanningState, *, only: MethodName | None = None) -> DisruptionPlan:
    """Plan one run on an existing planning state. Each method has its share of the time that is left when its turn
    comes, so none can take the time of those after it.
    """
    snapshot = state.snapshot
    outcomes: dict[MethodName, MethodOutcome] = {}
    ended: list[MethodName] = []
    for method in ORDER:
        own = state.part(SHARES[method.name])
        outcomes[method.name] = method.decide(own)
        ended += [method.name] if own.time.ended else []
    plan = _plan(snapshot, outcomes, only)
    return replace(plan, timed_out=tuple(ended))


def _plan(
    snapshot: ClusterSnapshot, outcomes: dict[MethodName, MethodOutcome], only: MethodName | None
) -> DisruptionPlan:
    if only is None:
        outcomes[MethodName.EMPTINESS] = _emptiness(outcomes)
    acting = [name for name in outcomes if only in {None, name} and outcomes[name].commands]
    method = acting[0] if acting else None
    return DisruptionPlan(
        method=method or only,
        commands=outcomes[method].commands if method else (),
        verdicts=by_node(snapshot, outcomes),
        warnings=snapshot.warnings,
    )


def _emptiness(outcomes: Mapping[MethodName, MethodOutcome]) -> MethodOutcome:
    """Return the outcome of emptiness. It has no command in this run where a consolidation saves more with the empty
    nodes present than it would after their removal: pods are about to land on them (docs/designs/disruption.md).
    """
    emptiness = outcomes[MethodName.EMPTINESS]
    if not outcomes[MethodName.CONSOLIDATION].before_empty:
        return emptiness
    why = "it is empty, but a consolidation that saves more with it there comes first"
    waiting = {
        name: MethodVerdict(candidate=True, reason=why) for command in emptiness.commands for name in command.nodes
    }
    return MethodOutcome(commands=(), verdicts={**emptiness.verdicts, **waiting})


def by_node(
    snapshot: ClusterSnapshot, outcomes: dict[MethodName, MethodOutcome]
) -> dict[str, dict[MethodName, MethodVerdict]]:
    """Return the verdicts: for each node that of every method."""
    names = sorted(node.name for node in snapshot.nodes)
    return {node: {name: outcome.verdicts[node] for name, outcome in outcomes.items()} for node in names}


def validate(
    snapshot: ClusterSnapshot,
    method: MethodName | None,
    commands: Iterable[Command],
    more: Callable[[], bool] = always,
    budget: TimeBudget | None = None,
) -> DisruptionPlan:
    """Return the commands that still hold, in their order, with current savings and cost; the verdicts say why others
    do not.

    `method`: the earlier plan's, None where none acted. `more`: for tries of other methods, whose verdicts are given
    too; `budget`: for the check itself, a command that it does not reach holds no longer.
    """
    return _validated(PlanningState(snapshot, SearchTime(budget, more=more)), method, commands)[0]


def _validated(
    state: PlanningState, method: MethodName | None, commands: Iterable[Command]
) -> tuple[DisruptionPlan, Mapping[tuple[str, ...], str]]:
    """Return the plan of `validate`, and why pods of a command have no place, by the command's nodes."""
    snapshot = state.snapshot
    outcomes = {one.name: one.decide(state) for one in ORDER}
    verdicts = by_node(snapshot, outcomes)
    valid: list[Command] = []
    unplaced: dict[tuple[str, ...], str] = {}
    acting = next((one for one in ORDER if one.name is method), None)
    if acting is not None:
        check = _Check(state, acting, unplaced)
        with state.world.trial():
            for command in commands:
                still, why = check.command(command)
                valid += [still] if still else []
                for name in command.nodes:
                    holds = still is not None and name in still.nodes
                    said = f"the earlier command is {'still valid' if holds else f'no longer valid: {why}'}"
                    if name in verdicts:
                        verdicts[name][acting.name] = MethodVerdict(candidate=name in state.candidates, reason=said)
    return DisruptionPlan(method=method, commands=tuple(valid), verdicts=verdicts, warnings=snapshot.warnings), unplaced


class _Check:
    """Check of one method's commands, each in the world that those before it leave behind. `unplaced`: filled with the
    commands whose pods have no place.
    """

    def __init__(self, state: PlanningState, method: Method, unplaced: dict[tuple[str, ...], str]) -> None:
        self._state, self._method, self._unplaced = state, method, unplaced
        self._usage: BudgetUsage = state.usage.copy()
        priced = method.name is MethodName.CONSOLIDATION
        self._targets = {one.group: one for one in targets(state.snapshot, priced=priced)[0]}

    def command(self, command: Command) -> tuple[Command | None, str]:
        """Return the command as it would be now, else None and why."""
        alone = {name: self._reason_not_node(name) for name in command.nodes}
        if self._method.name is MethodName.EMPTINESS:
            command = replace(command, nodes=tuple(name for name in command.nodes if not alone[name]))
            alone_why = "; ".join(why for why in alone.values() if why)
            if not command.nodes:
                return None, alone_why
        why = "; ".join(f"{name}: {alone[name]}" for name in command.nodes if alone[name])
        if why:
            return None, why
        nodes = [self._state.candidates[name] for name in command.nodes]
        return self._sized(command, nodes)

    def _reason_not_node(self, name: str) -> str:
        candidate = self._state.candidates.get(name)
        if candidate is None:
            return self._state.reasons_to_keep.get(name, "the node is not there any more")
        return self._method.reason_to_keep(self._state, candidate) or self._usage.reason_to_keep(
            candidate, self._method.reason
        )

    def _sized(self, command: Command, nodes: Sequence[Candidate]) -> tuple[Command | None, str]:
        """Check budgets and sizes for all nodes together, then capacity, then price."""
        trial = self._usage.copy()
        for candidate in nodes:
            why = trial.reason_to_keep(candidate, self._method.reason)
            if why:
                return None, why
            trial.take(candidate)
        grows = command.replacements[0].group if command.replacements else None
        if not trial.may_shrink(nodes, grows=grows):
            return None, "a group would fall below its MinSize"
        return self._placed(command, nodes, trial)

    def _placed(self, command: Command, nodes: Sequence[Candidate], trial: BudgetUsage) -> tuple[Command | None, str]:
        coming: tuple[PlannedReplacement, ...] = ()
        if command.decision is CommandDecision.DELETE:
            removal = on_free_capacity(self._state, nodes)
        else:
            coming, removal = self._launched(command, nodes)
        why = removal.why
        if why and why != NO_TIME:
            self._unplaced[command.nodes] = why
        price = sum(one.price or 0.0 for one in coming)
        if not why and self._method.name is MethodName.CONSOLIDATION:
            why = reason_not_worth(nodes, price)
        if why:
            return None, why
        apply(self._state, nodes, removal)
        for candidate in nodes:
            trial.resize(candidate.group.name, -1)
        for one in coming:
            trial.resize(one.group, 1)
        self._usage = trial
        savings = saved(nodes, price)
        kept = savings if savings is None or self._method.name is MethodName.CONSOLIDATION else max(savings, 0.0)
        found = score_of(nodes, price) if self._method.name is MethodName.CONSOLIDATION else None
        score = None if found is None else round(found.value, 4)
        cost = sum(one.cost for one in nodes)
        return replace(command, replacements=coming, savings=kept, cost=cost, score=score), ""

    def _launched(
        self, command: Command, nodes: Sequence[Candidate]
    ) -> tuple[tuple[PlannedReplacement, ...], TrialRemoval]:
        """Check that the group still launches nothing but the planned types, and that the pods fit on them, in the
        zones that are returned. Where several nodes were planned, they may come up in any zone.
        """
        planned = command.replacements[0]
        target, several = self._targets.get(planned.group), len(command.replacements) > 1
        why = self._reason_not_launched(planned, target, nodes)
        if why or target is None:
            return (), TrialRemoval(why=why)
        if several:
            removal = with_new_nodes(self._state, nodes, target, at_most=len(command.replacements))
            return tuple(replacements(self._state, nodes, target, removal)), removal
        tried = {zone: in_zone(self._state, nodes, target, zone) for zone in planned.zones if zone in target.by_zone}
        zones = tuple(zone for zone, removal in tried.items() if not removal.why)
        if not zones:
            return (), TrialRemoval(why=f"the pods do not fit on a new node of {planned.group} any more")
        return (replacement(target, zones),), tried[zones[0]]

    def _reason_not_launched(
        self, planned: PlannedReplacement, target: LaunchTarget | None, nodes: Sequence[Candidate]
    ) -> str:
        if target is None:
            return f"group {planned.group} is no target any more"
        launchable = target.launchable
        if not set(launchable.types) <= set(planned.types) or launchable.capacity is not planned.capacity:
            return f"group {planned.group} would launch something else now"
        return "" if target.can_launch(nodes) else f"group {planned.group} is at its MaxSize"


def revalidated(
    record: DisruptionRecord, snapshot: ClusterSnapshot, deployment: str, budget: TimeBudget | None = None
) -> DisruptionRecord:
    """Return the record with the commands as they are valid now; the others are dropped, each with its reason. Those
    whose new nodes do not serve are remembered, and so is what the new nodes show of their launches.
    """
    snapshot = without_own_taints(snapshot, record, deployment)
    planned = {number: _as_deletion(record, number, command) for number, command in record.active_commands.items()}
    state = PlanningState(snapshot, SearchTime(budget, more=lambda: False))
    plan, unplaced = _validated(state, record.method, planned.values())
    record = replace(record, wanted=wanted_launches(snapshot, state.drift.values()), seen=seen_nodes(snapshot))
    dropped: dict[int, str] = {}
    unfit: dict[int, str] = {}
    commands = list(record.commands)
    left = list(plan.commands)
    for number, command in planned.items():
        still = next((one for one in left if set(one.nodes) <= set(command.nodes)), None)
        expensive = _why_expensive(record, number, snapshot)
        if still is None or expensive:
            dropped[number] = expensive or _why(plan.verdicts, command, record)
            if expensive or command.nodes in unplaced:
                unfit[number] = expensive or unplaced[command.nodes]
        if still is not None:
            left.remove(still)
            # reduced to the nodes of an empty set that are still empty, or to the zones that are still possible
            coming = still.replacements or commands[number].replacements
            commands[number] = replace(commands[number], nodes=still.nodes, replacements=coming)
    record = record.remember_failed(unfit, snapshot.now) if unfit else record
    return replace(record.drop(dropped), commands=tuple(commands))


def _as_deletion(record: DisruptionRecord, number: int, command: Command) -> Command:
    """Return the command as a deletion once all its replacements have come up."""
    launched = record.new_of(number)
    if command.decision is CommandDecision.DELETE or len(launched) < len(command.replacements):
        return command
    return replace(command, decision=CommandDecision.DELETE, replacements=())


def _why_expensive(record: DisruptionRecord, number: int, snapshot: ClusterSnapshot) -> str:
    nodes = {node.instance_id: node for node in snapshot.nodes}
    for new in record.new_of(number):
        wanted = record.planned(record.launched[new].key)
        price = snapshot.price_of(nodes[new]) if new in nodes else None
        if price is not None and wanted.price is not None and price > wanted.price + CENTS:
            return f"{new} costs ${price:.4f} an hour, planned were ${wanted.price:.4f} at the most"
    return ""


def _why(verdicts: Mapping[str, Mapping[MethodName, MethodVerdict]], command: Command, record: DisruptionRecord) -> str:
    said = [verdicts[name][record.method].reason for name in command.nodes if record.method in verdicts.get(name, {})]
    return "; ".join(dict.fromkeys(said)) or f"{', '.join(command.nodes)}: the nodes are not there any more"
