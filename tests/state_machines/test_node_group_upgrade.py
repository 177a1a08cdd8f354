"""The definition of node-group-upgrade, read as data: what no run of it shows by chance."""

import json
import re
from pathlib import Path

import pytest

from leeward.upgrade.run import Next
from leeward.upgrade.steps import STEPS

FILE = Path("functions/leeward/upgrade/state_machine.asl.json")
DEFINITION = json.loads(FILE.read_text())
STATES = DEFINITION["States"]
TASKS = {name: state for name, state in STATES.items() if state["Type"] == "Task"}
EXPRESSION = re.compile(r"\{%(.*?)%\}")


def targets(state):
    found = [state["Next"]] if "Next" in state else []
    found += [choice["Next"] for choice in state.get("Choices", ())]
    found += [state["Default"]] if "Default" in state else []
    return found + [catch["Next"] for catch in state.get("Catch", ())]


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_retry_catch_and_a_time_out(name):
    task = TASKS[name]
    assert task["TimeoutSeconds"] > 300
    assert any("States.ALL" in catch["ErrorEquals"] for catch in task["Catch"])
    retried = {error for retry in task["Retry"] for error in retry["ErrorEquals"]}
    assert {"RecordChangedError", "Lambda.Unknown", "ClusterUnreachableError", "ThrottledError"} <= retried


@pytest.mark.parametrize("name", TASKS)
def test_a_throttled_function_is_retried_for_at_least_fifteen_minutes(name):
    (retry,) = [r for r in TASKS[name]["Retry"] if "Lambda.TooManyRequestsException" in r["ErrorEquals"]]
    delays, delay = [], retry["IntervalSeconds"]
    for _ in range(retry["MaxAttempts"]):
        delays.append(min(delay, retry["MaxDelaySeconds"]) / 2)  # full jitter: half of it on average
        delay *= retry["BackoffRate"]
    assert sum(delays) >= 15 * 60


def test_the_states_take_every_step_and_no_other():
    taken = {task["Arguments"]["Payload"]["step"] for task in TASKS.values()}
    assert taken == set(STEPS)


def test_the_choices_compare_with_words_that_steps_say():
    said = set(re.findall(r"\.next = '([a-z-]+)'", FILE.read_text()))
    assert said <= {word.value for word in Next}


def test_every_state_is_reached_and_every_target_exists():
    reached, open_ = set(), [DEFINITION["StartAt"]]
    while open_:
        name = open_.pop()
        if name not in reached:
            reached.add(name)
            open_ += targets(STATES[name])
    assert reached == set(STATES)


def test_every_loop_pauses_and_ends_before_the_history_is_full():
    """Without the choices that look at `full`, no state leads back to itself, but for a rollback, which turns once."""
    rounds = {name for name, s in STATES.items() if any("full" in c["Condition"] for c in s.get("Choices", ()))}
    graph = {name: targets(state) for name, state in STATES.items() if name not in rounds}

    def leads_back(start):
        seen, open_ = set(), list(graph.get(start, ()))
        while open_:
            name = open_.pop()
            if name == start:
                return True
            if name not in seen:
                seen.add(name)
                open_ += graph.get(name, ())
        return False

    assert [name for name in graph if leads_back(name)] == []
    waits = [state for state in STATES.values() if state["Type"] == "Wait"]
    assert {state["Seconds"] for state in waits} == {"{% $states.input.pause %}"}


def test_every_failure_has_a_state_of_its_own_name():
    failures = {name: state for name, state in STATES.items() if state["Type"] == "Fail"}
    assert {name for name, state in failures.items() if state["Error"] != name} == {"NotTaken"}
    assert {"PreflightBlocked", "NodeCreationFailure", "PodEvictionFailure", "CanaryFailure"} <= set(failures)


def test_expressions_are_paths_and_comparisons():
    for expression in EXPRESSION.findall(FILE.read_text()):
        assert not re.findall(r"\$(\w+)\(", expression), expression
        assert "[" not in expression, expression


def test_every_state_says_what_it_is_for():
    assert DEFINITION["Comment"]
    assert [name for name, state in STATES.items() if len(state.get("Comment", "")) < 20] == []


def test_a_choice_has_no_gap():
    assert all("Default" in state for state in STATES.values() if state["Type"] == "Choice")
