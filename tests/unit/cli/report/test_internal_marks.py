"""Marks about Leeward's own steps: listed apart, because phases of nodes and the headline show their effects."""

from leeward.cli.report.building import build
from leeward.model.execution import ExecutionStatus, Machine
from tests.fakes.builders import GROUP
from tests.unit.cli.report.execution import a_step, a_story, an_execution, facts_of

RUNNING = an_execution(stopped=None)


def marked_internal(execution=None, steps=None):
    """Text up to its first colon -> whether the mark is internal."""
    marks = build(facts_of(execution, a_story() if steps is None else steps)).marks
    return {mark.text.partition(":")[0]: mark.internal for mark in marks}


def test_requests_and_a_successful_end_are_internal_and_blocks_and_replacements_are_not():
    found = marked_internal()
    assert found[f"asked {GROUP} to terminate it"]
    assert found["Terminated"]
    assert found["2 pods are terminating"]
    assert not found["replacement"]
    assert not any(internal for text, internal in found.items() if "does not leave" in text)


def test_a_try_that_succeeded_soon_is_internal_and_one_that_held_the_step_up_is_not():
    for lasted, internal in ((10, True), (40, False)):
        tried = a_step("Drain", 40, 41 + lasted, failures=[(41, "ThrottledError", "rate")], next="wait", why="waits")
        assert marked_internal(RUNNING, [*a_story()[:3], tried])["Drain"] is internal


def test_a_try_after_which_the_step_never_answered_is_a_fault():
    failed = a_step("Drain", 40, 41, failures=[(41, "AccessDeniedError", "forbidden")])
    assert marked_internal(RUNNING, [*a_story()[:3], failed])["Drain"] is False


def test_an_execution_that_failed_ends_with_a_fault():
    failed = an_execution(status=ExecutionStatus.FAILED, error="NodeTerminationFailure")
    assert marked_internal(failed)["the execution failed"] is False


def test_of_an_upgrade_the_lease_is_internal_and_a_hold_is_not():
    steps = [
        a_step("TakeLease", 0, 1, next="check", why="the lease is taken"),
        a_step("CordonOldNodes", 1, 2, next="cordoned", why="2 old nodes cordoned"),
        a_step("ChooseNodes", 2, 3, next="paused", why="paused by the operator"),
        a_step("TakeLease", 4, 5, next="failed", why="the table does not answer"),
    ]
    upgrade = an_execution(Machine.UPGRADE, f"{GROUP}-1")
    marks = {
        (mark.text.partition(":")[0], mark.kind.value): mark.internal for mark in build(facts_of(upgrade, steps)).marks
    }
    assert marks["TakeLease", "decision"]
    assert not marks["TakeLease", "fault"]
    assert not marks["CordonOldNodes", "decision"]
    assert not marks["ChooseNodes", "blocked"]
