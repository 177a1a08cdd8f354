"""Nouns of placement with defaults."""

from leeward.model.instance_type import InstanceType
from leeward.model.subnet import Subnet
from leeward.placement.accounting import Accounting, Demand
from leeward.placement.scene import PlacementScene

ON = Accounting(on=True, why="WARM_ENI_TARGET 1")
OFF = Accounting(on=False, why="ENABLE_IPv6 is on")
T3_SMALL = InstanceType(name="t3.small", vcpus=2, memory_mib=2048, max_enis=3, ips_per_eni=4)
M5_LARGE = InstanceType(name="m5.large", vcpus=2, memory_mib=8192, max_enis=3, ips_per_eni=10)
P3DN = InstanceType(name="p3dn.24xlarge", vcpus=96, memory_mib=786432, max_enis=15, ips_per_eni=50)


def a_subnet(id_="subnet-a", zone="us-east-1a", free=100, **fields):
    return Subnet(id=id_, zone=zone, free_ips=free, vpc="vpc-1", **fields)


def a_demand(ips=12, *, accounting=ON, pods=8, millicores=2000):
    return Demand(accounting=accounting, ips=ips, pods=pods, millicores=millicores)


def a_scene(*subnets, cores=None, **fields):
    """`cores` by zone, in whole cores."""
    fields.setdefault("demand", a_demand())
    allocated = {zone: count * 1000 for zone, count in (cores or {}).items()}
    return PlacementScene(subnets=subnets, cores=allocated, **fields)
