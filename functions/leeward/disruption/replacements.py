"""Replacements of a run: placed, ordered in the record, requested and recorded; then whether they come up as planned.

Each launch carries a client token made of the run, the command and the subnet, so requesting it twice is idempotent. An
order without a recorded answer is requested again before anything else is decided. A command without capacity for its
replacement is dropped, and so is one whose replacement ends, does not join in time, or has another type, zone or
capacity type.

Where LaunchInstances does not serve the group, its desired size brings the replacement. A raised size and the earlier
members are in the record before the size is raised; members that come up afterwards are the launches of the run.
Raising twice to the same size is idempotent. The size is never lowered: a launch that replaces no node is surplus, like
any other, once its instance exists. New nodes of an open run are protected from Cluster Autoscaler; the owner of
the protection is `disruption:NUMBER`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from leeward.disruption.command import Command, PlannedReplacement
from leeward.disruption.record import (
    DisruptionRecord,
    LaunchedNode,
    command_of,
    launch_token,
    replacement_key,
    replacement_of,
)
from leeward.disruption.run import written
from leeward.errors import LeewardError
from leeward.model import well_known
from leeward.model.facts import ClusterFacts
from leeward.model.group import Group
from leeward.model.instance import ALIVE, Instance
from leeward.model.launch_refusal import EVENT, sentence
from leeward.model.lifecycle import IN_POOL, OVER, LifecycleRole, role_of
from leeward.model.node import Node
from leeward.model.subnet import Pool, Subnet
from leeward.model.zonal_shift import ZonalShifts
from leeward.placement.replacement import LeavingInstance, PlacementFacts, plan_launch
from leeward.placement.scene import SeededChance
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Catalog
from leeward.termination.maximum_size import allow
from leeward.termination.situation import LAUNCH_MAX_AGE
from leeward.workflow.scale_down_protection import owners, protect, release, release_all

LAUNCHES_WITHIN = timedelta(hours=2)  # for which a run stays open for an instance that the group has not launched
LEFT = OVER | IN_POOL | {LifecycleRole.DETACHING}
DESIRED_SIZE = "the desired size is raised instead"
SIZED_AGAIN = 3  # times at most that a size is decided in one step, each after others have set another
JOINS_WITHIN = timedelta(minutes=15)  # as EKS gives a new node


def launch_all(record: DisruptionRecord, ports: Ports, *, may_grow: bool = True) -> DisruptionRecord:
    """Launch every outstanding replacement, one after the other; each is recorded before the next. `may_grow`: where
    LaunchInstances is refused, raise the desired size; else the command is dropped.
    """
    begun = record
    sight = _Sight(shifts=ports.catalog.zonal_shifts(record.cluster))
    for key in record.to_launch():
        if command_of(key) not in record.active_commands:
            continue  # another of its replacements was refused
        if key not in record.orders:
            record = _ordered(record, key, sight, ports)
        record = _fulfilled(record, key, sight, ports, may_grow=may_grow)
    return raise_sizes(record, begun, ports)


@dataclass(slots=True, kw_only=True)
class _Sight:
    """AWS as the launches of one step see it: read for all of them together, and again once it is older than a launch
    may use. Each launch takes an address off its subnet, as EC2 counts it from then on.
    """

    shifts: ZonalShifts
    at: datetime | None = None
    groups: Mapping[str, Group] = field(default_factory=dict)
    subnets: dict[str, Subnet] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)

    def renew(self, record: DisruptionRecord, ports: Ports) -> None:
        """Read the groups, subnets and instances of all replacements that are still to be launched."""
        now = ports.clock.now()
        if self.at is not None and now - self.at < LAUNCH_MAX_AGE:
            return
        keys = record.to_launch()
        self.groups = ports.groups.describe(sorted({record.planned(key).group for key in keys}))
        names = sorted({name for group in self.groups.values() for name in group.subnets})
        self.subnets = dict(ports.network.subnets(names)) if names else {}
        firsts = {record.commands[command_of(key)].nodes[0] for key in keys}
        self.instances = ports.instances.describe(sorted(record.nodes[name] for name in firsts))
        self.at = now

    def launched_in(self, name: str) -> None:
        """Take the address of a new node off its subnet."""
        if (subnet := self.subnets.get(name)) is not None:
            self.subnets[name] = replace(subnet, free_ips=max(subnet.free_ips - 1, 0))


def _ordered(record: DisruptionRecord, key: str, sight: _Sight, ports: Ports) -> DisruptionRecord:
    """Place the replacement now, in the zones that the plan names; the order is written before the first call."""
    number = command_of(key)
    options, why = _places(record, key, sight, ports)
    if not options:
        return written(record.drop({number: f"no subnet for its replacement: {why}"}), ports.disruptions)
    return written(replace(record, orders={**record.orders, key: ",".join(options)}), ports.disruptions)


def _fulfilled(record: DisruptionRecord, key: str, sight: _Sight, ports: Ports, *, may_grow: bool) -> DisruptionRecord:
    """Request the order, in one subnet after the other. During a zonal shift no desired size is raised: the group would
    choose the zone by itself.
    """
    (number, place), wanted, shifts = replacement_of(key), record.planned(key), sight.shifts
    while record.orders.get(key):
        where, _, others = record.orders[key].partition(",")
        zone, _, subnet = where.partition("/")
        token = launch_token(record, key, subnet)
        answer = ports.groups.launch(group=wanted.group, subnet=subnet, token=token)
        left = {name: order for name, order in record.orders.items() if name != key}
        if answer.launched:
            sight.launched_in(subnet)
            node = LaunchedNode(command=number, replacement=place, group=wanted.group, zone=zone, subnet=subnet)
            launched = {**record.launched, answer.launched[0]: node}
            return written(replace(record, orders=left, launched=launched), ports.disruptions)
        others = ",".join(one for one in others.split(",") if one and not shifts.reason(one.partition("/")[0]))
        if answer.no_capacity and others:
            record = written(replace(record, orders={**left, key: others}), ports.disruptions)
            continue
        grows = answer.refused and may_grow and not shifts.shifts
        group = ports.groups.describe([wanted.group]).get(wanted.group) if grows else None
        if group is not None and can_grow(group):
            return await_growth(record, key, group, answer.reason, ports)
        why = f"{wanted.group} could not launch its replacement in {zone}: {answer.reason}"
        return written(replace(record.drop({number: why}), orders=left), ports.disruptions)
    return record


def _places(record: DisruptionRecord, key: str, sight: _Sight, ports: Ports) -> tuple[list[str], str]:
    """Return `zone/subnet` values, best first, and why there is none."""
    wanted, command = record.planned(key), record.commands[command_of(key)]
    sight.renew(record, ports)
    group, live = sight.groups.get(wanted.group), sight.subnets
    if group is None:
        return [], f"Auto Scaling does not know the group {wanted.group}"
    known = PlacementFacts(
        facts=replace(_facts(record.cluster, ports.catalog), shifts=sight.shifts),
        subnets=tuple(live[name] for name in group.subnets if name in live and live[name].zone in wanted.zones),
        cluster=record.cluster,
        short=_short(record.cluster, ports.clock, ports.catalog),
        cni=_cni(record.cluster, group, ports.clusters),
    )
    if not known.subnets:
        return [], f"none of its subnets is in {', '.join(wanted.zones)}"
    leaving = _leaving(record, command, wanted, ports.clusters, sight.instances)
    plan = plan_launch(group, leaving, known, SeededChance(f"{record.cluster}/{record.number}/{key}"))
    return [f"{one.zone}/{one.subnet}" for one in plan.options if one.zone in wanted.zones], plan.nowhere


def _leaving(
    record: DisruptionRecord,
    command: Command,
    wanted: PlannedReplacement,
    clusters: Clusters,
    instances: Mapping[str, Instance],
) -> LeavingInstance:
    """Return the pods that need capacity: at most those of the command's nodes. The cores of its first node are
    subtracted from that node's zone, so that zones stay balanced where no rule forbids it.
    """
    kubernetes = clusters.kubernetes(record.cluster)
    name = command.nodes[0]
    instance = instances.get(record.nodes[name])
    node = kubernetes.node(name)
    return LeavingInstance(
        instance=record.nodes[name],
        zone=instance.zone if instance is not None else wanted.zones[0],
        subnet=instance.subnet if instance is not None else "",
        type=wanted.types[0] if wanted.types else "",
        millicores=node.cpu if node is not None else 0,
        pods=tuple(pod for each in command.nodes for pod in kubernetes.pods_on(each) if not pod.of_daemon_set),
    )


def _facts(cluster: str, catalog: Catalog) -> ClusterFacts:
    """Return the facts that function sync has recorded; without them every zone counts the same."""
    try:
        return ClusterFacts.from_sheets(catalog.read(cluster))
    except LeewardError:
        return ClusterFacts()


def _short(cluster: str, clock: Clock, catalog: Catalog) -> frozenset[Pool]:
    """Return the pools in which EC2 is reclaiming spot capacity; empty where that cannot be read, which only loses the
    preference.
    """
    try:
        return catalog.reservations(cluster).short_at(clock.now())
    except LeewardError:
        return frozenset()


def _cni(cluster: str, group: Group, clusters: Clusters) -> Mapping[str, str]:
    policy = clusters.policies(cluster).policy_of(group)
    return policy.cni if policy is not None else {}


def can_grow(group: Group) -> bool:
    """Return whether the group's desired size may bring a replacement; EKS owns the sizes of a managed node group."""
    return group.nodegroup is None and "Launch" not in group.suspended


