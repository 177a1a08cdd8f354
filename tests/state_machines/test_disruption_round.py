"""The definition of disruption-round beyond what every machine is: its words, its loops, its failures."""

import re

from leeward.disruption.run import Next
from leeward.disruption.steps import LONGEST_PAUSE, STEPS
from tests.state_machines.graph import Graph

GRAPH = Graph("disruption-round")


def test_a_step_may_take_as_long_as_its_function():
    assert all(task["TimeoutSeconds"] > 300 for task in GRAPH.tasks.values())


def test_a_record_that_somebody_else_has_changed_is_read_again():
    for task in GRAPH.tasks.values():
        assert "RecordChangedError" in {error for retry in task["Retry"] for error in retry["ErrorEquals"]}


def test_the_states_take_every_step_and_no_other():
    assert {task["Arguments"]["Payload"]["step"] for task in GRAPH.tasks.values()} == set(STEPS)


def test_the_choices_compare_with_words_that_steps_say():
    said = set(re.findall(r"\.next = '([a-z-]+)'", GRAPH.text))
    assert said <= {word.value for word in Next}


def test_every_loop_pauses():
    waits = GRAPH.of_type("Wait")
    assert GRAPH.loops(without=set(waits)) == []
    assert {state["Seconds"] for state in waits.values()} == {"{% $states.input.pause %}"}


def test_a_day_of_following_fits_into_the_history():
    """Nine events for each look; 25,000 are what an execution may have."""
    assert GRAPH.definition["TimeoutSeconds"] / LONGEST_PAUSE * 9 < 25_000


def test_a_failure_is_a_round_failure():
    assert {state["Error"] for state in GRAPH.of_type("Fail").values()} == {"RoundFailure"}


def test_expressions_call_no_function():
    assert [expression for expression in GRAPH.expressions if re.search(r"\$(\w+)\(", expression)] == []
