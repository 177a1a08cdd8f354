"""The definitions of upgrades beyond what every machine is: their words, their loops, their failures."""

import pytest

from tests.state_machines.graph import Graph

SELF_MANAGED, MANAGED = Graph("node-group-upgrade"), Graph("managed-node-group-upgrade")
machines = pytest.mark.parametrize("graph", [SELF_MANAGED, MANAGED], ids=lambda graph: graph.name)


@machines
def test_every_loop_pauses_and_ends_before_the_history_is_full(graph):
    """Without the choices that look at `full`, no state leads back to itself, but for a rollback, which turns once."""
    looks = {name for name, s in graph.states.items() if any("full" in c["Condition"] for c in s.get("Choices", ()))}
    assert graph.loops(without=looks) == []
    waits = graph.of_type("Wait").values()
    assert {state["Seconds"] for state in waits} == {"{% $states.input.pause %}"}


@machines
def test_every_failure_has_a_state_of_its_own_name(graph):
    failures = graph.of_type("Fail")
    assert {name for name, state in failures.items() if state["Error"] != name} == {"LeaseNotAcquired"}
    assert {"PreflightBlocked", "NodeCreationFailure", "PodEvictionFailure"} <= set(failures)


def test_each_machine_fails_for_reasons_of_its_own_kind_of_group_alone():
    own = set(SELF_MANAGED.of_type("Fail")) ^ set(MANAGED.of_type("Fail"))
    assert own == {"NodegroupUpdateFailure"}
