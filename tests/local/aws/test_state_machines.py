"""Step Functions: pauses, time-outs, errors and ends as AWS documents them."""

import json
import time
import uuid

import pytest
from botocore.exceptions import ClientError

from .conftest import eventually


@pytest.fixture(scope="module")
def sfn(aws):
    return aws.client("stepfunctions")


@pytest.fixture(scope="module")
def table(aws):
    dynamodb = aws.client("dynamodb")
    dynamodb.create_table(
        TableName="tokens",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return dynamodb


@pytest.fixture
def a_machine(sfn):
    def build(states, start=None, **more):
        definition = {"QueryLanguage": "JSONata", "StartAt": start or next(iter(states)), "States": states, **more}
        return sfn.create_state_machine(
            name=f"m-{uuid.uuid4().hex[:8]}",
            definition=json.dumps(definition),
            roleArn="arn:aws:iam::000000000000:role/r",
        )["stateMachineArn"]

    return build


@pytest.fixture
def run(sfn):
    def start(machine, data=None, *, name=None):
        arn = sfn.start_execution(
            stateMachineArn=machine, input=json.dumps(data or {}), **({"name": name} if name else {})
        )["executionArn"]
        return ended(sfn, arn)

    return start


def ended(sfn, arn):
    def probe():
        found = sfn.describe_execution(executionArn=arn)
        return found if found["status"] != "RUNNING" else None

    return eventually(probe)


def output(execution):
    assert execution["status"] == "SUCCEEDED", (execution.get("error"), execution.get("cause"))
    return json.loads(execution["output"])


PAUSE = {
    "Type": "Task",
    "Resource": "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken",
    "Arguments": {
        "TableName": "tokens",
        "Key": {"pk": {"S": "{% $states.input.key %}"}},
        "UpdateExpression": "SET tok = :t",
        "ConditionExpression": "attribute_not_exists(tok)",
        "ExpressionAttributeValues": {":t": {"S": "{% $states.context.Task.Token %}"}},
    },
    "TimeoutSeconds": "{% $states.input.seconds %}",
    "Catch": [
        {
            "ErrorEquals": ["States.Timeout", "DynamoDb.ConditionalCheckFailedException"],
            "Output": "{% $states.errorOutput.Error %}",
            "Next": "Done",
        }
    ],
    "End": True,
}
DONE = {"Type": "Pass", "End": True}


def stored_token(table, key):
    def probe():
        return (
            table.get_item(TableName="tokens", Key={"pk": {"S": key}}, ConsistentRead=True).get("Item", {}).get("tok")
        )

    return eventually(probe)["S"]


def test_a_pause_stores_its_token_and_is_woken_by_it(a_machine, sfn, table):
    machine, key = a_machine({"Pause": PAUSE, "Done": DONE}), uuid.uuid4().hex
    arn = sfn.start_execution(stateMachineArn=machine, input=json.dumps({"key": key, "seconds": 60}))["executionArn"]
    token = stored_token(table, key)
    sfn.send_task_success(taskToken=token, output='{"woken": true}')
    assert output(ended(sfn, arn)) == {"woken": True}
    with pytest.raises(sfn.exceptions.TaskTimedOut):
        sfn.send_task_success(taskToken=token, output="{}")


def test_the_time_out_of_a_pause_is_an_expression_and_is_scaled(a_machine, run, aws, table):
    machine = a_machine({"Pause": PAUSE, "Done": DONE})
    aws.control("PUT", "time-scale", {"factor": 0.01})
    try:
        began = time.monotonic()
        assert output(run(machine, {"key": uuid.uuid4().hex, "seconds": 100})) == "States.Timeout"
        assert 0.9 < time.monotonic() - began < 90
    finally:
        aws.control("PUT", "time-scale", {"factor": 1})


def test_a_failing_update_fails_the_pause_and_can_be_caught(a_machine, run, table):
    key = uuid.uuid4().hex
    table.put_item(TableName="tokens", Item={"pk": {"S": key}, "tok": {"S": "taken"}})
    machine = a_machine({"Pause": PAUSE, "Done": DONE})
    assert output(run(machine, {"key": key, "seconds": 60})) == "DynamoDb.ConditionalCheckFailedException"


def test_a_missed_heartbeat_fails_the_pause(a_machine, run, table):
    pause = {**PAUSE, "HeartbeatSeconds": 1, "Catch": [{**PAUSE["Catch"][0], "ErrorEquals": ["States.Timeout"]}]}
    machine = a_machine({"Pause": pause, "Done": DONE})
    assert output(run(machine, {"key": uuid.uuid4().hex, "seconds": 60})) == "States.HeartbeatTimeout"


def test_a_state_machine_past_its_time_is_timed_out_and_reported(a_machine, run, a_queue):
    queue = a_queue("aws.states")
    machine = a_machine({"Wait": {"Type": "Wait", "Seconds": 60, "Next": "Done"}, "Done": DONE}, TimeoutSeconds=1)
    execution = run(machine, {"a": 1}, name="late")
    assert execution["status"] == "TIMED_OUT"
    arn = execution["executionArn"]
    reported = queue.event(lambda event: event["resources"] == [arn] and event["detail"]["status"] == "TIMED_OUT")
    assert reported["detail-type"] == "Step Functions Execution Status Change"
    detail = reported["detail"]
    assert (detail["executionArn"], detail["stateMachineArn"], detail["name"]) == (arn, machine, "late")
    assert (json.loads(detail["input"]), detail["output"]) == ({"a": 1}, None)
    assert detail["stopDate"] - detail["startDate"] >= 1000
    heard = [event["detail"]["status"] for event in queue.seen if event["resources"] == [arn]]
    assert heard == ["RUNNING", "TIMED_OUT"]


def test_a_stopped_execution_is_aborted_stays_aborted_and_does_nothing_more(a_machine, sfn, a_queue, table):
    queue, key = a_queue("aws.states"), uuid.uuid4().hex
    catch_all = {**PAUSE, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Write"}]}
    write = {
        "Type": "Task",
        "Resource": "arn:aws:states:::dynamodb:putItem",
        "Arguments": {"TableName": "tokens", "Item": {"pk": {"S": key + "-after"}}},
        "End": True,
    }
    machine = a_machine({"Pause": catch_all, "Write": write})
    arn = sfn.start_execution(stateMachineArn=machine, input=json.dumps({"key": key, "seconds": 60}))["executionArn"]
    stored_token(table, key)
    sfn.stop_execution(executionArn=arn, error="Operator", cause="enough")
    reported = queue.event(lambda event: event["resources"] == [arn] and event["detail"]["status"] == "ABORTED")
    assert (reported["detail"]["error"], reported["detail"]["cause"]) == ("Operator", "enough")
    time.sleep(0.5)
    assert sfn.describe_execution(executionArn=arn)["status"] == "ABORTED"
    assert "Item" not in table.get_item(TableName="tokens", Key={"pk": {"S": key + "-after"}})


@pytest.mark.parametrize(("level", "types"), [("ERROR", ["FailStateEntered", "ExecutionFailed"]), ("OFF", [])])
def test_the_log_group_has_the_events_of_the_level(aws, a_machine, run, sfn, level, types):
    logs, group = aws.client("logs"), f"/aws/vendedlogs/states/{uuid.uuid4().hex[:8]}"
    logs.create_log_group(logGroupName=group)
    machine = a_machine(
        {"Give": {"Type": "Pass", "Next": "Up"}, "Up": {"Type": "Fail", "Error": "Why", "Cause": "i-0"}}
    )
    destination = {
        "cloudWatchLogsLogGroup": {"logGroupArn": f"arn:aws:logs:us-east-1:000000000000:log-group:{group}:*"}
    }
    sfn.update_state_machine(
        stateMachineArn=machine,
        loggingConfiguration={"level": level, "includeExecutionData": True, "destinations": [destination]},
    )
    execution = run(machine)
    lines = [json.loads(event["message"]) for event in logs.filter_log_events(logGroupName=group)["events"]]
    assert [line["type"] for line in lines] == types
    assert {line["execution_arn"] for line in lines} <= {execution["executionArn"]}
    assert [line["details"]["cause"] for line in lines if line["type"] == "ExecutionFailed"] == ["i-0"] * len(types[1:])


def test_starting_twice_is_one_execution_while_it_runs_and_refused_after(a_machine, sfn, table):
    machine, key = a_machine({"Pause": PAUSE, "Done": DONE}), uuid.uuid4().hex
    data = json.dumps({"key": key, "seconds": 60})
    first = sfn.start_execution(stateMachineArn=machine, name="one", input=data)
    again = sfn.start_execution(stateMachineArn=machine, name="one", input=data)
    assert (first["executionArn"], first["startDate"]) == (again["executionArn"], again["startDate"])
    assert len(sfn.list_executions(stateMachineArn=machine)["executions"]) == 1
    with pytest.raises(sfn.exceptions.ExecutionAlreadyExists):
        sfn.start_execution(stateMachineArn=machine, name="one", input="{}")
    sfn.send_task_success(taskToken=stored_token(table, key), output="{}")
    ended(sfn, first["executionArn"])
    with pytest.raises(sfn.exceptions.ExecutionAlreadyExists):
        sfn.start_execution(stateMachineArn=machine, name="one", input=data)
    with pytest.raises(sfn.exceptions.InvalidName):
        sfn.start_execution(stateMachineArn=machine, name="x" * 81, input=data)


def test_sdk_tasks_reach_auto_scaling_typed_and_their_errors_have_the_java_names(a_machine, run, a_group):
    group = a_group(desired=1)
    describe = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:autoscaling:describeAutoScalingGroups",
        "Arguments": {"AutoScalingGroupNames": [group.name]},
        "Output": "{% $states.result.AutoScalingGroups[0].{'max': MaxSize, 'ids': [Instances.InstanceId]} %}",
        "Next": "Fail",
    }
    fail = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:autoscaling:terminateInstanceInAutoScalingGroup",
        "Arguments": {"InstanceId": "i-00000000000000000", "ShouldDecrementDesiredCapacity": False},
        "Catch": [
            {
                "ErrorEquals": ["AutoScaling.AutoScalingException"],
                "Output": "{% $merge([$states.input, {'error': $states.errorOutput.Cause}]) %}",
                "Next": "Done",
            }
        ],
        "End": True,
    }
    result = output(run(a_machine({"Describe": describe, "Fail": fail, "Done": DONE})))
    assert result["max"] == 6
    assert result["ids"] == list(group.states())
    assert "No managed instance found" in result["error"]


