"""Step Functions and SQS: names, and which refusals are ordinary answers."""

import pytest

from leeward.adapters.aws.executions import StepFunctionsExecutions
from leeward.adapters.aws.queues import SqsDeadLetters
from leeward.errors import AccessDeniedError, ObjectGoneError, ThrottledError

MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-node-termination"
EXECUTION = "arn:aws:states:us-east-1:111122223333:execution:leeward-node-termination:i-0abc-2"
START = {"stateMachineArn": MACHINE, "name": "i-0abc-2", "input": '{"instance":"i-0abc","attempt":2,"v":1}'}


@pytest.fixture
def executions(aws):
    return StepFunctionsExecutions(aws.clients, MACHINE)


def expect_status(aws, status):
    answer = {
        "executionArn": EXECUTION,
        "stateMachineArn": MACHINE,
        "startDate": "2026-03-02T10:00:00Z",
        "status": status,
    }
    aws.expect("stepfunctions", "describe_execution", {"executionArn": EXECUTION}, answer)


class TestExecutions:
    def test_the_name_and_the_input_follow_from_the_attempt_alone(self, aws, executions):
        answer = {"executionArn": EXECUTION, "startDate": "2026-03-02T10:00:00Z"}
        aws.expect("stepfunctions", "start_execution", START, answer)
        assert executions.start("i-0abc", 2)

    @pytest.mark.parametrize(("status", "runs"), [("RUNNING", True), ("FAILED", False), ("SUCCEEDED", False)])
    def test_a_taken_name_runs_if_its_holder_does(self, aws, executions, status, runs):
        aws.refuse("stepfunctions", "start_execution", "ExecutionAlreadyExists", "taken")
        expect_status(aws, status)
        assert executions.start("i-0abc", 2) is runs

    def test_an_execution_that_never_was_does_not_run(self, aws, executions):
        aws.refuse("stepfunctions", "describe_execution", "ExecutionDoesNotExist")
        assert not executions.running("i-0abc", 2)

    def test_all_that_run_are_listed_a_thousand_at_a_time(self, aws, executions):
        asked = {"stateMachineArn": MACHINE, "statusFilter": "RUNNING", "maxResults": 1000}
        for number, (token, further) in enumerate([({}, {"nextToken": "t"}), ({"nextToken": "t"}, {})]):
            one = {
                "executionArn": EXECUTION,
                "stateMachineArn": MACHINE,
                "name": f"i-0abc-{number}",
                "status": "RUNNING",
                "startDate": "2026-03-02T10:00:00Z",
            }
            aws.expect("stepfunctions", "list_executions", asked | token, {"executions": [one], **further})
        assert executions.all_running() == {"i-0abc-0", "i-0abc-1"}

    def test_a_missing_state_machine_and_a_full_account_are_errors(self, aws, executions):
        aws.refuse("stepfunctions", "start_execution", "StateMachineDoesNotExist")
        aws.refuse("stepfunctions", "start_execution", "ExecutionLimitExceeded")
        with pytest.raises(ObjectGoneError, match="i-0abc-2"):
            executions.start("i-0abc", 2)
        with pytest.raises(ThrottledError):
            executions.start("i-0abc", 2)

    def test_a_pause_is_ended_with_an_empty_answer(self, aws, executions):
        aws.expect("stepfunctions", "send_task_success", {"taskToken": "token", "output": "{}"})
        executions.wake("token")

    @pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
    def test_a_pause_that_has_ended_needs_no_waking(self, aws, executions, code):
        aws.refuse("stepfunctions", "send_task_success", code)
        executions.wake("token")

    def test_a_token_is_never_repeated_in_an_error(self, aws, executions):
        aws.refuse("stepfunctions", "send_task_success", "AccessDeniedException", "no")
        with pytest.raises(AccessDeniedError) as raised:
            executions.wake("secret-token")
        assert "secret-token" not in str(raised.value)


class TestDeadLetters:
    def test_the_body_goes_as_it_came_with_reason_and_id(self, aws):
        attributes = {
            "reason": {"DataType": "String", "StringValue": "no JSON"},
            "message_id": {"DataType": "String", "StringValue": "m-1"},
        }
        sent = {"QueueUrl": "https://queue", "MessageBody": "{", "MessageAttributes": attributes}
        aws.expect("sqs", "send_message", sent)
        SqsDeadLetters(aws.clients, "https://queue").send("{", reason="no JSON", message_id="m-1")

    def test_even_a_message_without_anything_can_be_kept(self, aws):
        attributes = {name: {"DataType": "String", "StringValue": "unknown"} for name in ("reason", "message_id")}
        sent = {"QueueUrl": "https://queue", "MessageBody": "(empty)", "MessageAttributes": attributes}
        aws.expect("sqs", "send_message", sent)
        SqsDeadLetters(aws.clients, "https://queue").send("", reason="", message_id="")
