"""Launch of a run's replacements. Each is placed, ordered in the record, requested, and recorded.

Each launch carries a client token made of the run, the command and the subnet, so requesting it twice is idempotent.
An order without a recorded answer is requested again before anything else is decided. Where LaunchInstances does not
serve the group the desired size brings the replacement (`replacements`); a command without capacity for its
replacement is dropped."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.disruption.command import Command, Replacement
from leeward.disruption.lease import written
from leeward.disruption.record import DisruptionRecord, SurgeNode, command_of, launch_token, replacement_of
from leeward.disruption.replacements import await_growth, can_grow, raise_sizes
from leeward.errors import LeewardError
from leeward.model.facts import ClusterFacts
from leeward.model.group import Group
from leeward.model.reservation import Pool
from leeward.model.zonal_shift import ZonalShifts
from leeward.placement.replacement import Known, Leaving, plan_launch
from leeward.placement.scene import SeededChance
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Catalog


def launch_all(record: DisruptionRecord, ports: Ports, *, may_grow: bool = True) -> DisruptionRecord:
    """Launch every outstanding replacement, one after the other; each is recorded before the next. `may_grow`: where
    LaunchInstances is refused, raise the desired size; else the command is dropped.
    """
    shifts, begun = ports.catalog.zonal_shifts(record.cluster), record
    for key in record.to_launch():
        if command_of(key) not in record.active_commands:
            continue  # another of its replacements was refused
        if key not in record.orders:
            record = _ordered(record, key, shifts, ports)
        record = _fulfilled(record, key, shifts, ports, may_grow=may_grow)
    return raise_sizes(record, begun, ports)


def _ordered(record: DisruptionRecord, key: str, shifts: ZonalShifts, ports: Ports) -> DisruptionRecord:
    """Place the replacement now, in the zones that the plan names; the order is written before the first call."""
    number = command_of(key)
    options, why = _places(record, key, shifts, ports)
    if not options:
        return written(record.drop({number: f"no subnet for its replacement: {why}"}), ports.disruptions)
    return written(replace(record, orders={**record.orders, key: ",".join(options)}), ports.disruptions)


def _fulfilled(
    record: DisruptionRecord, key: str, shifts: ZonalShifts, ports: Ports, *, may_grow: bool
) -> DisruptionRecord:
    """Request the order, in one subnet after the other. During a zonal shift no desired size is raised: the group would
    choose the zone by itself.
    """
    (number, place), wanted = replacement_of(key), record.planned(key)
    while record.orders.get(key):
        where, _, others = record.orders[key].partition(",")
        zone, _, subnet = where.partition("/")
        token = launch_token(record, key, subnet)
        answer = ports.groups.launch(group=wanted.group, subnet=subnet, token=token)
        left = {name: order for name, order in record.orders.items() if name != key}
        if answer.launched:
            node = SurgeNode(command=number, replacement=place, group=wanted.group, zone=zone, subnet=subnet)
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


def _places(record: DisruptionRecord, key: str, shifts: ZonalShifts, ports: Ports) -> tuple[list[str], str]:
    """Return `zone/subnet` values, best first, and why there is none."""
    wanted, command = record.planned(key), record.commands[command_of(key)]
    group = ports.groups.describe([wanted.group]).get(wanted.group)
    if group is None:
        return [], f"Auto Scaling does not know the group {wanted.group}"
    live = ports.network.subnets(group.subnets) if group.subnets else {}
    known = Known(
        facts=replace(_facts(record.cluster, ports.catalog), shifts=shifts),
        subnets=tuple(live[name] for name in group.subnets if name in live and live[name].zone in wanted.zones),
        cluster=record.cluster,
        short=_short(record.cluster, ports.clock, ports.catalog),
        cni=_cni(record.cluster, group, ports.clusters),
    )
    if not known.subnets:
        return [], f"none of its subnets is in {', '.join(wanted.zones)}"
    leaving = _leaving(record, command, wanted, ports.clusters, ports.instances)
    plan = plan_launch(group, leaving, known, SeededChance(f"{record.cluster}/{record.number}/{key}"))
    return [f"{one.zone}/{one.subnet}" for one in plan.options if one.zone in wanted.zones], plan.nowhere


def _leaving(
    record: DisruptionRecord, command: Command, wanted: Replacement, clusters: Clusters, instances: Instances
) -> Leaving:
    """Return the pods that need capacity: at most those of the command's nodes. The cores of its first node are
    subtracted from that node's zone, so that zones stay balanced where no rule forbids it.
    """
    kubernetes = clusters.kubernetes(record.cluster)
    name = command.nodes[0]
    instance = instances.describe([record.nodes[name]]).get(record.nodes[name])
    node = kubernetes.node(name)
    return Leaving(
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
    policy = policy_for(clusters.policies(cluster).policies, group.name, group.tags)
    return policy.cni if policy is not None else {}
