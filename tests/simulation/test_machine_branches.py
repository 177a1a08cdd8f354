"""Map and Parallel states and variables: order, concurrency, tolerance, scopes, what one failure does to the others."""

import pytest

from simulation.invocations import Ended
from simulation.timeline import START
from tests.simulation.machine_bench import BROKEN, CALL, DONE, Bench, types

TWICE = {"Type": "Pass", "Output": "{% $states.input.n * 2 %}", "End": True}


def a_map(states, **more):
    return {
        "Type": "Map",
        "Items": "{% $states.input.items %}",
        "ItemProcessor": {"StartAt": next(iter(states)), "States": states},
        "Next": "Done",
        **more,
    }


def a_call(**more):
    payload = {"n": "{% $states.input %}"}
    arguments = {"FunctionName": "f", "Payload": payload}
    return {
        "Type": "Task",
        "Resource": CALL,
        "Arguments": arguments,
        "Output": "{% $states.result.Payload %}",
        "End": True,
    } | more


def a_parallel(*branches, **more):
    branches = [{"StartAt": "Do", "States": {"Do": branch}} for branch in branches]
    return {"Type": "Parallel", "Branches": branches, "Next": "Done", **more}


def test_a_map_gives_its_outputs_in_the_order_of_the_items():
    bench = Bench({"Each": a_map({"Twice": TWICE}), "Done": DONE})
    assert bench.run(items=[{"n": 3}, {"n": 1}]).output == [6, 2]
    assert "MapIterationSucceeded" in types(bench.ended[0])


def test_a_map_without_items_is_done_at_once():
    assert Bench({"Each": a_map({"Twice": TWICE}), "Done": DONE}).run(items=[]).output == []


def test_what_is_no_list_cannot_be_mapped():
    end = Bench({"Each": a_map({"Twice": TWICE}), "Done": DONE}).run(items="three")
    assert (end.status, end.error) == ("FAILED", "States.QueryEvaluationError")


def test_an_item_selector_sees_the_item_its_number_and_the_input_of_the_map():
    selector = {
        "n": "{% $states.context.Map.Item.Value %}",
        "at": "{% $states.context.Map.Item.Index %}",
        "all": "{% $count($states.input.items) %}",
    }
    same = {"Same": {"Type": "Succeed", "Output": "{% [$states.input, $states.context.Map.Item.Index] %}"}}
    end = Bench({"Each": a_map(same, ItemSelector=selector), "Done": DONE}).run(items=[7, 8])
    assert end.output == [[{"n": 7, "at": 0, "all": 2}, 0], [{"n": 8, "at": 1, "all": 2}, 1]]


def test_no_more_iterations_run_at_once_than_the_map_allows():
    for at_once, waves in ((2, 3), (0, 1)):
        bench = Bench({"Each": a_map({"Do": a_call()}, MaxConcurrency=at_once), "Done": DONE}, Ended(result=1))
        assert bench.run(items=[1, 2, 3, 4, 5]).output == [1] * 5
        assert len({round(at, 3) for at, _, _ in bench.calls}) == waves


def test_one_iteration_that_fails_ends_the_others_and_its_error_is_the_maps():
    only_one_fails = {
        "Which": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input = 2 %}", "Next": "Broken"}],
            "Default": "Rest",
        },
        "Rest": {"Type": "Wait", "Seconds": 60, "End": True},
        "Broken": {"Type": "Fail", "Error": "Odd", "Cause": "two"},
    }
    catch = [{"ErrorEquals": ["Odd"], "Output": {"why": "{% $states.errorOutput.Cause %}"}, "Next": "Broken"}]
    bench = Bench({"Each": a_map(only_one_fails, Catch=catch), "Done": DONE, "Broken": BROKEN})
    end = bench.run(items=[1, 2, 3])
    assert (end.error, end.cause) == ("Broken", "two")
    assert end.stopped - START < 5
    assert types(end).count("MapIterationAborted") == 2
    assert types(end).count("WaitStateExited") == 0


