"""What tasks call: functions with tokens, heartbeats, other state machines, SDK actions."""

import json

import pytest

from simulation.invocations import Ended
from simulation.timeline import START
from tests.simulation.machine_bench import BROKEN, CALL, DONE, Bench, pause, task, types

START_CHILD = "arn:aws:states:::states:startExecution"
WHY = {"why": "{% $states.errorOutput.Error & '|' & $states.errorOutput.Cause %}"}
CATCH = [{"ErrorEquals": ["States.ALL"], "Output": WHY, "Next": "Broken"}]


def for_token(**more):
    payload = {"token": "{% $states.context.Task.Token %}"}
    return task(
        Resource=f"{CALL}.waitForTaskToken",
        Arguments={"FunctionName": "f", "Payload": payload},
        Output="{% $states.result %}",
        **more,
    )


def child(resource=f"{START_CHILD}.sync:2", **more):
    arguments = {"StateMachineArn": "{% $states.input.arn %}", "Name": "kid", "Input": {"n": 5}}
    return task(Resource=resource, Arguments=arguments, Output="{% $states.result %}", **more)


def a_family(parent, *kids, **more):
    bench = Bench({"Do": parent, "Done": DONE, "Broken": BROKEN}, **more)
    kid = bench.add("kid", {"StartAt": "First", "States": dict(kids)})
    return bench, kid


def token_of(bench):
    return bench.calls[-1][2]["token"]


def test_a_function_takes_the_token_and_the_task_waits_for_its_answer():
    bench = Bench({"Do": for_token(), "Done": DONE}, Ended(result="ignored"))
    bench.at(50, lambda: bench.account.succeed(token_of(bench), {"n": 9}))
    end = bench.run()
    assert (end.output, round(end.stopped - START)) == ({"n": 9}, 50)
    assert types(end)[2:6] == ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded"]


def test_a_function_that_fails_fails_the_task_that_waits():
    bench = Bench({"Do": for_token(Catch=CATCH), "Done": DONE, "Broken": BROKEN}, Ended(error="Odd", cause="so"))
    assert bench.run().cause == "Odd|so"


def test_a_task_that_waits_can_be_failed_by_its_token_once():
    bench = Bench({"Do": for_token(Catch=CATCH), "Done": DONE, "Broken": BROKEN}, Ended(result=1))
    answers = []
    bench.at(10, lambda: answers.append(bench.account.fail(token_of(bench), "Odd", "manual")))
    bench.at(10, lambda: answers.append(bench.account.succeed(token_of(bench))))
    assert bench.run().cause == "Odd|manual"
    assert answers == [True, False]


def test_an_answer_that_was_taken_counts_even_against_a_time_out_of_the_same_moment():
    bench = Bench({"Do": for_token(TimeoutSeconds=10), "Done": DONE}, Ended(result=1))
    bench.at(0.05 + 10 - 0.000001, lambda: bench.account.succeed(token_of(bench)))
    assert bench.run().status == "SUCCEEDED"


def test_heartbeats_keep_a_task_alive_and_the_first_one_missed_ends_it():
    bench = Bench({"Do": for_token(HeartbeatSeconds=30, Catch=CATCH), "Done": DONE, "Broken": BROKEN}, Ended(result=1))
    beats = []
    for second in (20, 40, 60, 200):
        bench.at(second, lambda: beats.append(bench.account.heartbeat(token_of(bench))))
    end = bench.run()
    assert (end.cause, round(end.stopped - START)) == ("States.HeartbeatTimeout|", 90)
    assert beats == [True, True, True, False]


@pytest.mark.parametrize(("name", "caught"), [("States.Timeout", True), ("States.TaskFailed", False)])
def test_a_time_out_is_a_time_out_and_no_failed_task(name, caught):
    catch = [{"ErrorEquals": [name], "Output": {"why": "caught"}, "Next": "Broken"}]
    bench = Bench({"Do": task(TimeoutSeconds=5, Catch=catch), "Done": DONE, "Broken": BROKEN}, None)
    assert (bench.run(n=1).cause == "caught") is caught


def test_task_failed_covers_whatever_a_function_raises():
    catch = [{"ErrorEquals": ["States.TaskFailed"], "Output": {"why": "caught"}, "Next": "Broken"}]
    bench = Bench({"Do": task(Catch=catch), "Done": DONE, "Broken": BROKEN}, Ended(error="Odd"))
    assert bench.run(n=1).cause == "caught"


