"""The definition of node-group-upgrade beyond what every machine is: its words, its loops, its failures."""

import re

from tests.state_machines.graph import Graph

GRAPH = Graph("node-group-upgrade")


def test_every_loop_pauses_and_ends_before_the_history_is_full():
    """Without the choices that look at `full`, no state leads back to itself, but for a rollback, which turns once."""
    looks = {name for name, s in GRAPH.states.items() if any("full" in c["Condition"] for c in s.get("Choices", ()))}
    assert GRAPH.loops(without=looks) == []
    waits = GRAPH.of_type("Wait").values()
    assert {state["Seconds"] for state in waits} == {"{% $states.input.pause %}"}


def test_every_failure_has_a_state_of_its_own_name():
    failures = GRAPH.of_type("Fail")
    assert {name for name, state in failures.items() if state["Error"] != name} == {"LeaseNotAcquired"}
    assert {"PreflightBlocked", "NodeCreationFailure", "PodEvictionFailure", "CanaryFailure"} <= set(failures)


def test_expressions_call_no_function():
    assert [expression for expression in GRAPH.expressions if re.search(r"\$(\w+)\(", expression)] == []
