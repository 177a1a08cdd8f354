"""Messages as AWS sends them, to the deployed functions and state machine, acting on the local cluster."""

import json
import time

import pytest

from local import fleet
from local.demo import ledger, scenario
from tests.local.chain.conftest import NEVER_JOIN, called, logged

pytestmark = pytest.mark.local


def lifecycle(stack, instance):
    answer = stack.client("autoscaling").describe_auto_scaling_instances(InstanceIds=[instance])
    return next((found["LifecycleState"] for found in answer["AutoScalingInstances"]), None)


def maximum(stack, group):
    answer = stack.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    return answer["AutoScalingGroups"][0]["MaxSize"]


def test_a_spot_warning_travels_the_whole_way(stack, crew):
    team = crew(2, spot=True, hook=True)
    victim = team.instances[0]
    team.run_pods(fleet.deployment("spot-app", 3, grace=5), fleet.budget("spot-app", maxUnavailable=1), instance=victim)
    team.stack.kubectl("label", "node", team.node_name(team.instances[1]), f"group={team.group}")
    warning = scenario.spot_warning(stack, victim)
    stack.emit(warning)
    stack.emit(warning)
    record = team.closed(victim)
    assert record.outcome == "terminated"
    assert record.evicted == 3
    assert len(record.launched) == 1
    assert record.times["replacement"] <= record.times["drained"]
    assert victim not in ledger.nodes(stack)
    assert [name for name in ledger.executions(stack) if name.startswith(victim)] == [f"{victim}-1"]
    team.until(lambda: lifecycle(stack, victim) is None, "the group has let go of it")
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")
    assert team.violations("spot-app") == []


def test_a_scale_in_is_drained_before_its_hook_is_answered(stack, crew):
    team = crew(1, hook=True)
    victim = team.instances[0]
    team.run_pods(fleet.deployment("scale-in-app", 2, grace=5), instance=victim)
    stack.client("autoscaling").set_desired_capacity(AutoScalingGroupName=team.group, DesiredCapacity=0)
    record = team.closed(victim)
    assert "asg_terminate" in record.causes
    assert record.launched == ()
    assert record.evicted >= 2
    assert ledger.group_size(stack, team.group) == (0, 0)


def test_a_hook_is_heartbeaten_for_as_long_as_a_budget_holds_the_drain(stack, crew):
    """Its own time-out is 30 s: unanswered and without heartbeats, the group would have gone on."""
    team = crew(1)
    victim = team.instances[0]
    autoscaling = stack.client("autoscaling")
    autoscaling.put_lifecycle_hook(
        AutoScalingGroupName=team.group,
        LifecycleHookName="straight-to-the-queue",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        NotificationTargetARN=f"arn:aws:sqs:{stack.region}:{stack.account}:leeward-interruption",
        RoleARN=f"arn:aws:iam::{stack.account}:role/notify",
        HeartbeatTimeout=30,
    )
    team.run_pods(fleet.deployment("long", 1, grace=1), fleet.budget("long", maxUnavailable=0), instance=victim)
    began = time.monotonic()
    autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=victim, ShouldDecrementDesiredCapacity=True)
    while time.monotonic() - began < 38:
        assert lifecycle(stack, victim) in {"InService", "Terminating", "Terminating:Wait"}
        time.sleep(0.5)
    stack.kubectl("delete", "pdb", "long")
    record = team.closed(victim)
    assert record.evicted == 1
    assert "leeward-terminate" not in record.hooks


def test_a_rebalance_recommendation_replaces_first_and_then_drains_where_the_group_is_at_its_maximum(stack, crew):
    team = crew(1, spot=True, maximum=1)
    victim = team.instances[0]
    stack.control("PUT", f"instances/{victim}", {"launchedSecondsAgo": 3600})  # a younger node is left
    stack.emit(
        scenario.envelope(
            stack,
            source="aws.ec2",
            kind="EC2 Instance Rebalance Recommendation",
            resources=[],
            detail={"instance-id": victim},
        )
    )
    record = team.closed(victim)
    assert len(record.launched) == 1
    assert record.times["replacement"] <= record.times["draining"]
    team.until(lambda: ledger.group_size(stack, team.group) == (1, 1), "the group at its size")
    team.until(lambda: maximum(stack, team.group) == 1, "MaxSize as its owner chose it")


def test_a_launch_that_the_old_instances_end_does_not_pay_for_is_paid_by_the_youngest_member(stack, crew):
    """Another tool terminates it at EC2 while it drains: the group replaces it, and would stay one too large."""
    team = crew(2, spot=True)
    victim, other = team.instances
    team.run_pods(fleet.deployment("owed", 1, grace=1), fleet.budget("owed", maxUnavailable=0), instance=victim)
    stack.emit(scenario.spot_warning(stack, victim))
    team.until(lambda: (found := team.record(victim)) is not None and found.launched, "a replacement launched")
    stack.client("ec2").terminate_instances(InstanceIds=[victim])
    record = team.closed(victim)
    (payer,) = record.offsets
    assert payer not in {victim, other}
    paid = team.closed(payer)
    # EC2's word of the end that we asked for joins where it comes before the record is closed
    assert set(paid.causes) - {"state_change"} == {"surplus"}
    assert paid.launched == ()
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")
    stack.kubectl("delete", "pdb", "owed")


