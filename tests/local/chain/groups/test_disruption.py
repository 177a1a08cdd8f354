"""A disruption run on the deployed stack: fn disruption-planner called as its schedule calls it, drifted nodes
replaced."""

import json

import pytest

from leeward.adapters.aws.table import DynamoTable
from leeward.adapters.aws.workflow_records import DynamoDisruptions
from leeward.disruption.record import DisruptionOutcome
from local.demo import ledger
from tests.local.chain.conftest import called
from tests.local.chain.groups.test_node_group_upgrade import another_image, group_of

pytestmark = pytest.mark.local


class Clients:
    """For the adapter of the runs' record."""

    def __init__(self, stack):
        self._stack = stack

    def get(self, service):
        return self._stack.client(service)


def decided(stack, team):
    """The executions of the next decision that comes to a run: after the last one the group rests for a second."""
    return team.until(lambda: called(stack, "disruption-planner")["disruptions"], "a run")


def disruption_of(stack):
    return DynamoDisruptions(DynamoTable(Clients(stack), "leeward")).read(stack.cluster)


def closed_disruption(stack, team, meanwhile=lambda: None):
    """The record of the last run, once it is closed."""

    def look():
        meanwhile()
        record = disruption_of(stack)
        return record if not record.open else None

    return team.until(look, "the end of the run")


def launch_from_another_image(stack, group):
    """Its nodes have drifted from now on; it may not shrink, so that each of them is replaced."""
    template = group_of(stack, group)["LaunchTemplate"]["LaunchTemplateId"]
    image = another_image(stack, group)
    stack.client("ec2").create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="$Latest", LaunchTemplateData={"ImageId": image}
    )
    stack.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=group, MinSize=2)
    return image


def images_of(stack, instances):
    reservations = stack.client("ec2").describe_instances(InstanceIds=list(instances))["Reservations"]
    return {one["ImageId"] for each in reservations for one in each["Instances"]}


@pytest.mark.long
def test_drifted_nodes_are_replaced_one_by_one_and_the_group_keeps_its_size(stack, crew):
    team = crew(2, name="worn")
    called(stack, "sync")
    image = launch_from_another_image(stack, team.group)
    for _ in team.instances:
        decided(stack, team)
        record = closed_disruption(stack, team)
        assert (record.outcome, record.groups) == (DisruptionOutcome.DONE, (team.group,)), record
        assert record.ends == dict.fromkeys(record.nodes.values(), "gone")
    after = group_of(stack, team.group)
    members = {member["InstanceId"] for member in after["Instances"]}
    assert not members & set(team.instances)
    assert (after["DesiredCapacity"], after["MaxSize"], len(members)) == (2, 12, 2)
    assert images_of(stack, members) == {image}
    assert after["SuspendedProcesses"] == []
    nodes = ledger.nodes(stack)
    assert not [name for name in members if nodes[name]["spec"].get("taints")]
    assert called(stack, "disruption-planner")["disruptions"] == []


def test_the_command_starts_the_run_of_the_plan_it_shows_and_follows_it_to_its_end(stack, crew, leeward):
    """With the caller's own credentials, as the planner would: its next call finds the run."""
    team = crew(2, name="worn")
    called(stack, "sync")
    launch_from_another_image(stack, team.group)
    shown = ("plan", "--method", "drift", "--group", team.group)
    team.until(lambda: json.loads(leeward(*shown)[1])["commands"], "a plan")
    code, out, err = leeward(*shown, "--apply", "--yes", "--watch")
    plan, record = json.loads(out), disruption_of(stack)
    assert (code, plan["run"]["started"], plan["run"]["number"]) == (0, True, record.number), err
    assert record.outcome is DisruptionOutcome.DONE, record
    assert [list(one.nodes) for one in record.commands] == [one["nodes"] for one in plan["commands"]]
    assert record.ends == dict.fromkeys(record.nodes.values(), "gone")
    assert f"run {record.number}: done: " in err
    assert f"{plan['commands'][0]['nodes'][0]}: gone" in err
    assert not set(record.nodes.values()) & {one["InstanceId"] for one in group_of(stack, team.group)["Instances"]}


def test_a_round_whose_execution_is_stopped_is_ended_and_nothing_of_it_is_left(stack, crew):
    team = crew(2, name="worn")
    called(stack, "sync")
    launch_from_another_image(stack, team.group)
    (execution,) = decided(stack, team)
    team.until(lambda: bool(disruption_of(stack).launched), "a launch")
    arn = f"arn:aws:states:{stack.region}:{stack.account}:execution:leeward-disruption:{execution}"
    stack.client("stepfunctions").stop_execution(executionArn=arn, cause="an operator stops it")

    record = closed_disruption(stack, team, meanwhile=team.reconcile)
    assert record.outcome is DisruptionOutcome.GIVEN_UP, record
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")
    nodes = ledger.nodes(stack)
    assert not [name for name in team.instances if nodes[name]["spec"].get("taints")]
    assert group_of(stack, team.group)["SuspendedProcesses"] == []
