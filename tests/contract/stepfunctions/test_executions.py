"""Executions: names, tokens, retries, catches, time-outs, stops. The same events in the same order everywhere."""

import uuid

from tests.contract.stepfunctions.definitions import DONE, caught, each, pause, retried, side_by_side, work

CAUGHT = {"Type": "Pass", "Next": "Done"}
START = "ExecutionStarted"
DONE_EVENTS = ("SucceedStateEntered Done", "SucceedStateExited Done", "ExecutionSucceeded")
CALLED = ("TaskScheduled", "TaskStarted")
SUBMITTED = (*CALLED, "TaskSubmitted")
CAUGHT_EVENTS = ("PassStateEntered Caught", "PassStateExited Caught")


def run(world, states, data=None, **top):
    """From start to end."""
    machine = world.machine(states, **top)
    assert world.start(machine, "one", data or {})
    return world.end(machine, "one")


def paused(world, state, **top):
    """A machine whose execution `one` waits for its token."""
    key = uuid.uuid4().hex
    machine = world.machine({"Pause": state, "Caught": CAUGHT, "Done": DONE}, **top)
    data = {"key": key}
    assert world.start(machine, "one", data)
    return machine, data, world.token(key)


def test_a_start_of_the_same_name_and_input_is_the_same_execution_while_it_runs(world):
    machine, data, token = paused(world, pause())
    assert world.start(machine, "one", data)
    assert world.succeed(token, {})
    assert world.end(machine, "one").history.count("TaskScheduled") == 1


def test_a_start_with_another_input_is_refused(world):
    machine, data, token = paused(world, pause())
    assert not world.start(machine, "one", {**data, "more": 1})
    assert world.succeed(token, {})


def test_the_name_of_a_closed_execution_is_taken(world):
    machine, data, token = paused(world, pause())
    world.succeed(token, {})
    world.end(machine, "one")
    assert not world.start(machine, "one", data)
    assert world.start(machine, "two", data)


def test_a_call_that_succeeds(world):
    end = run(world, {"Work": work(world), "Done": DONE}, {"n": 1})
    assert (end.status, end.output) == ("SUCCEEDED", {"n": 1})
    assert end.history == (
        START,
        "TaskStateEntered Work",
        *CALLED,
        "TaskSucceeded",
        "TaskStateExited Work",
        *DONE_EVENTS,
    )


def test_a_machine_may_end_with_a_task(world):
    last = {key: value for key, value in work(world).items() if key != "Next"} | {"End": True}
    end = run(world, {"Work": last}, {"n": 1})
    assert end.history[-3:] == ("TaskSucceeded", "TaskStateExited Work", "ExecutionSucceeded")


def test_a_failing_call_is_tried_as_often_as_its_retry_says_and_then_caught(world):
    task = work(world, Retry=retried("Transient"), Catch=caught("States.ALL"))
    end = run(world, {"Work": task, "Caught": CAUGHT, "Done": DONE}, {"fail": "Transient"})
    assert end.output == {"error": "Transient"}
    assert end.history == (
        START,
        "TaskStateEntered Work",
        *(*CALLED, "TaskFailed") * 3,
        "TaskStateExited Work",
        *CAUGHT_EVENTS,
        *DONE_EVENTS,
    )


def test_an_error_that_no_retry_names_is_not_tried_again(world):
    task = work(world, Retry=retried("Transient"), Catch=caught("Fatal"))
    end = run(world, {"Work": task, "Caught": CAUGHT, "Done": DONE}, {"fail": "Fatal"})
    assert (end.output, end.history.count("TaskScheduled")) == ({"error": "Fatal"}, 1)


def test_an_error_that_nothing_catches_fails_the_execution(world):
    end = run(world, {"Work": work(world, Catch=caught("Other")), "Caught": CAUGHT, "Done": DONE}, {"fail": "Fatal"})
    assert (end.status, end.error) == ("FAILED", "Fatal")
    assert end.history == (START, "TaskStateEntered Work", *CALLED, "TaskFailed", "ExecutionFailed")


def test_a_call_that_takes_too_long_times_out(world):
    task = work(world, TimeoutSeconds=1, Catch=caught("States.Timeout"))
    end = run(world, {"Work": task, "Caught": CAUGHT, "Done": DONE}, {"sleep": 3})
    assert end.output == {"error": "States.Timeout"}
    assert end.history[2:6] == (*CALLED, "TaskTimedOut", "TaskStateExited Work")


def test_a_fail_state_fails_the_execution_under_its_name(world):
    end = run(world, {"Broken": {"Type": "Fail", "Error": "Broken", "Cause": "so"}})
    assert (end.status, end.error) == ("FAILED", "Broken")
    assert end.history == (START, "FailStateEntered Broken", "ExecutionFailed")


def test_a_pause_goes_on_with_what_its_token_brings_and_takes_no_second_answer(world):
    machine, _, token = paused(world, pause())
    assert world.succeed(token, {"woken": True})
    end = world.end(machine, "one")
    assert end.output == {"woken": True}
    assert end.history == (
        START,
        "TaskStateEntered Pause",
        *SUBMITTED,
        "TaskSucceeded",
        "TaskStateExited Pause",
        *DONE_EVENTS,
    )
    assert not world.succeed(token, {})


