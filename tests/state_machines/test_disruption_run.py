"""The definition of disruption beyond what every machine is: its words, its loops, its failures."""

from leeward.disruption.steps import LONGEST_PAUSE
from tests.state_machines.graph import Graph

GRAPH = Graph("disruption")


def test_every_loop_pauses():
    waits = GRAPH.of_type("Wait")
    assert GRAPH.loops(without=set(waits)) == []
    assert {state["Seconds"] for state in waits.values()} == {"{% $states.input.pause %}"}


def test_a_day_of_following_fits_into_the_history():
    """Nine events for each look; 25,000 are what an execution may have."""
    assert GRAPH.definition["TimeoutSeconds"] / LONGEST_PAUSE * 9 < 25_000


def test_a_failure_is_a_round_failure():
    assert {state["Error"] for state in GRAPH.of_type("Fail").values()} == {"DisruptionFailure", "InvalidInput"}
