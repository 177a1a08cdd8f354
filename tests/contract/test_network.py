"""What every `ports.compute.Network` does, and what `ports.compute.LaunchSources` returns of types: EC2 as the emulator
answers, the simulated fleet, and the fake of the unit tests."""

from random import Random

import pytest

from leeward.adapters.aws.instances import Ec2Network
from leeward.adapters.aws.launch_templates import Ec2LaunchSources
from simulation.aws.fleet import SimFleet
from simulation.aws.listeners import Listeners
from simulation.aws.network import SimLaunchSources, SimNetwork
from simulation.fault_rates import Faults
from simulation.faults import Crowd, Injector
from simulation.timeline import Streams, Timeline
from tests.fakes.builders import a_subnet
from tests.fakes.network import FakeLaunchSources, FakeNetwork
from tests.simulation.fleet_stand_in import GroupPlan

ZONE = "us-east-1a"


class Fake:
    """`full` leaves the subnet so many addresses."""

    subnet = "subnet-a"

    def __init__(self):
        self.network = FakeNetwork([a_subnet()])
        self.launches = FakeLaunchSources()

    def full(self, free):
        self.network.by_id[self.subnet] = a_subnet(free=free)


class Model:
    """The fleet's instances fill its subnets."""

    subnet = f"subnet-{ZONE}"

    def __init__(self):
        timeline = Timeline()
        nothing = Injector(Faults.none(), Streams(1), timeline, lambda _: None)
        deaf = Listeners(**dict.fromkeys(("joined", "ended", "emit", "changed", "said"), lambda *_: None))
        plan = GroupPlan(name="g", zones=(ZONE,), size=2, maximum=4)
        self.fleet = SimFleet([plan], "blue", timeline, nothing, Random(1), deaf)
        self.network = SimNetwork(self.fleet, nothing)
        self.launches = SimLaunchSources(self.fleet)
        self._nothing = nothing

    def full(self, free):
        self._nothing.crowded[ZONE] = Crowd(since=0, until=float("inf"), left=free)


class Emulator:
    def __init__(self, aws, clients):
        self._aws = aws
        ec2 = aws.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZone=ZONE)
        self.subnet = made["Subnet"]["SubnetId"]
        self.network = Ec2Network(clients)
        self.launches = Ec2LaunchSources(clients)

    def full(self, free):
        self._aws.control("PUT", f"subnets/{self.subnet}", {"freeIps": free})


@pytest.fixture(params=["the fake", "the model", pytest.param("the emulator", marks=pytest.mark.local)])
def world(request):
    if request.param == "the fake":
        return Fake()
    if request.param == "the model":
        return Model()
    found = request.getfixturevalue
    return Emulator(found("local_aws"), found("emulator_clients"))


def test_a_subnet_comes_with_its_zone_and_free_addresses_and_an_unknown_one_is_absent(world):
    found = world.network.subnets([world.subnet, "subnet-0123456789abcdef0"])
    assert set(found) == {world.subnet}
    assert found[world.subnet].zone == ZONE
    assert found[world.subnet].free_ips > 100


def test_what_others_take_is_not_free(world):
    world.full(7)
    assert world.network.subnets([world.subnet])[world.subnet].free_ips == 7


def test_nothing_is_asked_for_no_ids(world):
    assert world.network.subnets([]) == {}


def test_a_tag_that_no_subnet_carries_finds_none(world):
    vpc = world.network.subnets([world.subnet])[world.subnet].vpc
    assert vpc
    assert world.network.subnets_tagged([vpc], "kubernetes.io/role/cni") == {}


def test_an_instance_type_comes_with_its_limits_and_an_unknown_one_is_absent(world):
    found = world.launches.instance_types(["m5.large", "m99.large"])
    assert set(found) == {"m5.large"}
    kind = found["m5.large"]
    assert (kind.vcpus, kind.max_enis, kind.ips_per_eni) == (2, 3, 10)