def test_a_machine_starts_another_and_takes_its_output_as_json():
    twice = {"Type": "Pass", "Output": {"n": "{% $states.input.n * 2 %}"}, "Next": "Last"}
    bench, kid = a_family(child(), ("First", twice), ("Last", DONE))
    bench.run(arn=kid.arn)
    assert [end.name for end in bench.ended] == ["kid", "e"]
    result = bench.ended[-1].output
    assert result["Output"] == {"n": 10}
    assert json.loads(result["Input"]) == {"n": 5}
    assert (result["Status"], result["StateMachineArn"]) == ("SUCCEEDED", kid.arn)


def test_a_child_that_fails_is_a_failed_task_with_the_child_as_its_cause():
    broken = {"Type": "Fail", "Error": "Odd", "Cause": "two"}
    bench, kid = a_family(child(Catch=CATCH), ("First", broken))
    bench.run(arn=kid.arn)
    error, _, cause = bench.ended[-1].cause.partition("|")
    assert error == "States.TaskFailed"
    description = json.loads(cause)
    assert (description["Status"], description["Error"], description["Cause"]) == ("FAILED", "Odd", "two")
    assert description["Name"] == "kid"


def test_who_does_not_wait_goes_on_at_once_and_the_child_ends_later():
    rest = {"Type": "Wait", "Seconds": 60, "Next": "Last"}
    bench, kid = a_family(child(START_CHILD), ("First", rest), ("Last", DONE))
    bench.run(arn=kid.arn)
    assert [end.name for end in bench.ended] == ["e", "kid"]


def test_a_parent_that_stops_or_times_out_stops_the_child_for_which_it_waits():
    rest = {"Type": "Wait", "Seconds": 600, "Next": "Last"}
    bench, kid = a_family(child(TimeoutSeconds=30, Catch=CATCH), ("First", rest), ("Last", DONE))
    bench.run(arn=kid.arn)
    assert [(end.name, end.status) for end in bench.ended] == [("kid", "ABORTED"), ("e", "FAILED")]
    assert bench.ended[-1].cause == "States.Timeout|"
    bench, kid = a_family(child(), ("First", rest), ("Last", DONE))
    bench.at(30, lambda: bench.machine.stop("e"))
    bench.run(arn=kid.arn)
    assert {(end.name, end.status) for end in bench.ended} == {("kid", "ABORTED"), ("e", "ABORTED")}


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (START_CHILD, "StepFunctions.ExecutionAlreadyExistsException"),
        ("arn:aws:states:::aws-sdk:sfn:startExecution", "Sfn.ExecutionAlreadyExistsException"),
    ],
)
def test_a_name_that_is_taken_is_an_error_of_the_task(resource, error):
    bench, kid = a_family(child(resource, Catch=CATCH), ("First", DONE))
    kid.start("kid", {"n": "another"})
    bench.run(arn=kid.arn)
    assert bench.ended[-1].cause.startswith(f"{error}|")


def test_an_unknown_machine_is_an_error_of_the_task():
    bench = Bench({"Do": child(Catch=CATCH), "Done": DONE, "Broken": BROKEN})
    assert bench.run(arn="arn:x").cause == "StepFunctions.StateMachineDoesNotExistException|arn:x"


def test_a_machine_answers_the_token_of_another():
    send = task(
        Resource="arn:aws:states:::aws-sdk:sfn:sendTaskSuccess",
        Arguments={"TaskToken": "{% $states.input.token %}", "Output": "{% $string({'n': 4}) %}"},
        Output={},
    )
    bench = Bench({"Do": for_token(), "Done": DONE}, Ended(result=1))
    other = bench.add("other", {"StartAt": "Do", "States": {"Do": send, "Done": DONE}})
    bench.at(10, lambda: other.start("o", {"token": token_of(bench)}))
    bench.run()
    assert {(end.name, end.status) for end in bench.ended} == {("o", "SUCCEEDED"), ("e", "SUCCEEDED")}
    assert next(end for end in bench.ended if end.name == "e").output == {"n": 4}


def test_other_sdk_actions_are_the_callers():
    write = task(
        Resource="arn:aws:states:::aws-sdk:dynamodb:updateItem", Arguments={"Key": 1}, Output="{% $states.result %}"
    )
    bench = Bench({"Do": write, "Done": DONE})
    assert bench.run().output == {"Called": "dynamodb:updateItem"}
    assert bench.called == [("dynamodb:updateItem", {"Key": 1})]


def test_a_token_of_a_pause_is_known_as_long_as_the_pause_lasts():
    bench = Bench({"Rest": pause(TimeoutSeconds=30, Catch=CATCH), "Done": DONE, "Broken": BROKEN})
    bench.run(seconds=10)
    assert bench.account.heartbeat(bench.tokens[0])
    bench.timeline.run_until(START + 100)
    assert not bench.account.heartbeat(bench.tokens[0])
    assert not bench.account.succeed(bench.tokens[0])
