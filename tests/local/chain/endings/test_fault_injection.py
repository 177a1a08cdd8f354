"""Rehearsals with AWS FIS on the deployed stack: an experiment interrupts a spot node, another one shifts a zone."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.aws.catalog import DynamoCatalog
from leeward.adapters.aws.table import Table
from local import fleet
from local.demo import ledger, scenario
from tests.local.chain.conftest import called

pytestmark = pytest.mark.local

BETWEEN_NOTICE_AND_END = timedelta(minutes=2)


@pytest.fixture
def rehearse(stack):
    """Start an experiment with one action; none is left running, and EC2 has capacity again."""
    fis, started = stack.client("fis"), []

    def begin(action, key, resource_type, arn, **parameters):
        target = {"resourceType": resource_type, "resourceArns": [arn], "selectionMode": "ALL"}
        made = fis.create_experiment_template(
            clientToken=str(uuid.uuid4()),
            description="rehearsal",
            roleArn=f"arn:aws:iam::{stack.account}:role/rehearsal",
            stopConditions=[{"source": "none"}],
            targets={"rehearsed": target},
            actions={"act": {"actionId": action, "parameters": parameters, "targets": {key: "rehearsed"}}},
        )
        name = fis.start_experiment(experimentTemplateId=made["experimentTemplate"]["id"])["experiment"]["id"]
        started.append(name)
        return name

    yield begin
    for name in started:
        if experiment(stack, name)["state"]["status"] in {"initiating", "running"}:
            fis.stop_experiment(id=name)
    stack.control("DELETE", "capacity")


def experiment(stack, name):
    return stack.client("fis").get_experiment(id=name)["experiment"]


def zone_of(stack, instance):
    (reservation,) = stack.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
    return reservation["Instances"][0]["Placement"]["AvailabilityZone"]


def is_cordoned(stack, instance):
    return bool(ledger.nodes(stack)[instance]["spec"].get("unschedulable"))


def ready_elsewhere(team, app, victim, count):
    """The names of the ready pods, once all of them are on other nodes."""
    pods = team.stack.kubernetes("GET", f"/api/v1/namespaces/default/pods?labelSelector=app%3D{app}")["items"]
    found = [pod["metadata"]["name"] for pod in pods if scenario.is_ready(pod) and pod["spec"]["nodeName"] != victim]
    return found if len(found) == count == len(pods) else None


def test_pods_of_an_interrupted_spot_node_are_ready_elsewhere_within_the_two_minutes(stack, crew, rehearse):
    team = crew(2, spot=True, hook=True, name="web-rehearsed")
    victim, other = team.instances
    node = team.node_name(victim)
    team.run_pods(
        fleet.deployment("rehearsed", 3, grace=5), fleet.budget("rehearsed", maxUnavailable=1), instance=victim
    )
    stack.kubectl("label", "node", team.node_name(other), f"group={team.group}")
    began = datetime.now(UTC)
    name = rehearse(
        "aws:ec2:send-spot-instance-interruptions",
        "SpotInstances",
        "aws:ec2:spot-instance",
        f"arn:aws:ec2:{stack.region}:{stack.account}:instance/{victim}",
        durationBeforeInterruption="PT2M",
    )
    team.until(lambda: ready_elsewhere(team, "rehearsed", node, 3), "three pods on other nodes")
    assert datetime.now(UTC) < began + BETWEEN_NOTICE_AND_END
    record = team.closed(victim)
    assert record.outcome == "terminated"
    assert "spot_interruption" in record.causes
    assert record.evicted == 3
    assert len(record.launched) == 1
    assert record.times["replacement"] <= record.times["drained"] < began + BETWEEN_NOTICE_AND_END
    assert [run for run in ledger.executions(stack) if run.startswith(victim)] == [f"{victim}-1"]
    assert team.violations("rehearsed") == []
    assert experiment(stack, name)["state"]["status"] == "completed"
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")


def test_no_launch_goes_to_the_zone_that_an_experiment_shifts_until_the_experiment_ends(stack, crew, rehearse):
    stack.control("PUT", f"managed-resources/{stack.cluster}", {"autoshift": "ENABLED"})
    team = crew(2, spot=True, hook=True, name="web-shifted")
    called(stack, "sync")
    victim, kept = team.instances
    zone, known = zone_of(stack, victim), DynamoCatalog(Table(Clients(stack), "leeward"))
    name = rehearse(
        "aws:arc:start-zonal-autoshift",
        "ManagedResources",
        "aws:arc:zonal-shift-managed-resource",
        f"arn:aws:eks:{stack.region}:{stack.account}:cluster/{stack.cluster}",
        availabilityZoneIdentifier=zone,
        duration="PT1H",
    )
    team.until(lambda: known.zonal_shifts(stack.cluster).zones == {zone}, "the shift is known by its event")
    team.until(lambda: is_cordoned(stack, victim), "EKS has cordoned the zone")
    assert not is_cordoned(stack, kept)
    node = team.node_name(victim)
    stack.emit(scenario.spot_warning(stack, victim))
    record = team.closed(victim)
    assert experiment(stack, name)["state"]["status"] == "running", (
        "the machine is too slow for the length of the shift"
    )
    (launched,) = record.launched
    assert zone_of(stack, launched) != zone
    messages = [one["message"] for one in team.reported_about(node) if one["reason"] == "ReplacementElsewhere"]
    assert f"not allowed by the zonal shift away from {zone} (FIS experiment since" in " ".join(messages)
    called(stack, "reconciler")
    assert known.zonal_shifts(stack.cluster).zones == {zone}

    stack.client("fis").stop_experiment(id=name)
    team.until(lambda: known.zonal_shifts(stack.cluster).zones == frozenset(), "the end is known by its event")
    assert experiment(stack, name)["state"]["status"] == "stopped"
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