def await_growth(record: DisruptionRecord, key: str, group: Group, reason: str, ports: Ports) -> DisruptionRecord:
    """Record that the desired size, raised by one, brings the replacement. `raise_sizes` requests it."""
    name = group.name
    record = replace(
        record,
        orders={other: order for other, order in record.orders.items() if other != key},
        refusals={**record.refusals, name: reason[:300]},
        awaited={**record.awaited, key: name},
        before={name: ",".join(member.id for member in group.instances), **record.before},
    )
    return _sized(record, group, record.sizes.get(name, group.desired) + 1, ports)


def raise_sizes(record: DisruptionRecord, begun: DisruptionRecord, ports: Ports) -> DisruptionRecord:
    """Raise each group to the size in the record. `begun`: the record before this step. Growth that this step has
    decided counts from the size that it read: where others have set another since, it is decided again, because their
    instance would be taken for the launch and terminated with decrement. Idempotent: a repeated step leaves a group
    that has the size, or more, unchanged.
    """
    for name in sorted(set(record.outstanding().values())):
        grown = sum(group == name and key not in begun.awaited for key, group in record.awaited.items())
        for left in reversed(range(SIZED_AGAIN if grown else 1)):
            size = record.sizes[name]
            only_from = size - grown if left else None
            allow(name, ports, size=size)
            if ports.group_changes.raise_to(name, desired=size, only_from=only_from):
                break
            for group in ports.groups.describe([name]).values():
                record = _sized(record, group, group.desired + grown, ports)
    return record


