"""Estimate of what cheaper instance types would save: for each node that consolidation has considered and keeps, the
cheapest known type of its architecture that holds what its pods request, if its group launched that type.

It moves no pod and decides nothing. A node of a type is EC2's figures, less what is kept back on the group's own
node."""

from collections.abc import Collection

from leeward.disruption.candidates import Candidate
from leeward.disruption.command import MethodName, Plan
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.savings import reason_not_worth, saved
from leeward.model.instance_type import InstanceType
from leeward.model.quantity import CPU, MEMORY
from leeward.node_template.build import ExpectedNode
from leeward.node_template.resources import usable_memory
from leeward.snapshot.launchable import price_of

ARCHITECTURE = "kubernetes.io/arch"


def cheaper_types_save(state: PlanningState, plan: Plan, names: Collection[str]) -> float:
    """Return the dollars an hour that those of the named nodes would save together."""
    kept = (
        state.candidates[name]
        for name, verdicts in plan.verdicts.items()
        if name in names
        and name in state.candidates
        and (verdict := verdicts.get(MethodName.CONSOLIDATION)) is not None
        and verdict.candidate
        and verdict.stays
    )
    return sum(_saves(state, candidate) for candidate in kept)


def _saves(state: PlanningState, candidate: Candidate) -> float:
    launchable = state.snapshot.launchables.get(candidate.group.name)
    if launchable is None or not launchable.expected:
        return 0.0
    own = next(iter(launchable.expected.values()))
    prices = [
        price
        for name, kind in state.snapshot.types.items()
        if launchable.types != (name,)
        and (price := price_of(name, candidate.zone, launchable.capacity, state.snapshot.prices))
        and _holds(kind, launchable.expected.get(name), own, candidate)
    ]
    price = min(prices, default=None)
    if price is None or reason_not_worth([candidate], price):
        return 0.0
    return saved([candidate], price) or 0.0


def _holds(kind: InstanceType, known: ExpectedNode | None, own: ExpectedNode, candidate: Candidate) -> bool:
    """Return whether a node of the type has room for what the pods request. `own`: a node of the group."""
    architecture = candidate.node.labels.get(ARCHITECTURE, "")
    if architecture and architecture not in kind.architectures:
        return False
    capacity = {CPU: kind.vcpus * 1000, MEMORY: usable_memory(kind)}
    for resource, amount in capacity.items():
        kept_back = own.capacity.get(resource, 0) - own.allocatable.get(resource, 0)
        room = known.allocatable.get(resource, 0) if known is not None else amount - kept_back
        if sum(pod.needs.asked(resource) for pod in candidate.pods) > room:
            return False
    return True
