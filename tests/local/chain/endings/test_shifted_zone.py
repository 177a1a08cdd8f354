"""A zone that an experiment of AWS FIS shifts, on the deployed stack."""

import pytest

from leeward.adapters.aws.catalog import DynamoCatalog
from leeward.adapters.aws.table import DynamoTable
from local import fleet, zones
from local.demo import ledger, scenario
from tests.local.chain.conftest import called

pytestmark = pytest.mark.local


@pytest.fixture
def shifted(stack):
    """Shift a zone as an experiment does; nothing of it is left, and EC2 has capacity again."""
    begun = []

    def begin(zone):
        begun.append(zone)
        zones.shift(stack, zone, shift_type="FIS_EXPERIMENT")

    yield begin
    for zone in begun:
        zones.end_shift(stack, zone, silent=True)
    stack.control("DELETE", "capacity")


def zone_of(stack, instance):
    (reservation,) = stack.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
    return reservation["Instances"][0]["Placement"]["AvailabilityZone"]


def is_cordoned(stack, instance):
    return bool(ledger.nodes(stack)[instance]["spec"].get("unschedulable"))


def test_no_launch_goes_to_the_zone_that_an_experiment_shifts_until_the_experiment_ends(stack, crew, shifted):
    team = crew(2, spot=True, hook=True, name="web-shifted")
    called(stack, "sync")
    victim, kept = team.instances
    zone, known = zone_of(stack, victim), DynamoCatalog(DynamoTable(Clients(stack), "leeward"))
    shifted(zone)
    team.until(lambda: known.zonal_shifts(stack.cluster).zones == {zone}, "the shift is known by its event")
    team.until(lambda: is_cordoned(stack, victim), "EKS has cordoned the zone")
    assert not is_cordoned(stack, kept)
    node = team.node_name(victim)
    stack.emit(scenario.spot_warning(stack, victim))
    record = team.closed(victim)
    (launched,) = record.launched
    assert zone_of(stack, launched) != zone
    messages = [one["message"] for one in team.reported_about(node) if one["reason"] == "ReplacementElsewhere"]
    assert f"not allowed by the zonal shift away from {zone} (FIS experiment since" in " ".join(messages)
    called(stack, "reconciler")
    assert known.zonal_shifts(stack.cluster).zones == {zone}

    zones.end_shift(stack, zone)
    team.until(lambda: known.zonal_shifts(stack.cluster).zones == frozenset(), "the end is known by its event")
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")
    only_there(stack, zone)
    stack.emit(scenario.spot_warning(stack, launched))
    (second,) = team.closed(launched).launched
    assert zone_of(stack, second) == zone


def only_there(stack, zone):
    """EC2 has capacity in no other zone."""
    for one in fleet.ZONES:
        if f"{stack.region}{one}" != zone:
            stack.control("POST", "capacity", {"zone": f"{stack.region}{one}", "times": None})


class Clients:
    """boto3 clients of the stack, as an adapter asks for them."""

    def __init__(self, stack):
        self._stack = stack

    def get(self, service):
        return self._stack.client(service)
