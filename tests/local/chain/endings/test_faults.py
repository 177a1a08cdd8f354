"""Each fault still ends in the correct final state, on the deployed system."""

import json
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from local import fleet
from local.demo import ledger, scenario

pytestmark = pytest.mark.local


def test_a_function_killed_in_the_middle_of_a_drain(stack, crew):
    team = crew(2, spot=True, hook=True)
    victim = team.instances[0]
    team.run_pods(fleet.deployment("killed-app", 3, grace=40), instance=victim)
    stack.kubectl("label", "node", team.node_name(team.instances[1]), f"group={team.group}")
    stack.control("POST", "lambda/kill", {"function": "leeward-drain", "afterSeconds": 1.5, "times": 1})
    stack.emit(scenario.spot_warning(stack, victim))
    record = team.closed(victim)
    assert record.outcome == "terminated"
    assert len(record.launched) == 1
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")


def test_a_kubernetes_api_that_answers_500_for_thirty_seconds(stack, crew):
    team = crew(1)
    victim = team.instances[0]
    stack.cluster_control("POST", "faults", {"status": 500, "seconds": 3600})
    began = time.monotonic()
    stack.emit(scenario.maintenance(stack, (victim,)))
    team.until(lambda: team.record(victim), "the claim, although the cluster is gone")
    team.until(lambda: time.monotonic() - began > 30, "thirty seconds gone by")
    states = stack.client("autoscaling").describe_auto_scaling_instances(InstanceIds=[victim])
    assert states["AutoScalingInstances"][0]["LifecycleState"] == "InService"
    answers_again = datetime.now(UTC)
    stack.cluster_control("DELETE", "faults")
    record = team.closed(victim)
    assert record.outcome == "terminated"
    assert record.times["drained"] > answers_again


def test_a_throttled_describe_instances(stack, crew):
    team = crew(1, spot=True)
    victim = team.instances[0]
    stack.control(
        "POST",
        "faults",
        {"service": "ec2", "action": "DescribeInstances", "code": "RequestLimitExceeded", "status": 503, "times": 12},
    )
    stack.emit(scenario.spot_warning(stack, victim))
    assert team.closed(victim).outcome == "terminated"


@contextmanager
def events_lost(stack, pattern):
    """Those of all rules whose pattern holds these words, in any case."""
    events = stack.client("events")
    names = [rule["Name"] for rule in events.list_rules()["Rules"] if pattern in json.dumps(rule).lower()]
    assert names
    for name in names:
        events.disable_rule(Name=name)
    try:
        yield
    finally:
        for name in names:
            events.enable_rule(Name=name)


@pytest.fixture
def stopped(stack, crew):
    """An instance whose drain a budget held until an operator stopped it; by now nothing holds it any more."""

    def build(app):
        team = crew(1)
        victim = team.instances[0]
        team.run_pods(fleet.deployment(app, 1), fleet.budget(app, maxUnavailable=0), instance=victim)
        stack.emit(scenario.maintenance(stack, (victim,)))
        team.until(lambda: ledger.executions(stack).get(f"{victim}-1") == "RUNNING", "the run")
        arn = f"arn:aws:states:{stack.region}:{stack.account}:execution:leeward-node-termination:{victim}-1"
        stack.client("stepfunctions").stop_execution(executionArn=arn, cause="an operator")
        stack.kubectl("delete", "pdb", app)
        return team, victim

    return build


def test_a_stopped_execution_is_taken_up_again_at_once(stack, stopped):
    team, victim = stopped("stopped-and-reported")
    assert team.closed(victim).outcome == "terminated"
    assert f"{victim}-2" in ledger.executions(stack)


def test_a_stopped_execution_is_taken_up_again_by_the_sweeper_where_that_event_is_lost(stack, stopped):
    with events_lost(stack, "execution status change"):
        team, victim = stopped("stopped-app")
        assert team.reconcile()["restarted"] == [victim]
    assert team.closed(victim).outcome == "terminated"
    assert f"{victim}-2" in ledger.executions(stack)


