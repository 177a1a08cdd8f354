"""EC2's subnets, launch templates, instance types and prices in memory."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.subnet import Subnet
from tests.fakes.calls import Calls

M5_LARGE = InstanceType(name="m5.large", vcpus=2, memory_mib=8192, max_enis=3, ips_per_eni=10)


class FakeNetwork(Calls):
    """`by_id` is what EC2 knows; a test puts others there."""

    def __init__(self, subnets: Iterable[Subnet] = ()) -> None:
        super().__init__()
        self.by_id = {subnet.id: subnet for subnet in subnets}

    def subnets(self, ids: Iterable[str]) -> Mapping[str, Subnet]:
        """An unknown id is absent."""
        self._call("subnets")
        return {name: self.by_id[name] for name in ids if name in self.by_id}

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Mapping[str, Subnet]:
        """By VPC and tag key."""
        self._call("subnets_tagged")
        wanted = set(vpcs)
        return {name: one for name, one in self.by_id.items() if one.vpc in wanted and key in one.tags}


class FakeLaunchSources(Calls):
    """`by_group`: what a group's launch template says, `types`: what EC2 offers; a test puts others there."""

    def __init__(self, types: Iterable[InstanceType] = (M5_LARGE,)) -> None:
        super().__init__()
        self.by_group: dict[str, LaunchSettings] = {}
        self.types = {kind.name: kind for kind in types}
        self.images: dict[str, Image] = {}

    def settings(self, group: Group) -> LaunchSettings | None:
        """None for a group of which nothing was put in."""
        self._call("settings")
        return self.by_group.get(group.name)

    def instance_types(self, names: Iterable[str]) -> Mapping[str, InstanceType]:
        """An unknown name is absent."""
        self._call("instance_types")
        return {name: self.types[name] for name in names if name in self.types}

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Every type."""
        self._call("all_instance_types")
        return dict(self.types)

    def image(self, name: str) -> Image | None:
        """None for an image that was not put in."""
        self._call("image")
        return self.images.get(name)


class FakePriceList(Calls):
    """`prices` by type, US dollars an hour; spot costs a third of it everywhere."""

    def __init__(self, prices: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self.prices = {"m5.large": 0.096} if prices is None else dict(prices)

    def on_demand(self, types: Iterable[str]) -> Mapping[str, float]:
        """Those that have one."""
        self._call("on_demand")
        return {name: self.prices[name] for name in types if name in self.prices}

    def spot(self, types: Iterable[str], zones: Iterable[str], now: datetime) -> Mapping[str, Mapping[str, float]]:
        """In every zone the same."""
        self._call("spot")
        del now
        wanted = tuple(zones)
        return {name: dict.fromkeys(wanted, self.prices[name] / 3) for name in types if name in self.prices}
