"""State of a cluster after the commands of a plan, as the plan promises it: nodes gone, their pods where the plan has
placed them, and new nodes with their DaemonSet pods.

Decides what a new node is: of the types and zones that its group may launch the most expensive, as the plan counts it,
with no more room than the smallest type. Its daemon pods are those that the scheduler's model gives a new node."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from leeward.cluster.facets import Known
from leeward.disruption.command import Command, Replacement
from leeward.model import well_known
from leeward.model.group import Group, GroupInstance
from leeward.model.instance import CapacityType, Instance
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.scheduling.nodes import HOSTNAME_LABEL, NodeSpec
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable, price_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """New node with everything that a snapshot holds of it."""

    node: Node
    spec: NodeSpec
    instance: Instance
    group: str
    daemons: tuple[PodSpec, ...]


def after_commands(snapshot: ClusterSnapshot, commands: Sequence[Command]) -> ClusterSnapshot:
    """Return the snapshot after these commands, at the same moment. Pods that the plan has not placed end with their
    node where they belong to it, else they have no node and are pending.
    """
    removed = {name for command in commands for name in command.nodes}
    arrivals: list[Arrival] = []
    places: dict[str, str] = {}  # pod -> node
    for command in commands:
        new = _arrivals(snapshot, command, len(arrivals))
        arrivals += new.values()
        renamed = {planned: arrival.node.name for planned, arrival in new.items()}
        places |= {pod: renamed.get(node, node) for pod, node in command.placements.items()}
    present = {node.name for node in snapshot.nodes} - removed | {arrival.node.name for arrival in arrivals}
    moved = {pod: node for pod, node in places.items() if node in present}
    return _with_sizes(
        replace(
            snapshot,
            node_list=Known((*(n for n in snapshot.nodes if n.name not in removed), *(one.node for one in arrivals))),
            node_specs=(*(n for n in snapshot.node_specs if n.name not in removed), *(one.spec for one in arrivals)),
            instances={**snapshot.instances, **{one.instance.id: one.instance for one in arrivals}},
            pods=tuple(_pods(snapshot, removed, moved)),
            pod_specs=(*_specs(snapshot, removed, moved), *(pod for one in arrivals for pod in one.daemons)),
            last_disruptions={**snapshot.last_disruptions, **dict.fromkeys(_groups(snapshot, removed), snapshot.now)},
        ),
        {id_ for name in removed if (node := snapshot.node(name)) is not None and (id_ := node.instance_id)},
        arrivals,
    )


def _pods(snapshot: ClusterSnapshot, removed: set[str], moved: Mapping[str, str]) -> Iterable[Pod]:
    for pod in snapshot.pods:
        if pod.key in moved:
            yield replace(pod, node=moved[pod.key], started=snapshot.now)
        elif pod.node not in removed:
            yield pod
        elif pod.evictable:
            yield replace(pod, node="", phase="Pending", started=None)


def _specs(snapshot: ClusterSnapshot, removed: set[str], moved: Mapping[str, str]) -> Iterable[PodSpec]:
    for pod in snapshot.pod_specs:
        if pod.key in moved:
            yield replace(pod, node=moved[pod.key])
        elif pod.node not in removed:
            yield pod
        elif not pod.stays:
            yield replace(pod, node="")


def _groups(snapshot: ClusterSnapshot, nodes: Iterable[str]) -> set[str]:
    found = (snapshot.group_of(node) for name in nodes if (node := snapshot.node(name)) is not None)
    return {group.name for group in found if group is not None}


def _with_sizes(snapshot: ClusterSnapshot, ended: set[str], arrivals: Sequence[Arrival]) -> ClusterSnapshot:
    """Return the snapshot with the groups' members and sizes, and with what each may still launch."""
    groups = {name: _resized(group, ended, arrivals) for name, group in snapshot.groups.items()}
    launchables = {
        name: replace(one, left=left, template=replace(one.template, max_nodes=left))
        for name, one in snapshot.launchables.items()
        for left in [max(groups[name].maximum - groups[name].desired, 0)]
    }
    return replace(snapshot, groups=groups, launchables=launchables)


def _resized(group: Group, ended: set[str], arrivals: Sequence[Arrival]) -> Group:
    left = [member for member in group.instances if member.id not in ended]
    new = [
        GroupInstance(
            id=arrival.instance.id, zone=arrival.instance.zone, lifecycle=IN_SERVICE, type=arrival.instance.type
        )
        for arrival in arrivals
        if arrival.group == group.name
    ]
    desired = group.desired - (len(group.instances) - len(left)) + len(new)
    return replace(group, instances=(*left, *new), desired=desired)