def test_the_context_names_execution_and_state_and_history_is_linked(a_machine, run, sfn):
    show = {
        "Type": "Pass",
        "Output": "{% $states.context.[Execution.Name, Execution.StartTime, State.EnteredTime] %}",
        "Next": "Each",
    }
    each = {
        "Type": "Map",
        "Items": "{% $states.input %}",
        "ItemProcessor": {"StartAt": "One", "States": {"One": {"Type": "Pass", "End": True}}},
        "End": True,
    }
    execution = run(a_machine({"Show": show, "Each": each}), name="named")
    found = output(execution)
    assert found[0] == "named"
    assert found[1].endswith("Z")
    assert found[2].endswith("Z")
    events = sfn.get_execution_history(executionArn=execution["executionArn"])["events"]
    assert [event["previousEventId"] for event in events] == list(range(len(events)))
    entered = [event["stateEnteredEventDetails"]["name"] for event in events if "stateEnteredEventDetails" in event]
    assert entered == ["Show", "Each", "One", "One", "One"]


def test_a_nested_start_with_a_used_name_has_an_error_that_can_be_caught(a_machine, run):
    child = a_machine({"Done": DONE})
    start = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution",
        "Arguments": {"StateMachineArn": child, "Name": "same", "Input": "{% $states.input %}"},
        "Catch": [
            {
                "ErrorEquals": ["StepFunctions.ExecutionAlreadyExistsException"],
                "Output": "refused",
                "Next": "Done",
            }
        ],
        "Output": "started",
        "End": True,
    }
    machine = a_machine({"Start": start, "Done": DONE})
    assert output(run(machine, {"n": 1})) == "started"
    assert output(run(machine, {"n": 2})) == "refused"


