"""Plan of the capacity that is launched ahead for the pods of a shifted zone (`zones.onShift: prescale`).

One node of its group, in a zone that is open, for each node of the zone that has a movable pod: the same template takes
the pods of the node. MaxSize is respected; what does not fit is named."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

from leeward.cluster.facets import known_or
from leeward.evacuation.plan import EvacuationInputs
from leeward.evacuation.pods import stuck_pods
from leeward.model.counts import count_of
from leeward.model.facts import ClusterFacts
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.times import format_instant
from leeward.model.well_known import INSTANCE_TYPE_LABEL
from leeward.model.zonal_shift import ShiftKind, ZonalShift
from leeward.model.zone_record import Prescale, PrescaleOrder
from leeward.placement.replacement import Known, Leaving, leaving_pods, replacement_scene
from leeward.placement.scene import SeededChance
from leeward.placement.subnets import place
from leeward.policy.document import OnShift

LAUNCHES = 100  # instances of one LaunchInstances call
NOT_PRESCALED = frozenset({ShiftKind.PRACTICE_RUN, ShiftKind.EVACUATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class PrescaleInputs:
    """Cluster at the begin of a shift. `facts`: of fn sync, with the zones that are closed now; `maxima`: MaxSize of
    each group as its owner chose it; `upgraded`: groups with an open upgrade, which accounts for its own new nodes.
    """

    evacuation: EvacuationInputs
    facts: ClusterFacts
    maxima: Mapping[str, int] = field(default_factory=dict)
    upgraded: frozenset[str] = frozenset()


def plan_prescale(inputs: PrescaleInputs, shift: ZonalShift, now: datetime) -> Prescale:
    """Return what is launched for the pods of the shifted zone: one order for each group and subnet. It is written
    before anything is requested. Its client tokens are of this plan alone: those of an earlier one for the same shift
    would return instances that have been terminated since.
    """
    state = inputs.evacuation.state
    wanted: dict[str, int] = {}
    refused: dict[str, str] = {}
    orders: list[PrescaleOrder] = []
    for group in sorted(state.selected, key=lambda group: group.name):
        policy = state.policy_of(group)
        nodes = movable_nodes(inputs.evacuation, group, shift.zone)
        if policy is None or policy.on_shift is not OnShift.PRESCALE or not nodes:
            continue
        wanted[group.name] = len(nodes)
        count, why = _fitting(inputs, group, len(nodes))
        token = f"{state.cluster}/{shift.key}/{format_instant(now)}"
        placed, nowhere = _orders(inputs, group, shift, nodes, count, token) if count else ([], "")
        orders += placed
        if reasons := "; ".join(filter(None, (why, nowhere))):
            refused[group.name] = reasons[:500]
    return Prescale(zone=shift.zone, shift=shift.key, began=now, wanted=wanted, orders=tuple(orders), refused=refused)


def movable_nodes(inputs: EvacuationInputs, group: Group, zone: str) -> tuple[tuple[Node, tuple[Pod, ...]], ...]:
    """Return the nodes of the group in the zone that have pods which could run in another zone, with those pods. A node
    whose termination is under way has a replacement of its own.
    """
    state, places = inputs.state, inputs.places(group, zone)
    claimed = known_or(state.claims, frozenset())
    found: list[tuple[Node, tuple[Pod, ...]]] = []
    for node in sorted(state.nodes, key=lambda node: node.name):
        mine = state.group_of(node) is group and state.zone_of(node) == zone
        if not mine or node.instance_id in claimed or node.deleting:
            continue
        pods = leaving_pods(tuple(inputs.pods.get(node.name, ())))
        stuck = {one.pod for one in stuck_pods(pods, inputs.volumes, places)}
        movable = tuple(pod for pod in pods if pod.key not in stuck)
        if movable:
            found.append((node, movable))
    return tuple(found)


def _fitting(inputs: PrescaleInputs, group: Group, wanted: int) -> tuple[int, str]:
    """Return how many of the nodes may be launched, and why not all."""
    paused = inputs.evacuation.state.policies.pauses.voluntary(group.name)
    upgraded = "an upgrade of the group is under way" if group.name in inputs.upgraded else ""
    if not_now := paused or upgraded or group.capacity_units:
        return 0, f"{wanted} of {count_of(wanted, 'node')} not launched: {not_now}"
    maximum = min(group.maximum, inputs.maxima.get(group.name, group.maximum))
    count = max(min(wanted, maximum - group.desired), 0)
    if count == wanted:
        return count, ""
    return (
        count,
        (
            f"{wanted - count} of {count_of(wanted, 'node')} without "
            f"room: MaxSize is {maximum}, {group.desired} are desired"
        ),
    )


def _orders(
    inputs: PrescaleInputs,
    group: Group,
    shift: ZonalShift,
    nodes: Sequence[tuple[Node, tuple[Pod, ...]]],
    count: int,
    token: str,
) -> tuple[list[PrescaleOrder], str]:
    """Return the orders by subnet, and why some nodes have no subnet. The busiest node says how many addresses a node
    takes; where its pods may land does not matter, they are those that could run in another zone.
    """
    node, pods = max(nodes, key=lambda one: (len(one[1]), one[0].name))
    free = tuple(replace(pod, node_selector={}, node_terms=(), claims=()) for pod in pods)
    places, kind = inputs.evacuation.places(group, shift.zone), node.labels.get(INSTANCE_TYPE_LABEL, "")
    leaving = Leaving(instance="", zone=shift.zone, subnet="", type=kind, millicores=node.cpu, pods=free)
    known = Known(facts=inputs.facts, subnets=places, cluster=inputs.evacuation.state.cluster)
    scene = replacement_scene(group, leaving, known)
    placement = place(scene, count, SeededChance(f"{group.name}/{shift.key}"))
    zones = {subnet.id: subnet.zone for subnet in places}
    orders: list[PrescaleOrder] = []
    for subnet, number in sorted(Counter(choice.subnet for choice in placement.choices).items()):
        others = tuple(f"{zones[name]}/{name}" for name in sorted(zones) if zones[name] != zones[subnet])
        for first in range(0, number, LAUNCHES):
            orders.append(
                PrescaleOrder(
                    key=launch_token(token, group.name, subnet, first),
                    group=group.name,
                    zone=zones[subnet],
                    subnet=subnet,
                    count=min(LAUNCHES, number - first),
                    others=others,
                )
            )
    return orders, "" if placement.complete else placement.sentence


def launch_token(before: str, group: str, subnet: str, number: object) -> str:
    """Return the client token of one launch (at most 64 characters): a repeated request is idempotent. `before`: the
    plan, or the token of the order that this one follows.
    """
    launch = f"{before}/{group}/{subnet}/{number}"
    return f"leeward-prescale-{sha256(launch.encode()).hexdigest()[:32]}"