def _sized(record: DisruptionRecord, group: Group, size: int, ports: Ports) -> DisruptionRecord:
    """Record the size before it is requested."""
    return written(replace(record, sizes={**record.sizes, group.name: size}), ports.disruptions)


def adopt(record: DisruptionRecord, ports: Ports) -> DisruptionRecord:
    """Return the record with new members as launches, the one that matches the plan first, and without growth that
    others have cancelled by a smaller size.
    """
    waiting = record.outstanding()
    groups = ports.groups.describe(sorted(set(waiting.values()))) if waiting else {}
    launched, awaited = dict(record.launched), dict(record.awaited)
    for name, group in groups.items():
        members = [member.id for member in group.instances if role_of(member.lifecycle) not in LEFT]
        keys = [key for key, group in waiting.items() if group == name]
        old = {*record.before[name].split(","), *record.launched}
        come = ports.instances.describe([member for member in members if member not in old])
        for key, new in _matched(keys, come.values(), _plans(record)):
            number, place = replacement_of(key)
            launched[new.id] = LaunchedNode(
                command=number, replacement=place, group=name, zone=new.zone, subnet=new.subnet
            )
            keys.remove(key)
        if len(members) >= group.desired < record.sizes[name] and len(come) < len(members):
            awaited = {key: group for key, group in awaited.items() if key not in keys}
    after = replace(record, launched=launched, awaited=awaited)
    cancelled = {command_of(key) for key in record.awaited.keys() - awaited.keys()}
    if cancelled:
        after = after.drop(dict.fromkeys(cancelled, "others have made the group smaller again"))
    return written(after, ports.disruptions) if after != record else record


def announce(record: DisruptionRecord, before: DisruptionRecord, clock: Clock, clusters: Clusters) -> str:
    """Return the notice of groups refused since `before`, and write it as an Event of each node that waits for one."""
    notices = {
        name: sentence(name, reason, DESIRED_SIZE)
        for name, reason in record.refusals.items()
        if name not in before.refusals
    }
    kubernetes = clusters.kubernetes(record.cluster)
    for key, name in record.outstanding().items():
        for node_name in record.commands[command_of(key)].nodes if name in notices else ():
            try:
                node = kubernetes.node(node_name)
                if node is not None:
                    kubernetes.event(node, reason=EVENT, message=notices[name][:1000], warning=True, now=clock.now())
            except LeewardError:
                break
    return "; ".join(notices.values())


