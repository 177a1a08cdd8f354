"""What Step Functions remembers: pages of a history become stays in states, with what each said and what failed."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.aws.execution_history import StepFunctionsPast, steps_of
from leeward.errors import AccessDeniedError, ThrottledError
from leeward.model.execution import ExecutionStatus, Failure, Machine

BEGIN = datetime(2026, 3, 2, 10, tzinfo=UTC)
MACHINES = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-"
EXECUTION = "arn:aws:states:us-east-1:111122223333:execution:leeward-node-termination:i-0abc-2"
ASKED = {"executionArn": EXECUTION, "includeExecutionData": True, "maxResults": 1000}


@pytest.fixture
def past(aws):
    return StepFunctionsPast(aws.clients, MACHINES)


def an_event(number, kind, **details):
    detailed = {f"{kind[0].lower()}{kind[1:]}EventDetails": details} if details else {}
    for ending in ("StateEntered", "StateExited"):
        if kind.endswith(ending) and details:
            detailed = {f"{ending[0].lower()}{ending[1:]}EventDetails": details}
    return {"id": number, "type": kind, "timestamp": BEGIN + timedelta(seconds=number), **detailed}


def described(**more):
    return {
        "executionArn": EXECUTION,
        "stateMachineArn": f"{MACHINES}:leeward-node-termination",
        "name": "i-0abc-2",
        "startDate": BEGIN,
        "status": "RUNNING",
        **more,
    }


class TestLook:
    def test_a_running_one_has_no_end(self, aws, past):
        answer = described(input='{"instance":"i-0abc","attempt":2,"v":1}')
        aws.expect("stepfunctions", "describe_execution", {"executionArn": EXECUTION}, answer)
        found = past.look(Machine.TERMINATION, "i-0abc-2")
        assert (found.status, found.started, found.stopped) == (ExecutionStatus.RUNNING, BEGIN, None)
        assert found.given == {"instance": "i-0abc", "attempt": 2, "v": 1}

    def test_a_failed_one_says_why(self, aws, past):
        end = BEGIN + timedelta(minutes=3)
        answer = described(status="FAILED", stopDate=end, input="no JSON", error="PodEvictionFailure", cause="pods")
        aws.expect("stepfunctions", "describe_execution", {"executionArn": EXECUTION}, answer)
        found = past.look(Machine.TERMINATION, "i-0abc-2")
        assert (found.stopped, found.error, found.cause, found.given) == (end, "PodEvictionFailure", "pods", {})

    def test_one_that_never_was_or_is_forgotten_is_none(self, aws, past):
        aws.refuse("stepfunctions", "describe_execution", "ExecutionDoesNotExist")
        aws.refuse("stepfunctions", "get_execution_history", "ExecutionDoesNotExist")
        assert past.look(Machine.UPGRADE, "web-1") is None
        assert past.steps(Machine.UPGRADE, "web-1") is None

    @pytest.mark.parametrize(
        ("code", "error"), [("AccessDeniedException", AccessDeniedError), ("ThrottlingException", ThrottledError)]
    )
    def test_a_refusal_names_call_and_execution(self, aws, past, code, error):
        aws.refuse("stepfunctions", "get_execution_history", code, "no")
        with pytest.raises(error, match="states:GetExecutionHistory on leeward-node-termination:i-0abc-2"):
            past.steps(Machine.TERMINATION, "i-0abc-2")


class TestSteps:
    def test_the_history_is_read_page_by_page(self, aws, past):
        said = json.dumps({"next": "wait", "why": "default/web-1: pdb default/web allows none"})
        first = [
            {**an_event(1, "ExecutionStarted"), "executionStartedEventDetails": {"input": "{}"}},
            an_event(2, "TaskStateEntered", name="Drain"),
            an_event(3, "TaskScheduled"),
            an_event(4, "TaskFailed", resourceType="lambda", resource="invoke", error="Throttled", cause="slow"),
        ]
        second = [
            an_event(9, "TaskStateExited", name="Drain", output=said),
            an_event(10, "ChoiceStateEntered", name="DrainedYet"),
            an_event(11, "ChoiceStateExited", name="DrainedYet", output=said),
            an_event(12, "TaskStateEntered", name="WaitForPods"),
        ]
        answers = ({"events": first, "nextToken": "t"}, {"events": second})
        for asked, answer in zip((ASKED, {**ASKED, "nextToken": "t"}), answers, strict=True):
            aws.expect("stepfunctions", "get_execution_history", asked, answer)
        drain, choice, pause = past.steps(Machine.TERMINATION, "i-0abc-2")
        assert (drain.state, drain.next, drain.why) == (
            "Drain",
            "wait",
            "default/web-1: pdb default/web allows none",
        )
        assert (drain.entered, drain.left) == (BEGIN + timedelta(seconds=2), BEGIN + timedelta(seconds=9))
        assert drain.failures == (Failure(at=BEGIN + timedelta(seconds=4), error="Throttled", cause="slow"),)
        assert (choice.state, pause.state, pause.left) == ("DrainedYet", "WaitForPods", None)
        assert [step.works for step in (drain, choice, pause)] == [True, False, True]

    def test_a_time_out_is_a_failure_and_an_answer_that_is_no_object_says_nothing(self):
        events = [
            an_event(1, "TaskStateEntered", name="WaitForPods"),
            an_event(2, "TaskTimedOut", resourceType="aws-sdk:dynamodb", resource="updateItem", error="States.Timeout"),
            an_event(3, "TaskStateExited", name="WaitForPods", output="7"),
            an_event(4, "ExecutionFailed", error="X"),
        ]
        (pause,) = steps_of(events)
        assert [failure.error for failure in pause.failures] == ["States.Timeout"]
        assert (dict(pause.output), pause.next, pause.why) == ({}, "", "")
