"""A zone that an operator evacuates and opens again by the real command, and capacity ahead for a shift of the local
ARC, on the deployed stack."""

import json
from pathlib import Path

import jsonschema
import pytest

from local import fleet, zones
from local.demo import ledger
from tests.local.chain.conftest import called

pytestmark = [pytest.mark.local, pytest.mark.long]

SCHEMAS = {
    name: json.loads(Path(f"docs/schema/zone-{name}.json").read_text()) for name in ("evacuate", "return", "status")
}


def zone_of(stack, name):
    (reservation,) = stack.client("ec2").describe_instances(InstanceIds=[name])["Reservations"]
    return reservation["Instances"][0]["Placement"]["AvailabilityZone"]


def zones_of(team):
    members = fleet.instances_of(team.stack, team.group)
    return [member["AvailabilityZone"] for member in members if member["LifecycleState"] == "InService"]


def sizes(team):
    """MinSize, desired, MaxSize and the suspended processes."""
    client = team.stack.client("autoscaling")
    (group,) = client.describe_auto_scaling_groups(AutoScalingGroupNames=[team.group])["AutoScalingGroups"]
    suspended = [one["ProcessName"] for one in group["SuspendedProcesses"]]
    return group["MinSize"], group["DesiredCapacity"], group["MaxSize"], suspended


def said(answer, schema=""):
    code, out, err = answer
    assert code == 0, err
    document = json.loads(out)
    if schema:
        jsonschema.validate(document, SCHEMAS[schema])
    return document


def state_of(leeward, zone):
    found = {one["zone"]: one for one in said(leeward("zone", "status"), "status")["zones"]}
    return found[zone]["state"]


def test_a_zone_is_evacuated_and_opened_by_the_command_and_the_group_has_its_sizes(stack, crew, leeward):
    team = crew(3, name="ahead")
    victim = team.instances[0]
    zone, before = zone_of(stack, victim), sizes(team)
    team.run_pods(fleet.deployment("leaves-the-zone", 2, grace=1), instance=victim)
    shown = said(leeward("zone", "evacuate", zone, "--group", team.group, "--dry-run"), "evacuate")
    assert {one["instance"]: one["standing"] for one in shown["nodes"]}[victim] == "leaves"
    assert state_of(leeward, zone) == "open"

    started = said(leeward("zone", "evacuate", zone, "--group", team.group, "--why", "a test", "--yes"), "evacuate")
    assert started["started"]
    try:
        team.reconcile()
        record = team.closed(victim)
        assert "evacuation" in record.causes
        assert zone_of(stack, record.launched[0]) != zone
        team.until(lambda: zone not in zones_of(team), "no node in the zone")
        assert sizes(team)[3] == ["AZRebalance"]
        assert state_of(leeward, zone) in {"evacuating", "evacuated"}
        (event,) = [one for one in team.reported_about(shown["nodes"][0]["node"]) if one["reason"] == "ZoneEvacuation"]
        assert "a test" in event["message"]
    finally:
        returned = said(leeward("zone", "return", zone), "return")
    assert returned["returned"]
    (group,) = (one for one in returned["groups"] if one["group"] == team.group)
    assert group["before"] == group["now"]
    team.until(lambda: team.reconcile() and sizes(team) == before, "sizes and processes as before")
    assert state_of(leeward, zone) == "open"


def test_with_prescale_capacity_is_launched_elsewhere_when_a_zone_is_shifted_and_terminated_when_it_is_over(
    stack, crew, leeward
):
    team = crew(3, name="ahead")
    zone, before = zone_of(stack, team.instances[0]), sizes(team)
    team.run_pods(fleet.deployment("stays-in-the-zone", 2, grace=1), instance=team.instances[0])
    called(stack, "sync")  # ARC names zones by id, which the subnets have
    zones.shift(stack, zone)
    try:
        team.reconcile()
        ahead = team.until(lambda: of_zone(leeward, zone)["launched"], "capacity ahead")
        mine = {one["InstanceId"]: one for one in fleet.instances_of(stack, team.group)}
        new = [name for name in ahead if name in mine]
        assert len(new) == 1
        assert mine[new[0]]["AvailabilityZone"] != zone
        team.until(lambda: new[0] in ledger.nodes(stack), "the new node")
        team.reconcile()
        assert sizes(team)[1] == before[1] + 1
    finally:
        zones.end_shift(stack, zone)
    team.reconcile()
    record = team.closed(new[0])
    assert "surplus" in record.causes
    assert [one for one in team.instances if one in mine] == team.instances
    team.until(lambda: team.reconcile() and sizes(team) == before, "sizes as before")
    team.until(lambda: team.reconcile() and of_zone(leeward, zone) is None, "nothing is left of it")


def of_zone(leeward, zone):
    (found,) = (one for one in said(leeward("zone", "status"), "status")["zones"] if one["zone"] == zone)
    return found["prescale"]