def _plans(record: DisruptionRecord) -> Mapping[str, PlannedReplacement]:
    return {
        replacement_key(number, place): planned
        for number, command in enumerate(record.commands)
        for place, planned in enumerate(command.replacements)
    }


def _matched(
    keys: Iterable[str], come: Iterable[Instance], plans: Mapping[str, PlannedReplacement]
) -> list[tuple[str, Instance]]:
    """Match each new instance with a replacement that it satisfies, else with any: there it drops the command."""
    left, matched = list(keys), []
    for instance in sorted((one for one in come if not one.ended), key=lambda one: one.id):
        if not left:
            break
        key = next((key for key in left if not why_unlike(instance, plans[key])), left[0])
        left.remove(key)
        matched.append((key, instance))
    return matched


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """State of the replacements. `wrong`: new instance -> why it does not match; `missing`: new instance -> why not
    yet.
    """

    wrong: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def unfit(self, wanted: Mapping[str, PlannedReplacement], instances: Mapping[str, Instance]) -> dict[str, str]:
        """Return the wrong instances that run where they were planned: the next launch would be as wrong. Those that
        EC2 has taken, or that the group's own choice put into another zone, may be right the next time.
        """
        there = {name for name in self.wrong if name in instances and instances[name].state in ALIVE}
        zones = {name: wanted[name].zones for name in there}
        return {name: self.wrong[name] for name in there if not zones[name] or instances[name].zone in zones[name]}


def readiness(
    wanted: Mapping[str, PlannedReplacement],
    instances: Mapping[str, Instance],
    nodes: Iterable[Node],
    *,
    since: datetime,
    now: datetime,
) -> Readiness:
    """Return the state of the replacements. `wanted`: new instance -> its planned replacement; `since`: when the run
    began, used where EC2 does not know the instance yet.
    """
    joined = {node.instance_id: node for node in nodes}
    wrong: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, planned in wanted.items():
        instance, node = instances.get(name), joined.get(name)
        why = why_unlike(instance, planned) if instance is not None else ""
        lacking = "" if node is not None and node.ready else _lacking(name, instance, node)
        launched = instance.launched if instance is not None else since
        if not why and lacking and now - launched > JOINS_WITHIN:
            why = f"{lacking} after {int((now - launched).total_seconds())} s"
        if why:
            wrong[name] = why
        elif lacking or instance is None:
            missing[name] = lacking or f"EC2 does not know {name} yet"
    return Readiness(wrong=wrong, missing=missing)


def why_unlike(instance: Instance, planned: PlannedReplacement) -> str:
    """Return why the instance does not match the plan, empty where it does."""
    if instance.state not in ALIVE:
        return f"{instance.id} was launched and is {instance.state}"
    if planned.types and instance.type not in planned.types:
        return f"{instance.id} is of type {instance.type}, planned were {', '.join(planned.types)}"
    if planned.zones and instance.zone not in planned.zones:
        return f"{instance.id} is in {instance.zone}, planned was {', '.join(planned.zones)}"
    if planned.capacity is not None and instance.capacity_type is not planned.capacity:
        return f"{instance.id} is {instance.capacity_type.value}, planned was {planned.capacity.value}"
    return ""


def _lacking(name: str, instance: Instance | None, node: Node | None) -> str:
    if node is not None:
        return f"node {node.name} is not Ready"
    return f"{name} is {instance.state if instance is not None else 'not known yet'} and has not joined"


def protect_launched(record: DisruptionRecord, nodes: Iterable[Node], clusters: Clusters) -> None:
    """Protect the nodes launched for commands that stand."""
    launched = {new for number in record.active_commands for new in record.new_of(number)}
    new = (node for node in nodes if node.instance_id in launched)
    protect(new, _owner(record), clusters.kubernetes(record.cluster))


def unprotect_launched(record: DisruptionRecord, clusters: Clusters) -> None:
    """Remove the protection at the end of the run."""
    if record.launched:
        release_all(_owner(record), record.cluster, clusters)


def unprotect_after_disruptions(cluster: str, nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Remove the protection of nodes whose run is no longer open, and return their names."""
    nodes, unprotected = list(nodes), list[str]()
    disruptions = [owner for owner in owners(nodes) if owner.startswith(well_known.OF_DISRUPTION)]
    if not disruptions:
        return []
    record = ports.disruptions.read(cluster)
    current = _owner(record) if record is not None and record.open else ""
    for owner in disruptions:
        if owner != current:
            unprotected += release(nodes, owner, ports.clusters.kubernetes(cluster))
    return unprotected


def _owner(record: DisruptionRecord) -> str:
    return f"{well_known.OF_DISRUPTION}{record.number}"
