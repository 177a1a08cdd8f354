"""Runs of voluntary disruption one after the other, until nothing is left to do: the end state that policies lead to.

Decides how time passes between runs. The clock of the state moves on by what the policies make a node wait
(consolidateAfter, cooldown); where nothing is left to do then, to the end of the next closed budget window or the next
opening of a pod's window within a week. Pods, prices, policies and launches stay as they are: no new pod comes, no node
is interrupted, a new node does not drift, and what expires later is not awaited.

After the commands of a plan nodes are gone, their pods are where the plan has placed them, and new nodes have their
DaemonSet pods. A new node is the most expensive of the types and zones that its group may launch, as the plan counts
it, with no more room than the smallest type; its daemon pods are those that the scheduler's model gives a new node."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from leeward.cluster.facets import Known
from leeward.disruption import do_not_disrupt
from leeward.disruption.candidates import workload_on
from leeward.disruption.command import Command, DisruptionPlan, MethodName, PlannedReplacement
from leeward.disruption.do_not_disrupt import windows_of
from leeward.disruption.plan import plan_in
from leeward.disruption.planning_state import PlanningState
from leeward.drift.detect import Drifted
from leeward.model import well_known
from leeward.model.group import Group, GroupInstance
from leeward.model.instance import CapacityType, Instance
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.times import format_instant
from leeward.policy.schedule import is_active, next_start
from leeward.scheduling.nodes import HOSTNAME_LABEL, NodeSpec
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable, price_of

MOST_RUNS = 100
MOST_WAITS = 50  # for windows, in all
HORIZON = timedelta(days=7)  # within which windows are awaited


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run. `before`, `after`: the cluster without and with its commands."""

    plan: DisruptionPlan
    before: ClusterSnapshot
    after: ClusterSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """All runs. `last`: the plan in which nothing is left to do, with why each node stays; where `finished` is False it
    is that of the last run that was looked at.
    """

    runs: tuple[PlannedRun, ...]
    last: DisruptionPlan
    end: ClusterSnapshot
    finished: bool


def until_done(
    snapshot: ClusterSnapshot,
    *,
    only: MethodName | None = None,
    most: int = MOST_RUNS,
) -> Outlook:
    """Return the runs, at most so many. `only`: this method alone acts."""
    runs: list[PlannedRun] = []
    began, new, rested, waits = snapshot.now, frozenset[str](), False, 0
    while True:
        plan = plan_in(_state(snapshot, new), only=only)
        if plan.commands:
            if len(runs) == most:
                return Outlook(runs=tuple(runs), last=plan, end=snapshot, finished=False)
            after = after_commands(snapshot, plan.commands)
            runs.append(PlannedRun(plan=plan, before=snapshot, after=after))
            new |= {node.name for node in after.nodes} - {node.name for node in snapshot.nodes}
            snapshot, rested = _at(after, after.now + _rest(after)), True
            continue
        moment = _opens(snapshot, began + HORIZON) if rested else snapshot.now + _rest(snapshot)
        waits += rested
        if moment is None or waits > MOST_WAITS:
            return Outlook(runs=tuple(runs), last=plan, end=snapshot, finished=moment is None)
        snapshot, rested = _at(snapshot, moment), True


def _state(snapshot: ClusterSnapshot, new: frozenset[str]) -> PlanningState:
    """Return the state of a run, in which new nodes are as their groups launch them now."""
    state = PlanningState(snapshot)
    if new:
        state.drift = {name: Drifted(node=name) if name in new else drifted for name, drifted in state.drift.items()}
    return state


def _at(snapshot: ClusterSnapshot, now: datetime) -> ClusterSnapshot:
    """Return the snapshot at a later moment. Nodes that are empty are noted so, as the planner notes them."""
    noted = {well_known.EMPTY_SINCE: format_instant(snapshot.now)}
    nodes = tuple(
        node
        if well_known.EMPTY_SINCE in node.annotations or workload_on(snapshot, node)
        else replace(node, annotations={**node.annotations, **noted})
        for node in snapshot.nodes
    )
    return replace(snapshot, now=now, node_list=Known(nodes))


def _rest(snapshot: ClusterSnapshot) -> timedelta:
    """Return how long the policies make nodes wait after a run."""
    rules = [policy.disruption for policy in snapshot.policies.policies]
    waits = [wait for rule in rules for wait in (rule.cooldown, rule.consolidate_after) if wait is not None]
    return max(waits, default=timedelta())


def _opens(snapshot: ClusterSnapshot, end: datetime) -> datetime | None:
    """Return the next moment until `end` at which a budget's window closes, or a pod's window opens."""
    return min((moment for moment in _moments(snapshot) if snapshot.now < moment <= end), default=None)


def _moments(snapshot: ClusterSnapshot) -> Iterator[datetime]:
    """Yield when what is closed now opens: a window only adds a limit, so its end matters."""
    for policy in snapshot.policies.policies:
        for budget in policy.disruption.budgets:
            window = budget.window
            if window is not None and is_active(window, snapshot.now):
                start = next_start(window, snapshot.now - window.duration)
                yield from [start + window.duration] if start is not None else []
    for value in windows_of(snapshot.pods):
        opening = (
            None
            if do_not_disrupt.is_window_open(value, snapshot.now)
            else do_not_disrupt.window_opens(value, snapshot.now)
        )
        yield from [opening] if opening is not None else []


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


def _arrival(snapshot: ClusterSnapshot, replacement: PlannedReplacement, number: int) -> Arrival | None:
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


def _most_expensive(snapshot: ClusterSnapshot, replacement: PlannedReplacement) -> tuple[str, str]:
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
