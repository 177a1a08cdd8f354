"""Launch of a run's replacements. Each is placed, ordered in the record, requested, and recorded.

Each launch carries a client token made of the run, the command and the subnet, so requesting it twice is idempotent.
An order without a recorded answer is requested again before anything else is decided. Where LaunchInstances does not
serve the group the desired size brings the replacement (`replacements`); a command without capacity for its
replacement is dropped."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from leeward.disruption.command import Command, Replacement
from leeward.disruption.lease import written
from leeward.disruption.record import DisruptionRecord, SurgeNode, command_of, launch_token, replacement_of
from leeward.disruption.replacements import await_growth, can_grow, raise_sizes
from leeward.errors import LeewardError
from leeward.model.facts import ClusterFacts
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.subnet import Pool, Subnet
from leeward.model.zonal_shift import ZonalShifts
from leeward.placement.replacement import Known, Leaving, plan_launch
from leeward.placement.scene import SeededChance
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Catalog
from leeward.termination.freshness import LAUNCH_MAX_AGE


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


def _places(record: DisruptionRecord, key: str, sight: _Sight, ports: Ports) -> tuple[list[str], str]:
    """Return `zone/subnet` values, best first, and why there is none."""
    wanted, command = record.planned(key), record.commands[command_of(key)]
    sight.renew(record, ports)
    group, live = sight.groups.get(wanted.group), sight.subnets
    if group is None:
        return [], f"Auto Scaling does not know the group {wanted.group}"
    known = Known(
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
    wanted: Replacement,
    clusters: Clusters,
    instances: Mapping[str, Instance],
) -> Leaving:
    """Return the pods that need capacity: at most those of the command's nodes. The cores of its first node are
    subtracted from that node's zone, so that zones stay balanced where no rule forbids it.
    """
    kubernetes = clusters.kubernetes(record.cluster)
    name = command.nodes[0]
    instance = instances.get(record.nodes[name])
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
