"""Names, sizes, histories, errors that nothing catches, and expressions without a value."""

import pytest

from simulation.expressions import UndefinedError, evaluate
from simulation.invocations import Ended
from simulation.machine import StatesError
from simulation.machine.execution import DATA, HISTORY
from simulation.machine.matching import matches
from simulation.timeline import START
from tests.simulation.machine_bench import BROKEN, DONE, Bench, task, types

DAY = 86400.0
CATCH = [{"ErrorEquals": ["States.ALL"], "Output": {"why": "caught"}, "Next": "Broken"}]


def test_the_same_name_and_input_is_the_same_execution_and_anything_else_is_taken():
    bench = Bench({"Do": task(), "Done": DONE}, None)
    assert bench.machine.start("e", {"n": 1})
    assert bench.machine.start("e", {"n": 1})
    assert not bench.machine.start("e", {"n": 2})
    assert len(bench.machine.executions) == 1
    bench.machine.stop("e")
    assert not bench.machine.start("e", {"n": 1})
    assert not bench.machine.stop("e")
    assert bench.machine.closed == {"e": "ABORTED"}


def test_a_closed_name_is_taken_for_ninety_days_and_forgotten_with_the_next_end_after_them():
    bench = Bench({"Do": task(), "Done": DONE}, None)
    for days, name in ((0, "first"), (89, "second"), (2, "third")):
        bench.timeline.run_until(bench.timeline.now() + days * DAY)
        bench.machine.start(name, {"n": 1})
        bench.machine.stop(name)
    assert set(bench.machine.closed) == {"second", "third"}
    assert bench.machine.start("first", {"n": 2})
    assert not bench.machine.start("second", {"n": 2})


def test_the_same_name_means_another_execution_in_another_machine():
    bench = Bench({"Do": task(), "Done": DONE}, None)
    other = bench.add("other", {"StartAt": "Done", "States": {"Done": DONE}})
    assert bench.machine.start("e", {"n": 1})
    assert other.start("e", {"n": 2})
    with pytest.raises(ValueError, match="other already"):
        bench.add("other", {"StartAt": "Done", "States": {"Done": DONE}})


@pytest.mark.parametrize(
    ("names", "error", "covered"),
    [
        (["States.ALL"], "Odd", True),
        (["States.ALL"], "States.Timeout", True),
        (["States.ALL"], "States.HeartbeatTimeout", True),
        (["States.ALL"], "States.DataLimitExceeded", False),
        (["States.ALL"], "States.Runtime", False),
        (["States.Runtime"], "States.Runtime", False),
        (["States.DataLimitExceeded"], "States.DataLimitExceeded", True),
        (["States.TaskFailed"], "Odd", True),
        (["States.TaskFailed"], "States.Timeout", False),
        (["States.TaskFailed"], "States.HeartbeatTimeout", False),
        (["States.TaskFailed"], "States.DataLimitExceeded", False),
        (["States.Timeout"], "States.HeartbeatTimeout", True),
        (["States.HeartbeatTimeout"], "States.Timeout", False),
        (["Even"], "Odd", False),
    ],
)
def test_which_names_cover_which_errors(names, error, covered):
    assert matches(names, error) is covered


def test_too_much_data_is_caught_by_its_own_name_alone():
    answer = Ended(result={"n": "x" * DATA})
    states = {"Do": task(Catch=CATCH), "Done": DONE, "Broken": BROKEN}
    end = Bench(states, answer).run(n=1)
    assert (end.status, end.error) == ("FAILED", "States.DataLimitExceeded")
    named = [{"ErrorEquals": ["States.DataLimitExceeded"], "Output": {"why": "caught"}, "Next": "Broken"}]
    assert Bench({**states, "Do": task(Catch=named)}, answer).run(n=1).cause == "caught"


def test_an_input_may_have_256_kib_and_no_more():
    bench = Bench({"Done": DONE})
    fits = "x" * (DATA - 2)  # and its quotes
    assert bench.machine.start("fits", fits)
    with pytest.raises(StatesError, match="DataLimitExceeded"):
        bench.machine.start("too long", fits + "x")