@pytest.mark.parametrize(
    ("tolerance", "status"),
    [({"ToleratedFailureCount": 1}, "SUCCEEDED"), ({"ToleratedFailurePercentage": 25}, "FAILED")],
)
def test_tolerated_failures_leave_no_output_and_one_more_fails_the_map(tolerance, status):
    answers = [Ended(result=1), Ended(error="Odd"), Ended(result=3)]
    each = a_map({"Do": a_call()}, MaxConcurrency=1, **tolerance)
    end = Bench({"Each": each, "Done": DONE}, *answers).run(items=[1, 2, 3])
    assert end.status == status
    if status == "FAILED":
        assert end.error == "States.ExceedToleratedFailureThreshold"
    else:
        assert end.output == [1, 3]


def test_branches_run_side_by_side_on_the_same_input():
    rest = {"Type": "Wait", "Seconds": 30, "End": True}
    bench = Bench({"Both": a_parallel(rest, rest), "Done": DONE})
    end = bench.run(n=1)
    assert end.output == [{"n": 1}, {"n": 1}]
    assert end.stopped - START < 31


def test_a_parallel_state_is_retried_whole_and_then_caught():
    retry = [{"ErrorEquals": ["Odd"], "IntervalSeconds": 5, "MaxAttempts": 1}]
    catch = [{"ErrorEquals": ["States.ALL"], "Output": {"why": "{% $states.errorOutput.Error %}"}, "Next": "Broken"}]
    both = a_parallel(a_call(), a_call(), Retry=retry, Catch=catch)
    bench = Bench({"Both": both, "Done": DONE, "Broken": BROKEN}, Ended(result=1), Ended(error="Odd"))
    assert bench.run(n=1).cause == "Odd"
    assert len(bench.calls) == 4


def test_nested_branches_end_with_the_execution():
    inner = a_parallel(a_call(), a_call())
    each = a_map({"Both": {**inner, "Next": "Last"}, "Last": DONE})
    bench = Bench({"Each": each, "Done": DONE}, None)
    bench.at(5, lambda: bench.machine.stop("e"))
    end = bench.run(items=[1, 2])
    assert end.status == "ABORTED"
    assert types(end).count("TaskStateAborted") == 4
    assert types(end)[-1] == "ExecutionAborted"


def test_variables_are_assigned_together_and_read_everywhere_after():
    states = {
        "First": {"Type": "Pass", "Assign": {"a": 1, "b": 2}, "Next": "Swap"},
        "Swap": {"Type": "Pass", "Assign": {"a": "{% $b %}", "b": "{% $a %}"}, "Next": "Report"},
        "Report": {"Type": "Succeed", "Output": {"a": "{% $a %}", "sum": "{% $a * 10 + $b %}"}},
    }
    assert Bench(states).run().output == {"a": 2, "sum": 21}


def test_a_branch_reads_the_variables_outside_and_keeps_its_own():
    inside = {
        "Own": {"Type": "Pass", "Assign": {"own": "{% $outer + $states.input %}"}, "Next": "Report"},
        "Report": {"Type": "Succeed", "Output": "{% $own %}"},
    }
    states = {
        "Set": {"Type": "Pass", "Assign": {"outer": 10}, "Next": "Each"},
        "Each": a_map(inside, Next="After", Assign={"sums": "{% $states.result %}"}),
        "After": {"Type": "Succeed", "Output": {"sums": "{% $sums %}", "own": "{% $exists($own) %}"}},
    }
    assert Bench(states).run(items=[1, 2]).output == {"sums": [11, 12], "own": False}


def test_choices_and_catchers_assign_too():
    states = {
        "Which": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input.n = 1 %}", "Assign": {"way": "left"}, "Next": "Do"}],
            "Default": "Do",
            "Assign": {"way": "straight on"},
        },
        "Do": a_call(
            Catch=[
                {
                    "ErrorEquals": ["Odd"],
                    "Assign": {"error": "{% $states.errorOutput.Error %}"},
                    "Output": {"why": "{% $way %}"},
                    "Next": "Report",
                }
            ]
        ),
        "Report": {"Type": "Succeed", "Output": "{% $states.input.why & ', ' & $error %}"},
    }
    assert Bench(states, Ended(error="Odd")).run(n=1).output == "left, Odd"
    assert Bench(states, Ended(error="Odd")).run(n=2).output == "straight on, Odd"