def test_a_parent_goes_on_after_a_child_that_it_waited_for(a_machine, run):
    child = a_machine({"Done": {"Type": "Pass", "Output": {"child": True}, "End": True}})
    start = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": child, "Input": {}},
        "Output": "{% $states.result.Output %}",
        "Next": "Wait",
    }
    wait = {"Type": "Wait", "Seconds": 0, "Next": "Task"}
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:ec2:describeVpcs",
        "Arguments": {},
        "Output": "{% $states.input %}",
        "End": True,
    }
    assert output(run(a_machine({"Start": start, "Wait": wait, "Task": task}))) == {"child": True}


def test_retries_back_off_no_longer_than_their_maximum(a_machine, run):
    failing = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:eks:describeCluster",
        "Arguments": {"Name": "no-such"},
        "Retry": [
            {
                "ErrorEquals": ["Eks.ResourceNotFoundException"],
                "IntervalSeconds": 1,
                "BackoffRate": 10,
                "MaxDelaySeconds": 1,
                "MaxAttempts": 3,
                "JitterStrategy": "FULL",
            }
        ],
        "End": True,
    }
    began = time.monotonic()
    execution = run(a_machine({"Describe": failing}))
    assert (execution["status"], execution["error"]) == ("FAILED", "Eks.ResourceNotFoundException")
    assert time.monotonic() - began < 20  # 1 + 1 + 1 s at the most, not 1 + 10 + 100