def test_an_execution_that_goes_in_circles_ends_with_its_25000th_event():
    states = {
        "Disruption": {"Type": "Pass", "Next": "Again"},
        "Again": {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "Disruption"}]},
    }
    end = Bench(states).run()
    assert (end.status, end.error) == ("FAILED", "States.Runtime")
    assert len(end.history) == HISTORY
    assert types(end)[-1] == "ExecutionFailed"


def test_nothing_catches_a_full_history():
    again = [{"ErrorEquals": ["States.ALL"], "Output": "{% $states.input %}", "Next": "Do"}]
    bench = Bench({"Do": task(Catch=again), "Done": DONE}, Ended(error="Odd"))
    end = bench.run(n=1, seconds=10_000)
    assert (end.status, end.error, len(end.history)) == ("FAILED", "States.Runtime", HISTORY)
    assert bench.machine.executions == {}


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ({"Type": "Pass", "Output": "{% $states.input.nothing %}", "End": True}, "States.QueryEvaluationError"),
        ({"Type": "Pass", "Output": "{% $unknown %}", "End": True}, "States.QueryEvaluationError"),
        ({"Type": "Pass", "Output": "{% 1 + 'a' %}", "End": True}, "States.QueryEvaluationError"),
        (
            {"Type": "Choice", "Choices": [{"Condition": "{% 'yes' %}", "Next": "Do"}], "Default": "Do"},
            "States.QueryEvaluationError",
        ),
        ({"Type": "Choice", "Choices": [{"Condition": "{% false %}", "Next": "Do"}]}, "States.NoChoiceMatched"),
    ],
)
def test_what_cannot_be_decided_fails_the_execution(state, error):
    end = Bench({"Do": state}).run()
    assert (end.status, end.error) == ("FAILED", error)


def test_arguments_without_a_value_are_an_error_of_the_task_also_on_a_retry():
    retry = [{"ErrorEquals": ["States.QueryEvaluationError"], "IntervalSeconds": 1, "MaxAttempts": 2}]
    bench = Bench({"Do": task(Retry=retry, Catch=CATCH), "Done": DONE, "Broken": BROKEN}, Ended(result={}))
    end = bench.run()
    assert (end.cause, bench.calls) == ("caught", [])
    assert types(end).count("EvaluationFailed") == 3


def test_what_a_catch_gets_wrong_nothing_catches():
    catch = [{"ErrorEquals": ["States.ALL"], "Output": "{% $nothing %}", "Next": "Do"}]
    end = Bench({"Do": task(Catch=catch), "Done": DONE}, Ended(error="Odd")).run(n=1)
    assert (end.status, end.error) == ("FAILED", "States.QueryEvaluationError")


def test_a_wait_until_a_time_lasts_until_then_and_a_past_one_not_at_all():
    states = {"Rest": {"Type": "Wait", "Timestamp": "{% $states.input.until %}", "End": True}}
    assert Bench(states).run(until="2026-03-02T00:05:00Z").stopped - START == 300
    assert Bench(states).run(until="2026-03-01T00:00:00Z").stopped - START < 1


def test_retries_are_transitions_too():
    retry = [{"ErrorEquals": ["Odd"], "MaxAttempts": 2}]
    bench = Bench({"Do": task(Retry=retry), "Done": DONE}, Ended(error="Odd"))
    bench.run(n=1)
    assert bench.machine.transitions == 3


def test_variables_are_bound_and_a_json_text_can_be_parsed():
    scope = {"states": {"input": {}}, "plan": {"waves": [1, 2]}, "text": '{"n": 3}'}
    assert evaluate("{% $plan.waves %}", scope) == [1, 2]
    assert evaluate("{% $count($plan.waves) %}", scope) == 2
    assert evaluate("{% $parse($text).n %}", scope) == 3
    with pytest.raises(UndefinedError):
        evaluate("{% $parse('{') %}", scope)
