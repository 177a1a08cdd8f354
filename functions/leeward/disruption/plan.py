"""One round over all policies: the first method in the order that has something to do, and why every node stays.

Nothing is done here; carrying a plan out belongs to whoever asked for it."""

from collections.abc import Callable

from leeward.disruption.command import MethodName, Outcome, Plan, Verdict
from leeward.disruption.methods import ORDER
from leeward.disruption.round import Round, always
from leeward.snapshot.cluster import ClusterSnapshot


def plan_round(snapshot: ClusterSnapshot, *, only: MethodName | None = None, more: Callable[[], bool] = always) -> Plan:
    """`only`: this method alone acts. `more` says whether there is time for another try: what has been found until then
    is the plan, the cheapest to disrupt having been looked at first.

    Every method gives its verdicts as if it were the one that acts, so that "why is it still here" has an answer.
    """
    found = Round(snapshot, more)
    outcomes = {method.name: method.decide(found) for method in ORDER}
    acting = [name for name in outcomes if only in {None, name} and outcomes[name].commands]
    method = acting[0] if acting else None
    return Plan(
        method=method or only,
        commands=outcomes[method].commands if method else (),
        verdicts=by_node(snapshot, outcomes),
        remarks=snapshot.remarks,
    )


def by_node(snapshot: ClusterSnapshot, outcomes: dict[MethodName, Outcome]) -> dict[str, dict[MethodName, Verdict]]:
    """The verdicts, for each node what every method says."""
    names = sorted(node.name for node in snapshot.nodes)
    return {node: {name: outcome.verdicts[node] for name, outcome in outcomes.items()} for node in names}