def test_a_lost_lifecycle_event_is_found_by_the_sweeper(stack, crew):
    team = crew(1, hook=True)
    victim = team.instances[0]
    with events_lost(stack, "terminate"):
        stack.client("autoscaling").terminate_instance_in_auto_scaling_group(
            InstanceId=victim, ShouldDecrementDesiredCapacity=True
        )
        time.sleep(2)
        assert team.record(victim) is None
        assert victim in team.reconcile()["claimed"]
    assert team.closed(victim).outcome == "terminated"


def test_the_same_record_delivered_three_times(stack, crew):
    team = crew(2, spot=True)
    victim = team.instances[0]
    warning = scenario.spot_warning(stack, victim)
    for _ in range(3):
        stack.emit(warning)
    record = team.closed(victim)
    stack.emit(warning)
    team.until(lambda: ledger.queue_depth(stack) == 0, "the queue empty")
    assert len(record.launched) == 1
    assert [name for name in ledger.executions(stack) if name.startswith(victim)] == [f"{victim}-1"]
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")


def deny(stack, service, action, times):
    fault = {"service": service, "action": action, "code": "AccessDenied", "status": 403, "times": times}
    stack.control("POST", "faults", fault)


def test_a_permission_to_launch_that_is_missing_does_not_hold_up_a_spot_drain(stack, crew):
    team = crew(1, spot=True)
    victim = team.instances[0]
    deny(stack, "autoscaling", "LaunchInstances", 1)
    stack.emit(scenario.spot_warning(stack, victim))
    record = team.closed(victim)
    assert record.launched == ()
    assert "AccessDenied" in record.replacement
    team.until(lambda: ledger.group_size(stack, team.group) == (1, 1), "the group at its size")


@pytest.mark.long
def test_a_permission_that_is_missing_is_named_and_the_run_goes_on_once_it_is_there(stack, crew, swept_by_schedule):
    """The schedule's own reconciler starts it again, after the minute that a failed run rests."""
    team = crew(1)
    victim = team.instances[0]
    deny(stack, "autoscaling", "TerminateInstanceInAutoScalingGroup", 1)
    stack.emit(scenario.maintenance(stack, (victim,)))
    name = f"{victim}-1"
    team.until(lambda: ledger.executions(stack).get(name) == "FAILED", "the first run failed")
    arn = f"arn:aws:states:{stack.region}:{stack.account}:execution:leeward-node-termination:{name}"
    found = stack.client("stepfunctions").describe_execution(executionArn=arn)
    assert found["error"] == "NodeTerminationFailure"
    assert "autoscaling:TerminateInstanceInAutoScalingGroup" in found["cause"]
    assert team.closed(victim).outcome == "terminated"
    assert ledger.executions(stack)[f"{victim}-2"] == "SUCCEEDED"


def test_a_kubernetes_api_that_throttles_is_waited_for(stack, crew):
    team = crew(1)
    victim = team.instances[0]
    stack.cluster_control("DELETE", "faults")
    stack.cluster_control("POST", "faults", {"status": 429, "retryAfter": 1, "count": 6})
    stack.emit(scenario.maintenance(stack, (victim,)))
    assert team.closed(victim).outcome == "terminated"
    (throttled,) = stack.cluster_control("GET", "faults")
    assert throttled["hits"] == 6


def test_nonsense_of_every_shape_delays_no_message(stack, crew):
    """Two hundred malformed messages around one warning: the warning is dealt with, every other is dead-lettered."""
    team = crew(1, spot=True)
    victim = team.instances[0]
    sqs = stack.client("sqs")
    queue = sqs.get_queue_url(QueueName="leeward-interruption")["QueueUrl"]
    bodies = ["{", "[]", "null", '"x"', "7", '{"source": "aws.ec2", "detail-type": 3}', "\u2603", '{"detail": {}}']
    for start in range(0, 200, 10):
        entries = [{"Id": str(n), "MessageBody": bodies[(start + n) % len(bodies)]} for n in range(10)]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
        if start == 100:
            stack.emit(scenario.spot_warning(stack, victim))
    assert team.closed(victim).outcome == "terminated"
    team.until(lambda: ledger.queue_depth(stack) == 0, "the queue empty")
