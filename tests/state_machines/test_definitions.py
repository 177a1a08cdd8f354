"""Every state machine's definition, read as data: what no run of it shows by chance."""

import re

import jsonata
import pytest
import yaml

from infra.asl import SHARED as SHARED_BLOCKS
from tests.state_machines.graph import Graph, existing

GRAPHS = [Graph(name) for name in existing()]
ALLOWED_FUNCTIONS = {"string"}
SHARED = yaml.safe_load(SHARED_BLOCKS.read_text(encoding="utf-8"))["x-expression"]  # test_causes.py evaluates them

machines = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
tasks = pytest.mark.parametrize(
    "task", [pytest.param(task, id=f"{g.name}-{name}") for g in GRAPHS for name, task in g.tasks.items()]
)
steps = pytest.mark.parametrize(
    "task",
    [
        pytest.param(t, id=f"{g.name}-{n}")
        for g in GRAPHS
        for n, t in g.tasks.items()
        if "lambda:invoke" in t["Resource"]
    ],
)


@tasks
def test_every_task_has_retry_catch_and_a_time_out(task):
    assert task["Retry"]
    assert task["TimeoutSeconds"]
    assert any("States.ALL" in catch["ErrorEquals"] for catch in task["Catch"])


@steps
def test_a_throttled_function_is_retried_for_at_least_fifteen_minutes(task):
    (retry,) = [r for r in task["Retry"] if "Lambda.TooManyRequestsException" in r["ErrorEquals"]]
    assert (retry["BackoffRate"], retry["JitterStrategy"]) == (2, "FULL")
    assert retry["MaxDelaySeconds"] in (10, 30)
    delays, delay = [], retry["IntervalSeconds"]
    for _ in range(retry["MaxAttempts"]):
        delays.append(min(delay, retry["MaxDelaySeconds"]) / 2)  # full jitter: half of it on average
        delay *= retry["BackoffRate"]
    assert sum(delays) >= 15 * 60


@steps
def test_what_may_pass_is_tried_again(task):
    retried = {error for retry in task["Retry"] for error in retry["ErrorEquals"]}
    assert {"Lambda.Unknown", "Sandbox.Timedout", "ClusterUnreachableError", "ThrottledError"} <= retried


def test_a_group_whose_maxsize_is_put_back_is_waited_for_longer_than_a_caller_that_died():
    for graph in GRAPHS:
        if graph.name != "node-termination":  # which launches nothing then
            for task in graph.tasks.values():
                retries = [retry for retry in task["Retry"] if "GroupBusyError" in retry["ErrorEquals"]]
                assert [retry["MaxAttempts"] * retry["IntervalSeconds"] / 2 > 300 for retry in retries] == [True]


@steps
def test_a_short_403_is_waited_for_half_a_minute_and_no_longer(task):
    """An API server that has just started knows no roles for seconds."""
    (retry,) = [r for r in task["Retry"] if "AccessDeniedError" in r["ErrorEquals"]]
    delays = [retry["IntervalSeconds"] * retry["BackoffRate"] ** number for number in range(retry["MaxAttempts"])]
    assert delays[0] == 1
    assert 25 <= sum(min(delay, retry["MaxDelaySeconds"]) for delay in delays) <= 60


@steps
def test_a_function_whose_network_interfaces_come_back_is_waited_for(task):
    """Lambda makes a function in a VPC inactive after two idle weeks; calls fail until its interfaces are there."""
    (retry,) = [r for r in task["Retry"] if "Lambda.ResourceNotReadyException" in r["ErrorEquals"]]
    idle = {f"Lambda.{name}Exception" for name in ("ResourceNotReady", "ENINotReady", "ResourceConflict")}
    assert idle <= set(retry["ErrorEquals"])
    assert retry["MaxAttempts"] * retry["MaxDelaySeconds"] > 300


def test_a_table_that_throttles_is_tried_again():
    """The service integration names throttles that its model does not know after the service alone."""
    tasks = [t for g in GRAPHS for t in g.tasks.values() if "dynamodb" in t["Resource"]]
    assert tasks
    for task in tasks:
        (retry,) = task["Retry"]
        assert {"DynamoDb.ThrottlingException", "DynamoDb.DynamoDbException"} <= set(retry["ErrorEquals"])


@machines
def test_every_state_is_reached_and_every_target_exists(graph):
    assert graph.reached() == set(graph.states)


@machines
def test_expressions_are_paths_comparisons_and_allowed_functions(graph):
    assert graph.expressions
    for expression in own_expressions(graph):
        assert set(re.findall(r"\$(\w+)\(", expression)) <= ALLOWED_FUNCTIONS, expression
        assert "[" not in expression, expression


@machines
def test_every_path_of_an_expression_begins_with_a_variable(graph):
    """Step Functions refuses a definition with `a.b` in place of `$states.a.b`: there is no context item."""
    assert bare_names("($b.c; 'a' & $string($b ? phone.x : 1))") == ["phone"]
    assert [text for text in graph.expressions if bare_names(text)] == []


def bare_names(expression):
    """Names at the beginning of a path."""
    return list(names_of(jsonata.Jsonata(expression.strip()).ast))


def names_of(node):
    steps = getattr(node, "steps", None) or []
    if steps and steps[0].type == "name":
        yield steps[0].value
    parts = [getattr(node, key, None) for key in ("lhs", "rhs", "expression", "condition", "then", "_else", "body")]
    for child in (*parts, *(node.arguments or ()), *(node.expressions or ()), *steps[:1]):
        if hasattr(child, "steps"):
            yield from names_of(child)


def own_expressions(graph):
    """Those that are not shared and do not say what to enter."""
    shared = {text.removeprefix("{%").removesuffix("%}").replace("(${TimeoutSeconds})", "") for text in SHARED}
    timeout = re.compile(r"(?<=no answer in ' & )\([^()]+\)")
    return [text for text in graph.expressions if timeout.sub("", text) not in shared and "Enter {" not in text]


@machines
def test_every_state_says_what_it_is_for(graph):
    assert graph.definition["Comment"]
    assert [name for name, state in graph.states.items() if len(state.get("Comment", "")) < 20] == []


@machines
def test_a_choice_has_no_gap(graph):
    assert all("Default" in state for state in graph.of_type("Choice").values())
