"""Instance types that consolidation would want and may not use: cheaper ones on which the pods of a node would fit if
its group launched them.

A node that consolidation has considered and that stays is tried with each cheaper known type in place of what its group
launches now. The node of a type that no group launches is an estimate: EC2's figures, less what is kept back on a node
that the group launches today."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from leeward.disruption.candidates import Candidate
from leeward.disruption.command import MethodName, Plan, Verdict
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.removal import with_new_nodes
from leeward.disruption.savings import reason_not_worth, saved
from leeward.disruption.targets import Target, target_of, why_no_spot
from leeward.model import well_known
from leeward.model.instance_type import InstanceType
from leeward.model.quantity import CPU, MEMORY, PODS
from leeward.node_template.build import ExpectedNode
from leeward.node_template.resources import usable_memory
from leeward.scheduling.selectors import Operator, Requirement
from leeward.snapshot.launchable import Launchable, price_of, smallest

MOST_NODES = 50  # that are tried, by name
MOST_TRIES = 8  # types for each node, the cheapest first
ARCHITECTURE = "kubernetes.io/arch"
_TYPE_LABELS = (well_known.INSTANCE_TYPE_LABEL, "beta.kubernetes.io/instance-type")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedType:
    """Cheapest type on which the pods of a node would fit. `price` and `savings` in dollars an hour; `reason`: why no
    command uses it.
    """

    node: str
    group: str
    type: str
    price: float
    savings: float
    reason: str


def wanted_types(state: PlanningState, plan: Plan) -> tuple[WantedType, ...]:
    """Return the wanted type of each node that consolidation has considered and keeps, by name of the node."""
    names = [name for name, verdicts in sorted(plan.verdicts.items()) if _stays(verdicts.get(MethodName.CONSOLIDATION))]
    nodes = [state.candidates[name] for name in names if name in state.candidates][:MOST_NODES]
    found = (_wanted(state, node) for node in nodes)
    return tuple(one for one in found if one is not None)


def _stays(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.candidate and verdict.stays


def _wanted(state: PlanningState, candidate: Candidate) -> WantedType | None:
    launchable = state.snapshot.launchables.get(candidate.group.name)
    if launchable is None or not launchable.expected:
        return None
    for kind, target in islice(_cheaper(state, candidate, launchable), MOST_TRIES):
        if not state.more():
            return None
        removal = with_new_nodes(state, [candidate], target)
        if not removal.why and removal.new_nodes and not reason_not_worth([candidate], removal.price):
            return WantedType(
                node=candidate.name,
                group=launchable.group,
                type=kind.name,
                price=removal.price,
                savings=saved([candidate], removal.price) or 0.0,
                reason=_why_unused(candidate, launchable, kind),
            )
    return None


def _cheaper(
    state: PlanningState, candidate: Candidate, launchable: Launchable
) -> Iterator[tuple[InstanceType, Target]]:
    """Yield the cheaper types of the node's architecture that are large enough for its pods, the cheapest first."""
    snapshot, architecture = state.snapshot, candidate.node.labels.get(ARCHITECTURE, "")
    priced = [
        (price, name)
        for name in snapshot.types
        if (price := price_of(name, candidate.zone, launchable.capacity, snapshot.prices))
    ]
    for price, name in sorted(priced):
        kind = snapshot.types[name]
        if launchable.types == (name,) or reason_not_worth([candidate], price):
            continue
        if architecture and architecture not in kind.architectures:
            continue
        node = _expected(launchable, kind)
        target = target_of(_as_if(launchable, kind, node, candidate.zone, price), (), priced=True)
        if _large_enough(candidate, node) and not why_no_spot(candidate, target):
            yield kind, target


def _large_enough(candidate: Candidate, node: ExpectedNode) -> bool:
    return all(
        sum(pod.needs.asked(resource) for pod in candidate.pods) <= node.allocatable.get(resource, 0)
        for resource in (CPU, MEMORY)
    )


def _expected(launchable: Launchable, kind: InstanceType) -> ExpectedNode:
    """Return the node of the type if the group launched it."""
    known = launchable.expected.get(kind.name)
    if known is not None:
        return known
    own = next(iter(launchable.expected.values()))
    labels = {**own.labels, **{key: kind.name for key in _TYPE_LABELS if key in own.labels}}
    capacity = {CPU: kind.vcpus * 1000, MEMORY: usable_memory(kind)}
    kept = {name: own.capacity.get(name, 0) - own.allocatable.get(name, 0) for name in capacity}
    allocatable: Mapping[str, int] = {name: max(0, amount - kept[name]) for name, amount in capacity.items()}
    pods = min(own.allocatable.get(PODS, 0), kind.max_enis * (kind.ips_per_eni - 1) + 2)
    rest = {name: amount for name, amount in own.allocatable.items() if name not in capacity and "/" not in name}
    return replace(own, labels=labels, capacity=capacity, allocatable={**rest, **allocatable, PODS: pods})


def _as_if(launchable: Launchable, kind: InstanceType, node: ExpectedNode, zone: str, price: float) -> Launchable:
    """Return the launches of the group if the type were its only one, in the zone of the node."""
    offerings = tuple(replace(one, price=price) for one in launchable.template.offerings if one.zone == zone)
    template = replace(launchable.template, node=smallest(launchable.group, (node,)), offerings=offerings)
    return replace(launchable, types=(kind.name,), expected={kind.name: node}, prices={zone: price}, template=template)


def _why_unused(candidate: Candidate, launchable: Launchable, kind: InstanceType) -> str:
    if kind.name in launchable.types:
        others = [name for name in launchable.types if name != kind.name]
        return f"group {launchable.group} may launch {_some(others)} as well: the most expensive type counts"
    labels = _expected(launchable, kind).labels
    for wanted in candidate.policy.requirements:
        asked = Requirement(key=wanted.key, operator=Operator(wanted.operator), values=wanted.values)
        if not asked.matches(labels):
            return f"requirement {wanted.key} of policy {candidate.policy.name} does not allow it"
    return f"group {launchable.group} launches {_some(launchable.types)} alone"


def _some(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} other types"