def test_a_pause_can_be_failed_by_its_token(world):
    machine, _, token = paused(world, pause(Catch=caught("Refused")))
    assert world.fail(token, "Refused", "no")
    end = world.end(machine, "one")
    assert end.output == {"error": "Refused"}
    assert end.history[2:7] == (*SUBMITTED, "TaskFailed", "TaskStateExited Pause")


def test_an_unanswered_pause_times_out_and_its_token_is_void(world):
    machine, _, token = paused(world, pause(TimeoutSeconds=15, Catch=caught("States.Timeout")))
    end = world.end(machine, "one")
    assert end.output == {"error": "States.Timeout"}
    assert end.history[2:7] == (*SUBMITTED, "TaskTimedOut", "TaskStateExited Pause")
    assert not world.succeed(token, {})


def test_a_pause_whose_hand_over_fails_does_not_wait(world):
    key = uuid.uuid4().hex
    world.hand_over_fails(key)
    task = pause(Catch=caught("DynamoDb.ConditionalCheckFailedException"))
    end = run(world, {"Pause": task, "Caught": CAUGHT, "Done": DONE}, {"key": key})
    assert end.output == {"error": "DynamoDb.ConditionalCheckFailedException"}
    assert end.history[2:6] == (*CALLED, "TaskFailed", "TaskStateExited Pause")


def test_an_execution_past_its_time_ends_and_nothing_catches_it(world):
    machine, _, token = paused(world, pause(Catch=caught("States.ALL")), TimeoutSeconds=40)
    end = world.end(machine, "one")
    assert end.status == "TIMED_OUT"
    assert end.history == (START, "TaskStateEntered Pause", *SUBMITTED, "ExecutionTimedOut")
    assert not world.succeed(token, {})


def test_a_stopped_execution_is_aborted_and_nothing_catches_it(world):
    machine, _, _ = paused(world, pause(Catch=caught("States.ALL")))
    world.stop(machine, "one")
    end = world.end(machine, "one")
    assert end.status == "ABORTED"
    assert end.history[:5] == (START, "TaskStateEntered Pause", *SUBMITTED)
    assert end.history[-1] == "ExecutionAborted"
    assert "TaskStateExited Pause" not in end.history


def test_choices_waits_and_passes_are_entered_and_left(world):
    states = {
        "Which": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input.n > 1 %}", "Next": "Pause"}],
            "Default": "Done",
        },
        "Pause": {"Type": "Wait", "Seconds": 1, "Next": "Say"},
        "Say": {"Type": "Pass", "Output": "{% $states.input.n %}", "Next": "Done"},
        "Done": DONE,
    }
    end = run(world, states, {"n": 2})
    assert end.output == 2
    passed = ("Choice", "Which"), ("Wait", "Pause"), ("Pass", "Say")
    walked = [f"{kind}State{what} {name}" for kind, name in passed for what in ("Entered", "Exited")]
    assert end.history == (START, *walked, *DONE_EVENTS)


def test_a_map_gives_its_outputs_in_order_and_shows_each_iteration(world):
    twice = {"Twice": {"Type": "Pass", "Output": "{% $states.input * 2 %}", "End": True}}
    end = run(world, {"Each": each(twice), "Done": DONE}, {"items": [3, 1]})
    assert end.output == [6, 2]
    one = ("MapIterationStarted", "PassStateEntered Twice", "PassStateExited Twice", "MapIterationSucceeded")
    around = (START, "MapStateEntered Each", "MapStateStarted")
    assert end.history == (*around, *one, *one, "MapStateSucceeded", "MapStateExited Each", *DONE_EVENTS)


def test_an_iteration_that_fails_fails_its_map_which_can_be_caught(world):
    broken = {"Broken": {"Type": "Fail", "Error": "Odd", "Cause": "so"}}
    end = run(world, {"Each": each(broken, Catch=caught("Odd")), "Caught": CAUGHT, "Done": DONE}, {"items": [1]})
    assert end.output == {"error": "Odd"}
    assert end.history[2:7] == (
        "MapStateStarted",
        "MapIterationStarted",
        "FailStateEntered Broken",
        "MapIterationFailed",
        "MapStateFailed",
    )


def test_branches_give_their_outputs_in_their_order(world):
    first, second = ({"Type": "Pass", "Output": n, "End": True} for n in (1, 2))
    end = run(world, {"Both": side_by_side(first, second), "Done": DONE})
    assert end.output == [1, 2]
    assert end.history[1:3] == ("ParallelStateEntered Both", "ParallelStateStarted")
    assert end.history[-5:] == ("ParallelStateSucceeded", "ParallelStateExited Both", *DONE_EVENTS)
    inside = {f"PassState{what} Branch{n}" for n in (0, 1) for what in ("Entered", "Exited")}
    assert set(end.history[3:-5]) == inside


def test_a_branch_that_fails_fails_all_of_them_and_can_be_retried(world):
    broken = {"Type": "Fail", "Error": "Odd", "Cause": "so"}
    state = side_by_side(broken, Retry=retried("Odd", times=1), Catch=caught("States.TaskFailed"))
    end = run(world, {"Both": state, "Caught": CAUGHT, "Done": DONE})
    assert end.output == {"error": "Odd"}
    once = ("ParallelStateStarted", "FailStateEntered Branch0", "ParallelStateFailed")
    assert end.history[2:9] == (*once, *once, "ParallelStateExited Both")
