"""A zone that an operator evacuates and opens again by the real command, on the deployed stack."""

import json
from pathlib import Path

import jsonschema
import pytest

from local import fleet

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
