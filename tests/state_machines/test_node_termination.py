"""The definition of node-termination beyond what every machine is: its pauses and its deadlines."""

import pytest

from tests.state_machines.graph import Graph

GRAPH = Graph("node-termination")


@pytest.mark.parametrize("name", sorted(GRAPH.pauses))
def test_a_pause_catches_only_its_own_end_and_a_cause_that_joined(name):
    """A step's own failure is never caught by the pause: the token is handed over by the table alone."""
    task = GRAPH.tasks[name]
    own, rest = task["Catch"]
    assert own["ErrorEquals"] == ["States.Timeout", "DynamoDb.ConditionalCheckFailedException"]
    assert rest["Next"] == "NoteFailure"
    assert task["Arguments"]["ConditionExpression"] == "#version = :version"


def test_every_loop_passes_a_state_with_a_deadline():
    """Without the choices that compare with `until`, no state leads back to itself."""
    compared = "> $states.input.until"
    guards = {n for n, s in GRAPH.states.items() if any(compared in c["Condition"] for c in s.get("Choices", ()))}
    assert guards
    assert GRAPH.loops(without=guards) == []
    assert GRAPH.definition["TimeoutSeconds"] > 0
