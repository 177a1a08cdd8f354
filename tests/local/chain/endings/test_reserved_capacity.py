"""Instances of reserved capacity that EC2 takes: Capacity Blocks that end, reservations that are interrupted."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.times import format_instant
from leeward.model.well_known import TERMINATES_AT
from local import fleet
from local.demo import ledger, scenario
from tests.local.chain.conftest import called

pytestmark = pytest.mark.local

LEFT = timedelta(minutes=4)  # until EC2 ends the instances: the pods have to be annotated two minutes before that
ENDS_AFTER = timedelta(minutes=30)  # the end of the block, after that


def instances(stack, group):
    return {str(member["InstanceId"]) for member in fleet.instances_of(stack, group)}


def state(stack, instance):
    (reservation,) = stack.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
    return reservation["Instances"][0]["State"]["Name"]


def put_into_block(team, name, *, warns):
    """Put the crew's instance into a block; return when EC2 ends it, in whole seconds."""
    taken = datetime.now(UTC).replace(microsecond=0) + LEFT
    body = {"ends": format_instant(taken + ENDS_AFTER), "instances": team.instances, "warns": warns}
    team.stack.control("PUT", f"capacity-blocks/{name}", body)
    return taken


def train(team, app):
    """Run a job that a budget keeps until it has saved its work."""
    team.run_pods(fleet.deployment(app, 2, grace=1), fleet.budget(app, maxUnavailable=0), instance=team.instances[0])


def annotations(stack, app):
    pods = stack.kubernetes("GET", f"/api/v1/namespaces/default/pods?labelSelector=app%3D{app}")["items"]
    return {pod["metadata"].get("annotations", {}).get(TERMINATES_AT) for pod in pods if pod["spec"].get("nodeName")}


def saves_its_work_when_it_reads_the_end(team, app, taken):
    """The pods say when their node ends; the job saves its work, and its budget lets them leave."""
    team.until(lambda: annotations(team.stack, app) == {format_instant(taken)}, f"{app} annotated with {taken}")
    team.stack.kubectl("delete", "pdb", app)


def drained(team):
    record = team.record(team.instances[0])
    return record.times.get("drained") if record is not None else None


def ends_with_the_block(team, taken):
    """The empty node stays until EC2 takes it, nothing is launched, and it is drained before."""
    victim = team.instances[0]
    assert team.until(lambda: drained(team), f"{victim} drained") < taken
    while datetime.now(UTC) < taken - timedelta(seconds=10):
        assert state(team.stack, victim) == "running"
        assert ledger.is_tainted(ledger.nodes(team.stack)[victim])
        assert instances(team.stack, team.group) == {victim}
        time.sleep(2)
    record = team.closed(victim)
    assert record.outcome == "terminated"
    assert "capacity_block" in record.causes
    assert (record.launched, record.evicted) == ((), 2)
    team.until(lambda: victim not in ledger.nodes(team.stack), "its Node removed")


@pytest.mark.long  # it waits four minutes for the end of the block
def test_instances_of_a_capacity_block_are_drained_before_ec2_ends_them_also_if_the_warning_is_lost(stack, crew):
    warned, unwarned = crew(1, hook=True, name="web-warned"), crew(1, hook=True, name="web-lost")
    train(warned, "warned")
    train(unwarned, "unwarned")
    lost = put_into_block(unwarned, "cr-00000000000000a1", warns=False)
    called(stack, "sync")
    assert unwarned.instances[0] in unwarned.reconcile()["restarted"]
    known = put_into_block(warned, "cr-00000000000000b2", warns=True)
    saves_its_work_when_it_reads_the_end(unwarned, "unwarned", lost)
    saves_its_work_when_it_reads_the_end(warned, "warned", known)
    ends_with_the_block(unwarned, lost)
    ends_with_the_block(warned, known)


def test_an_interrupted_capacity_reservation_is_replaced_and_drained_within_its_two_minutes(stack, crew):
    team = crew(2, hook=True)
    victim = team.instances[0]
    team.run_pods(fleet.deployment("reserved", 2, grace=1), instance=victim)
    taken = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=2)
    reserved = {"ends": format_instant(taken + timedelta(hours=2)), "instances": [victim]}
    stack.control("PUT", "capacity-blocks/cr-00000000000000c3", reserved)
    warning = scenario.envelope(
        stack,
        source="aws.ec2",
        kind="EC2 Capacity Reservation Instance Interruption Warning",
        resources=[f"arn:aws:ec2:{stack.region}:{stack.account}:instance/{victim}"],
        detail={
            "instance-id": victim,
            "instance-action": "terminate",
            "instance-termination-time": format_instant(taken),
        },
    )
    stack.emit(warning)
    record = team.closed(victim)
    assert record.outcome == "terminated"
    assert "capacity_reservation" in record.causes
    assert record.evicted == 2
    assert len(record.launched) == 1
    assert record.times["drained"] < taken
    assert annotations(stack, "reserved") <= {None}
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")