def _arrivals(snapshot: ClusterSnapshot, command: Command, known: int) -> dict[str, Arrival]:
    """Return the new nodes of a command by the names that its placements have; one on which no pod is placed has a name
    of its own. `known`: number of other new nodes of the run.
    """
    names = {node.name for node in snapshot.nodes}
    planned = sorted({node for node in command.placements.values() if node not in names})
    found: dict[str, Arrival] = {}
    for place, replacement in enumerate(command.replacements):
        name = planned[place] if place < len(planned) else f"-{place}"
        arrival = _arrival(snapshot, replacement, known + place)
        if arrival is not None:
            found[name] = arrival
    return found


def _arrival(snapshot: ClusterSnapshot, replacement: Replacement, number: int) -> Arrival | None:
    launchable = snapshot.launchables.get(replacement.group)
    if launchable is None or not replacement.zones:
        return None
    capacity = replacement.capacity or CapacityType.ON_DEMAND
    kind, zone = _most_expensive(snapshot, replacement)
    at = next((at for at, one in enumerate(launchable.template.offerings) if one.zone == zone), None)
    if at is None:
        return None
    name = _free_name(snapshot, replacement.group, number)
    spec, daemons = _opened(snapshot, launchable, at, name)
    labels = {**spec.labels, well_known.INSTANCE_TYPE_LABEL: kind, well_known.ZONE_LABEL: zone, HOSTNAME_LABEL: name}
    instance = _instance(snapshot, replacement.group, f"i-{name}", kind, zone, capacity)
    return Arrival(
        node=_node(name, labels, spec, instance, snapshot.now),
        spec=replace(spec, labels=labels),
        instance=instance,
        group=replacement.group,
        daemons=daemons,
    )


def _most_expensive(snapshot: ClusterSnapshot, replacement: Replacement) -> tuple[str, str]:
    """Return type and zone by which the plan counts the savings; one of unknown price only where all are."""
    capacity, prices = replacement.capacity, snapshot.prices
    offers = [(kind, zone) for zone in replacement.zones for kind in replacement.types or ("",)]
    return max(offers, key=lambda offer: price_of(offer[0], offer[1], capacity, prices) or 0.0)


def _free_name(snapshot: ClusterSnapshot, group: str, number: int) -> str:
    """Return a name that no node has; `number`: of other new nodes of the run."""
    beginning = f"new-{group}-"
    ends = (node.name.removeprefix(beginning) for node in snapshot.nodes if node.name.startswith(beginning))
    return f"{beginning}{max((int(end) for end in ends if end.isdecimal()), default=0) + number + 1}"


def _opened(
    snapshot: ClusterSnapshot, launchable: Launchable, at: int, name: str
) -> tuple[NodeSpec, tuple[PodSpec, ...]]:
    """Return the node as the scheduler's model brings it up, with its daemon pods."""
    world = World((), (), daemons=snapshot.daemon_specs)
    template = replace(launchable.certain, max_nodes=None)
    spec = world.fleet.nodes[world.open(world.free_slots.of([template])[at])]
    pods = world.pods_on(spec.name)
    daemons = tuple(replace(pod.renamed(f"{pod.name.removesuffix(spec.name)}{name}"), node=name) for pod in pods)
    return replace(spec, name=name), daemons


def _node(name: str, labels: Mapping[str, str], spec: NodeSpec, instance: Instance, now: datetime) -> Node:
    return Node(
        name=name,
        uid=name,
        resource_version="",
        provider_id=f"aws:///{instance.zone}/{instance.id}",
        labels=labels,
        annotations={},
        taints=spec.taints,
        unschedulable=False,
        ready=True,
        deleting=False,
        created=now,
    )


def _instance(
    snapshot: ClusterSnapshot, group: str, id_: str, kind: str, zone: str, capacity: CapacityType
) -> Instance:
    subnets = snapshot.launchables[group].subnets.get(zone, ())
    return Instance(
        id=id_,
        state="running",
        type=kind,
        zone=zone,
        subnet=next(iter(subnets), ""),
        capacity_type=capacity,
        tags={**snapshot.groups[group].tags, well_known.GROUP_TAG: group},
        launched=snapshot.now,
    )
