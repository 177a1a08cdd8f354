"""`ports.compute.Network`, `LaunchSources` and `PriceList` over the simulated fleet, whose instances and pods fill
subnets."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.nodegroup import Nodegroup
from leeward.model.subnet import Subnet
from leeward.node_template.cache import NodegroupCache
from simulation.aws.compute import subnet_of
from simulation.aws.fleet import SimFleet
from simulation.aws.recovery import zone_id_of
from simulation.aws.templates import ALIAS, WANTED
from simulation.faults import Injector

VPC = "vpc-simulated"
TYPES = {
    kind.name: kind
    for kind in (
        InstanceType(name=name, vcpus=vcpus, memory_mib=memory * 1024, max_enis=enis, ips_per_eni=ips)
        for name, vcpus, memory, enis, ips in (
            ("m5.large", 2, 8, 3, 10),
            ("m5.xlarge", 4, 16, 4, 15),
            ("c5.xlarge", 4, 8, 4, 15),
            ("r5.large", 2, 16, 3, 10),
            ("m6g.large", 2, 8, 3, 10),
        )
    )
}


class SimNetwork:
    """Subnets of the fleet, one a zone. A running instance takes two interfaces with all their addresses, one that
    boots takes one.
    """

    def __init__(self, fleet: SimFleet, injector: Injector) -> None:
        self._fleet, self._injector = fleet, injector

    def subnets(self, ids: Iterable[str]) -> Mapping[str, Subnet]:
        """Return those of the ids that are subnets of the fleet's zones."""
        wanted = set(ids)
        zones = {zone for group in self._fleet.groups.values() for zone in group.plan.zones}
        return {subnet_of(zone): self._subnet(zone) for zone in sorted(zones) if subnet_of(zone) in wanted}

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Mapping[str, Subnet]:
        """Return no subnet: none carries any tag."""
        del vpcs, key
        return {}

    def _subnet(self, zone: str) -> Subnet:
        used = sum(addresses(one.type, one.state) for one in self._fleet.instances.values() if one.zone == zone)
        free, left = max(self._fleet.subnet_size - used, 0), self._injector.addresses_left(zone)
        free = free if left is None else min(free, left)
        return Subnet(id=subnet_of(zone), zone=zone, vpc=VPC, free_ips=free, zone_id=zone_id_of(zone))


class SimLaunchSources:
    """Launch settings of the groups. Each launches the one type of its plan, with the image of its
    template's version. `readable`: whether our role may read the SSM parameters behind images; a version that names
    one is described with its name where not, as the adapter does.
    """

    def __init__(self, fleet: SimFleet, readable: Callable[[], bool] = lambda: True) -> None:
        self._fleet, self._readable = fleet, readable

    def settings(self, group: Group) -> LaunchSettings | None:
        """Return the group's launch settings, None for a group or a version that was deleted, as of the adapter."""
        known = self._fleet.groups.get(group.name)
        wanted = (group.launch.template or known.template.ref(known.version)).version if known else ""
        if known is None or known.deleted or known.template.lacks(wanted):
            return None
        version = known.template.number(wanted)
        return LaunchSettings(
            template=known.template.id,
            version=int(version),
            default=version == "1",
            image=known.template.image(version) if self._readable() else known.template.written(version),
            instance_type=known.plan.instance_type,
            spot=known.plan.spot,
            look=WANTED,
            user_data=known.user_data,
            alias=written if (written := known.template.written(version)).startswith(ALIAS) else "",
        )

    def instance_types(self, names: Iterable[str]) -> Mapping[str, InstanceType]:
        """Return some of EC2's types."""
        return {name: TYPES[name] for name in names if name in TYPES}

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Return the same few types."""
        return TYPES

    def image(self, name: str) -> Image | None:
        """Return no image: the types of the groups tell all that templates need."""
        del name
        return None


class SimNodegroups:
    """Node groups that `managed.py` knows."""

    def __init__(self, describe: Callable[[str, str], Nodegroup]) -> None:
        self._describe = describe

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """Return the node group. Raises ObjectGoneError."""
        return self._describe(cluster, name)


class KnownSimNodegroups:
    """`ports.eks.KnownNodegroups`: each execution environment has a cache of its own, as processes have."""

    def __init__(self, cache: Callable[[], NodegroupCache], environment: Callable[[], str]) -> None:
        self._cache, self._environment = cache, environment
        self._caches: dict[str, NodegroupCache] = {}

    def get(self, cluster: str, name: str, lasts: timedelta) -> Nodegroup | None:
        """Return the node group, None when it cannot be read."""
        environment = self._environment()
        if environment not in self._caches:
            self._caches[environment] = self._cache()
        return self._caches[environment].get(cluster, name, lasts)


class SimPriceList:
    """Prices: ten cents an hour, twice as much with twice the vCPUs; spot is the same for all."""

    def on_demand(self, types: Iterable[str]) -> Mapping[str, float]:
        """Return the price by the vCPUs of each type."""
        return {name: 0.05 * TYPES[name].vcpus if name in TYPES else 0.1 for name in types}

    def spot(self, types: Iterable[str], zones: Iterable[str], now: datetime) -> Mapping[str, Mapping[str, float]]:
        """Return three cents for every type and zone."""
        del now
        wanted = tuple(zones)
        return {name: dict.fromkeys(wanted, 0.03) for name in types}


def addresses(instance_type: str, state: str) -> int:
    """Return the number of addresses that an instance takes of its subnet."""
    if state in {"shutting-down", "terminated"}:
        return 0
    kind = TYPES.get(instance_type)
    return 2 * kind.ips_per_eni if kind is not None and state == "running" else 1
