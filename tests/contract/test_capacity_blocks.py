"""Capacity Blocks as `ports.compute.Instances` returns them: the emulated EC2, the simulated fleet, and the fake."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from leeward.adapters.aws.instances import Ec2Instances
from simulation.aws.fleet import SimFleet
from simulation.aws.listeners import Listeners
from simulation.aws.ports import SimInstances
from simulation.fault_rates import Faults
from simulation.faults import Injector
from simulation.timeline import Streams, Timeline
from tests.fakes.instances import FakeInstances
from tests.simulation.fleet_stand_in import GroupPlan

IN_AN_HOUR = timedelta(hours=1)


class Fake:
    def __init__(self):
        self.port = FakeInstances()

    def block(self):
        self.port.blocks["cr-0abc"] = datetime(2026, 3, 2, 12, tzinfo=UTC)
        self.port.reserved["i-0abc"] = "cr-0abc"
        return "cr-0abc", self.port.blocks["cr-0abc"], "i-0abc"


class Model:
    def __init__(self):
        timeline = self._timeline = Timeline()
        nothing = Injector(Faults.none(), Streams(1), timeline, lambda _: None)
        deaf = Listeners(**dict.fromkeys(("joined", "ended", "emit", "changed", "said", "asked"), lambda *_: None))
        plan = GroupPlan(name="g", spot=False, zones=("us-east-1a",), size=1, maximum=1)
        self._fleet = SimFleet([plan], "blue", timeline, nothing, Random(1), deaf)
        self._fleet.populate()
        self.port = SimInstances(self._fleet)

    def block(self):
        (member,) = self._fleet.instances.values()
        ends = self._timeline.instant() + IN_AN_HOUR
        self._fleet.notices.capacity_block([member], ends.timestamp(), warns=True)
        return member.reservation, ends, member.id


class Emulator:
    def __init__(self, aws, clients):
        self._aws, self.port = aws, Ec2Instances(clients)

    def block(self):
        ends = (datetime.now(UTC) + IN_AN_HOUR).replace(microsecond=0)
        body = {"ends": ends.isoformat(), "instances": ["i-0abc"]}
        self._aws.control("PUT", "capacity-blocks/cr-0abc", body)
        return "cr-0abc", ends, "i-0abc"


@pytest.fixture(params=["the fake", "the model", pytest.param("the emulator", marks=pytest.mark.local)])
def ec2(request):
    if request.param == "the emulator":
        return Emulator(*(request.getfixturevalue(name) for name in ("local_aws", "emulator_clients")))
    return Fake() if request.param == "the fake" else Model()


def test_a_block_shows_its_end_and_its_instances(ec2):
    assert ec2.port.in_reservations(["cr-0fff"]) == {}
    reservation, ends, instance = ec2.block()
    assert ec2.port.block_ends()[reservation] == ends
    assert ec2.port.in_reservations([reservation, "cr-0fff"]) == {instance: reservation}