def test_put_events_refuses_aws_sources_and_the_control_api_injects_them(aws, a_queue):
    queue, events = a_queue("aws.ec2"), aws.client("events")
    entry = {"Source": "aws.ec2", "DetailType": "x", "Detail": "{}"}
    assert events.put_events(Entries=[entry])["Entries"][0]["ErrorCode"] == "NotAuthorizedForSourceException"
    body = {
        "source": "aws.ec2",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": {"instance-id": "i-1", "instance-action": "terminate"},
        "time": "2026-01-02T03:04:05Z",
        "id": "11111111-1111-1111-1111-111111111111",
    }
    for _ in range(2):
        assert aws.control("POST", "events", body) == {"id": body["id"]}
    eventually(lambda: queue.event(lambda _: len([e for e in queue.seen if e["id"] == body["id"]]) == 2))
    event = next(event for event in queue.seen if event["id"] == body["id"])
    assert (event["time"], event["account"], event["region"]) == (body["time"], aws.account, aws.region)
    assert event["detail"] == body["detail"]


def test_bad_control_requests_are_reported_so(aws):
    with pytest.raises(OSError, match="400"):
        aws.control("POST", "events", {"source": "aws.ec2"})


def test_injected_faults_answer_in_the_services_protocol(aws):
    ec2, dynamodb = aws.client("ec2"), aws.client("dynamodb")
    aws.control(
        "POST",
        "faults",
        {"service": "ec2", "action": "DescribeInstances", "code": "RequestLimitExceeded", "status": 503},
    )
    aws.control("POST", "faults", {"service": "dynamodb", "code": "ThrottlingException", "status": 400, "times": 1})
    with pytest.raises(ClientError) as caught:
        ec2.describe_instances()
    assert caught.value.response["Error"]["Code"] == "RequestLimitExceeded"
    ec2.describe_instances()
    with pytest.raises(ClientError) as caught:
        dynamodb.list_tables()
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    dynamodb.list_tables()


def test_a_definition_is_judged_by_the_published_validator(sfn):
    good = {"StartAt": "Here", "States": {"Here": {"Type": "Pass", "End": True}}}
    assert sfn.validate_state_machine_definition(definition=json.dumps(good))["result"] == "OK"
    for bad in ({**good, "StartAt": "Nowhere"}, {"StartAt": "Here", "States": {"Here": {"Type": "Pass"}}}):
        answer = sfn.validate_state_machine_definition(definition=json.dumps(bad))
        assert (answer["result"], len(answer["diagnostics"])) == ("FAIL", 1)
        assert answer["diagnostics"][0]["message"]