def test_a_launch_hook_that_notifies_our_queue_is_answered_once_the_node_is_ready(stack, crew):
    team = crew(1)
    queue = f"arn:aws:sqs:{stack.region}:{stack.account}:leeward-interruption"
    autoscaling = stack.client("autoscaling")
    autoscaling.put_lifecycle_hook(
        AutoScalingGroupName=team.group,
        LifecycleHookName="wait-for-ready",
        LifecycleTransition="autoscaling:EC2_INSTANCE_LAUNCHING",
        NotificationTargetARN=queue,
        RoleARN=f"arn:aws:iam::{stack.account}:role/notify",
        HeartbeatTimeout=600,
    )
    team.keep_from_joining()
    autoscaling.set_desired_capacity(AutoScalingGroupName=team.group, DesiredCapacity=2)
    (newcomer,) = team.until(lambda: team.in_state("Pending:Wait"), "the newcomer held by the hook")
    team.until(lambda: logged(stack, "interruption", newcomer), "its message read, which finds no node")
    assert newcomer not in team.reconcile()["answered"]
    stack.client("ec2").delete_tags(Resources=[newcomer], Tags=[{"Key": NEVER_JOIN}])
    team.until(lambda: scenario.is_ready(ledger.nodes(stack).get(newcomer, {})), "its node Ready")
    assert newcomer in team.reconcile()["answered"]
    team.until(lambda: lifecycle(stack, newcomer) == "InService", "the newcomer in service")


def test_a_hook_of_ours_whose_instance_never_joined_is_answered(stack, crew):
    """Nothing to drain there: the hook must not wait for its time-out."""
    team = crew(0, hook=True)
    autoscaling = stack.client("autoscaling")
    team.keep_from_joining()
    autoscaling.set_desired_capacity(AutoScalingGroupName=team.group, DesiredCapacity=1)
    (victim,) = team.until(lambda: team.in_state("InService"), "an instance in service")
    autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=victim, ShouldDecrementDesiredCapacity=True)
    assert team.closed(victim).evicted == 0
    team.until(lambda: lifecycle(stack, victim) is None, "the group has let go of it")


def test_a_maintenance_of_two_instances_drains_both(stack, crew):
    team = crew(2)
    stack.emit(scenario.maintenance(stack, (team.instances[0], team.instances[1])))
    for victim in team.instances:
        assert team.closed(victim).outcome == "terminated"
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")


def test_a_foreign_hook_and_a_group_that_no_policy_selects_stay_untouched(stack, crew):
    team = crew(1, name="foreign")
    victim = team.instances[0]
    autoscaling = stack.client("autoscaling")
    autoscaling.put_lifecycle_hook(
        AutoScalingGroupName=team.group,
        LifecycleHookName="backup",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=600,
    )
    called(stack, "sync")
    hooks = autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=team.group)["LifecycleHooks"]
    assert [hook["LifecycleHookName"] for hook in hooks] == ["backup"]
    autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=victim, ShouldDecrementDesiredCapacity=True)
    team.until(lambda: ledger.queue_depth(stack) == 0, "the queue empty")
    team.reconcile()
    assert lifecycle(stack, victim) == "Terminating:Wait"
    assert team.record(victim) is None
    assert not ledger.is_tainted(ledger.nodes(stack)[victim])


def test_nonsense_ends_at_once_in_the_dead_letter_queue_with_its_reason(stack, crew):
    sqs = stack.client("sqs")
    sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName="leeward-interruption-dead-letters")["QueueUrl"])
    queue = sqs.get_queue_url(QueueName="leeward-interruption")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="this is not JSON")
    team = crew(0)
    team.until(lambda: any(body == "this is not JSON" for _, body in ledger.dead_letters(stack)), "dead-lettered")
    (reason,) = [reason for reason, body in ledger.dead_letters(stack) if body == "this is not JSON"]
    assert "JSON" in reason


def test_a_run_started_manually_drains_and_the_group_replaces_the_node(stack, crew):
    team = crew(1)
    victim = team.instances[0]
    machine = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:leeward-node-termination"
    client = stack.client("stepfunctions")
    run = client.start_execution(stateMachineArn=machine, name="manual", input=json.dumps({"instance": victim}))
    record = team.closed(victim)
    # EC2's word of the end that we asked for joins where it comes before the record is closed
    assert set(record.causes) - {"state_change"} == {"manual"}
    assert client.describe_execution(executionArn=run["executionArn"])["status"] == "SUCCEEDED"
    team.until(lambda: ledger.group_size(stack, team.group) == (1, 1), "the group at its size")


def test_manual_nonsense_fails_with_a_sentence(stack, crew):
    machine = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:leeward-node-termination"
    client = stack.client("stepfunctions")
    run = client.start_execution(stateMachineArn=machine, name="nonsense", input=json.dumps({"node": "x"}))

    def look():
        found = client.describe_execution(executionArn=run["executionArn"])
        return found if found["status"] != "RUNNING" else None

    found = crew(0).until(look, "its end")
    assert found["status"] == "FAILED"
    assert "instance" in found["cause"]


def test_a_blocked_drain_names_its_budget_and_gives_a_maintained_node_back(stack, crew):
    team = crew(1)
    victim = team.instances[0]
    team.run_pods(fleet.deployment("held", 1, grace=1), fleet.budget("held", maxUnavailable=0), instance=victim)
    stack.emit(scenario.maintenance(stack, (victim,)))
    node = team.node_name(victim)

    def says_why():
        events = [event for event in team.reported_about(node) if event["reason"] == "DrainBlocked"]
        return any("pdb default/held" in event["message"] for event in events)

    team.until(says_why, "an Event that names the budget")
    stack.kubectl("delete", "pdb", "held")
    assert team.closed(victim).outcome == "terminated"
