"""The runner of state machines: retries, catches, time-outs, tokens, stops; its expressions against jsonata."""

from itertools import product

import pytest

from simulation.definitions import definitions
from simulation.expressions import UndefinedError, by_jsonata, evaluate, quick
from simulation.invocations import Ended
from simulation.timeline import START
from tests.simulation.machine_bench import BROKEN, DONE, Bench, pause, task


def expressions_of(value):
    if isinstance(value, dict):
        return set().union(*map(expressions_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(expressions_of, value))
    return {value[2:-2].strip()} if isinstance(value, str) and value.startswith("{%") else set()


def test_the_quick_evaluation_says_what_jsonata_says_for_every_expression_of_the_product():
    found = {expression: quick(expression) for expression in expressions_of(dict(definitions()))}
    assert sum(reading is not None for reading in found.values()) >= 15
    words = ("drained", "gone", "wait", "again", "remove", "hand-over", "failed", "terminate-first")
    for word, entered, pause_ in product(words, ("2026-03-02T10:00:00Z", "2026-03-05T10:00:00.500Z"), (0, 5)):
        data = {"next": word, "until": "2026-03-04T10:00:00Z", "pause": pause_, "instance": "i-0abc", "why": "so"}
        context = {"State": {"EnteredTime": entered}, "Execution": {"Name": "i-0abc-1"}, "Task": {"Token": "t"}}
        data |= {"version": 3, "run": {"instance": "i-0abc"}, "error": "E", "cause": "C"}
        states = {"input": data, "context": context, "result": {"Payload": data}}
        states["errorOutput"] = {"Error": "E", "Cause": "C"}
        scope = {"states": states}
        for expression, reading in found.items():
            if reading is not None:
                assert reading(scope) == by_jsonata(expression)(scope), expression


def test_an_expression_without_a_value_is_an_error():
    with pytest.raises(UndefinedError, match="is undefined"):
        evaluate({"a": ["{% $states.input.missing %}"]}, {"states": {"input": {}}})


def test_a_task_passes_its_output_on_and_the_history_names_each_event():
    bench = Bench({"Do": task(), "Done": DONE}, Ended(result={"n": 2}))
    end = bench.run(n=1)
    assert (end.status, end.output) == ("SUCCEEDED", {"n": 2})
    assert [event.type for event in end.history] == [
        "ExecutionStarted",
        "TaskStateEntered",
        "TaskScheduled",
        "TaskStarted",
        "TaskSucceeded",
        "TaskStateExited",
        "SucceedStateEntered",
        "SucceedStateExited",
        "ExecutionSucceeded",
    ]
    assert bench.calls[0][2] == {"n": 1}


def test_a_named_error_is_retried_with_a_growing_pause_and_then_caught():
    retry = [{"ErrorEquals": ["Slow"], "IntervalSeconds": 2, "BackoffRate": 2, "MaxAttempts": 3, "MaxDelaySeconds": 5}]
    catch = [{"ErrorEquals": ["States.ALL"], "Output": {"why": "{% $states.errorOutput.Error %}"}, "Next": "Broken"}]
    bench = Bench({"Do": task(Retry=retry, Catch=catch), "Done": DONE, "Broken": BROKEN}, Ended(error="Slow"))
    end = bench.run(n=1)
    gaps = [later[0] - earlier[0] for earlier, later in zip(bench.calls, bench.calls[1:], strict=False)]
    assert [round(gap, 1) for gap in gaps] == [2.1, 4.1, 5.1]
    assert (end.status, end.error, end.cause) == ("FAILED", "Broken", "Slow")


def test_jitter_comes_between_nothing_and_the_full_pause():
    retry = [{"ErrorEquals": ["Slow"], "IntervalSeconds": 8, "BackoffRate": 1, "MaxAttempts": 20}]
    retry[0]["JitterStrategy"] = "FULL"
    bench = Bench({"Do": task(Retry=retry), "Done": DONE}, Ended(error="Slow"))
    assert bench.run(n=1).status == "FAILED"
    gaps = {round(later[0] - earlier[0], 1) for earlier, later in zip(bench.calls, bench.calls[1:], strict=False)}
    assert len(gaps) > 10
    assert max(gaps) <= 8.1


def test_an_error_that_nothing_names_ends_the_execution():
    bench = Bench({"Do": task(), "Done": DONE}, Ended(error="Strange", cause="who knows"))
    end = bench.run(n=1)
    assert (end.status, end.error, end.cause) == ("FAILED", "Strange", "who knows")


def test_a_task_that_does_not_answer_times_out_and_its_late_answer_counts_no_more():
    catch = [{"ErrorEquals": ["States.Timeout"], "Output": {"why": "late"}, "Next": "Broken"}]
    states = {"Do": task(TimeoutSeconds=60, Catch=catch), "Done": DONE, "Broken": BROKEN}
    bench = Bench(states, None)
    end = bench.run(n=1)
    assert end.cause == "late"
    assert 60 <= end.history[-1].at - START < 61


def test_a_pause_ends_by_its_token_or_by_its_own_time():
    states = {"Rest": pause(TimeoutSeconds="{% $states.input.n %}"), "Done": DONE}
    states["Rest"]["Catch"] = [{"ErrorEquals": ["States.Timeout"], "Output": {"why": "rested"}, "Next": "Broken"}]
    states["Broken"] = BROKEN
    slept = Bench(states)
    assert slept.run(n=30).cause == "rested"
    woken = Bench(states)
    woken.timeline.after(10, lambda: woken.machine.succeed(woken.tokens[0]), "wake")
    end = woken.run(n=30)
    assert (end.status, round(end.history[-1].at - START)) == ("SUCCEEDED", 10)
    assert woken.machine.succeed(woken.tokens[0]) is False


def test_a_pause_whose_write_is_refused_ends_at_once():
    states = {"Rest": pause(TimeoutSeconds=30), "Done": DONE, "Broken": BROKEN}
    error = "DynamoDb.ConditionalCheckFailedException"
    states["Rest"]["Catch"] = [{"ErrorEquals": [error], "Output": {"why": "joined"}, "Next": "Broken"}]
    assert Bench(states, pause=error).run(n=1).cause == "joined"


def test_nothing_catches_a_stop_or_the_time_out_of_the_whole_machine():
    catch = [{"ErrorEquals": ["States.ALL"], "Output": {"why": "caught"}, "Next": "Broken"}]
    states = {"Do": task(Catch=catch), "Done": DONE, "Broken": BROKEN}
    stopped = Bench(states, None)
    stopped.timeline.after(5, lambda: stopped.machine.stop("e"), "stop")
    assert stopped.run(n=1).status == "ABORTED"
    assert Bench(states, None, seconds=100).run(n=1).status == "TIMED_OUT"


def test_a_name_runs_once():
    bench = Bench({"Do": task(), "Done": DONE}, Ended(result={}))
    assert bench.machine.start("e", {"n": 1})
    assert bench.machine.start("e", {"n": 1})
    bench.timeline.run_until(START + 10)
    assert len(bench.ended) == 1
    assert bench.machine.start("e", {"n": 1}) is False


def test_choices_passes_and_waits_lead_on():
    states = {
        "Which": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input.n > 3 %}", "Next": "Rest"}],
            "Default": "Broken",
        },
        "Rest": {"Type": "Wait", "Seconds": "{% $states.input.n %}", "Next": "Change"},
        "Change": {"Type": "Pass", "Output": {"twice": "{% $states.input.n * 2 %}"}, "Next": "Done"},
        "Done": DONE,
        "Broken": BROKEN,
    }
    end = Bench(states).run(n=7)
    assert end.output == {"twice": 14}
    assert 7 <= end.history[-1].at - START < 7.2
