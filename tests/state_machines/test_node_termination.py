"""The definition of node-termination, read as data: what no run of it shows by chance."""

import json
import re
from pathlib import Path

import pytest

FILE = Path("functions/leeward/termination/state_machine.asl.json")
DEFINITION = json.loads(FILE.read_text())
STATES = DEFINITION["States"]
TASKS = {name: state for name, state in STATES.items() if state["Type"] == "Task"}
EXPRESSION = re.compile(r"\{%(.*?)%\}")
ALLOWED_FUNCTIONS = {"string"}
PAUSES = {name for name, state in TASKS.items() if state["Resource"].endswith(".waitForTaskToken")}


def targets(state, *, catches=True):
    found = [state["Next"]] if "Next" in state else []
    found += [choice["Next"] for choice in state.get("Choices", ())]
    found += [state["Default"]] if "Default" in state else []
    return found + ([catch["Next"] for catch in state.get("Catch", ())] if catches else [])


def guards_its_loop(state):
    return any("> $states.input.until" in choice["Condition"] for choice in state.get("Choices", ()))


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_retry_catch_and_a_time_out(name):
    task = TASKS[name]
    assert task["Retry"]
    assert task["TimeoutSeconds"]
    assert any("States.ALL" in catch["ErrorEquals"] for catch in task["Catch"])


@pytest.mark.parametrize("name", sorted(set(TASKS) - PAUSES))
def test_a_throttled_function_is_retried_for_at_least_fifteen_minutes(name):
    (retry,) = [r for r in TASKS[name]["Retry"] if "Lambda.TooManyRequestsException" in r["ErrorEquals"]]
    assert retry["BackoffRate"] == 2
    assert retry["MaxDelaySeconds"] == 30
    assert retry["JitterStrategy"] == "FULL"
    delays, delay = [], retry["IntervalSeconds"]
    for _ in range(retry["MaxAttempts"]):
        delays.append(min(delay, retry["MaxDelaySeconds"]) / 2)  # full jitter: half of it on average
        delay *= retry["BackoffRate"]
    assert sum(delays) >= 15 * 60


@pytest.mark.parametrize("name", sorted(PAUSES))
def test_a_pause_catches_only_its_own_end_and_a_cause_that_joined(name):
    """A step's own failure is never caught by the pause: the token is handed over by the table alone."""
    own, rest = TASKS[name]["Catch"]
    assert own["ErrorEquals"] == ["States.Timeout", "DynamoDb.ConditionalCheckFailedException"]
    assert rest["Next"] == "NoteFailure"
    assert TASKS[name]["Arguments"]["ConditionExpression"] == "#version = :version"


def test_every_state_is_reached_and_every_target_exists():
    reached, open_ = set(), [DEFINITION["StartAt"]]
    while open_:
        name = open_.pop()
        if name not in reached:
            reached.add(name)
            open_ += targets(STATES[name])
    assert reached == set(STATES)


def test_every_loop_passes_a_state_with_a_deadline():
    """Without the choices that compare with `until`, no state leads back to itself."""
    graph = {name: targets(state) for name, state in STATES.items() if not guards_its_loop(state)}

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
    assert DEFINITION["TimeoutSeconds"] > 0


def test_expressions_are_paths_comparisons_and_allowed_functions():
    for expression in EXPRESSION.findall(FILE.read_text()):
        assert set(re.findall(r"\$(\w+)\(", expression)) <= ALLOWED_FUNCTIONS, expression
        assert "[" not in expression, expression


def test_every_state_says_what_it_is_for():
    assert DEFINITION["Comment"]
    assert [name for name, state in STATES.items() if len(state.get("Comment", "")) < 20] == []


def test_a_choice_has_no_gap():
    assert all("Default" in state for state in STATES.values() if state["Type"] == "Choice")
