"""Plan of one run over all policies: the first method in the order that has a command, and why every node stays.

Nothing is executed here; the caller carries out the plan."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from leeward.disruption.command import MethodName, Outcome, Plan, Verdict
from leeward.disruption.methods import ORDER
from leeward.disruption.planning_state import PlanningState, always
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.time_budget import SearchTime, TimeBudget

SHARES = {
    MethodName.EXPIRATION: 0.25,
    MethodName.DRIFT: 0.4,
    MethodName.EMPTINESS: 1.0,  # it tries nothing
    MethodName.CONSOLIDATION: 1.0,
}  # of the time that is left


def plan_disruption(
    snapshot: ClusterSnapshot,
    *,
    only: MethodName | None = None,
    more: Callable[[], bool] = always,
    budget: TimeBudget | None = None,
) -> Plan:
    """Plan one run. `only`: this method alone acts. `budget`, and `more` before each try, limit the time for tries: the
    results until then are the plan; the candidates that are cheapest to disrupt are tried first.

    Every method gives its verdicts as if it were the one that acts, so that "why is it still here" has an answer.
    """
    return plan_in(PlanningState(snapshot, SearchTime(budget, more=more)), only=only)


def plan_in(state: PlanningState, *, only: MethodName | None = None) -> Plan:
    """Plan one run on an existing planning state. Each method has its share of the time that is left when its turn
    comes, so none can take the time of those after it.
    """
    snapshot = state.snapshot
    outcomes: dict[MethodName, Outcome] = {}
    ended: list[MethodName] = []
    for method in ORDER:
        own = state.part(SHARES[method.name])
        outcomes[method.name] = method.decide(own)
        ended += [method.name] if own.time.ended else []
    plan = _plan(snapshot, outcomes, only)
    return replace(plan, timed_out=tuple(ended))


def _plan(snapshot: ClusterSnapshot, outcomes: dict[MethodName, Outcome], only: MethodName | None) -> Plan:
    if only is None:
        outcomes[MethodName.EMPTINESS] = _emptiness(outcomes)
    acting = [name for name in outcomes if only in {None, name} and outcomes[name].commands]
    method = acting[0] if acting else None
    return Plan(
        method=method or only,
        commands=outcomes[method].commands if method else (),
        verdicts=by_node(snapshot, outcomes),
        warnings=snapshot.warnings,
    )


def _emptiness(outcomes: Mapping[MethodName, Outcome]) -> Outcome:
    """Return the outcome of emptiness. It has no command in this run where a consolidation saves more with the empty
    nodes present than it would after their removal: pods are about to land on them (docs/designs/disruption.md).
    """
    emptiness = outcomes[MethodName.EMPTINESS]
    if not outcomes[MethodName.CONSOLIDATION].before_empty:
        return emptiness
    why = "it is empty, but a consolidation that saves more with it there comes first"
    waiting = {name: Verdict(candidate=True, reason=why) for command in emptiness.commands for name in command.nodes}
    return Outcome(commands=(), verdicts={**emptiness.verdicts, **waiting})


def by_node(snapshot: ClusterSnapshot, outcomes: dict[MethodName, Outcome]) -> dict[str, dict[MethodName, Verdict]]:
    """Return the verdicts: for each node that of every method."""
    names = sorted(node.name for node in snapshot.nodes)
    return {node: {name: outcome.verdicts[node] for name, outcome in outcomes.items()} for node in names}
