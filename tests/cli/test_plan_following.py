"""`leeward plan --apply --watch`: the run is followed to its end, a line for each change."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.record import GONE, STAYED, DisruptionOutcome
from leeward.errors import AwsUnavailableError
from leeward.model.termination import Status, TerminationRecord
from tests.cli.test_plan_apply import APPLY, NOON
from tests.cli.test_plan_apply import at_noon as _at_noon
from tests.cli.test_plan_apply import system as _system
from tests.fakes.builders import a_subject

system, at_noon = _system, _at_noon  # the fixtures


def steps(system, *changes):
    """The run's record changes at each look, in this order."""
    left = list(changes)

    def sleep(_):
        record = system.disruptions.records["blue"]
        change = left.pop(0)
        system.disruptions.write(change(record) if callable(change) else replace(record, **change))

    system.clock.sleep = sleep


def ended(outcome, **more):
    return lambda record: replace(record, **more).closed(outcome, "consolidation: 1 nodes gone", NOON)


def test_a_run_is_followed_to_its_end_a_line_for_each_change(leeward, system):
    def draining(record, **more):
        (instance,) = record.nodes.values()
        system.claims.records[instance] = TerminationRecord(
            subject=a_subject(instance), status=Status.OPEN, attempt=1, version=1, causes=(), pods_evicted=1, **more
        )
        return replace(record, why=record.why + ".")

    def blocked(record):
        return draining(record, times={"draining": NOON}, blocked_by=("pdb shop/web",))

    def terminated(record):
        return replace(draining(record), ends=dict.fromkeys(record.nodes.values(), GONE))

    steps(
        system,
        {"execution": "blue-1-1", "attempt": 1},
        {"requested": True},
        blocked,
        terminated,
        ended(DisruptionOutcome.DONE),
    )
    result = leeward(*APPLY, "--yes", "--watch")
    (node,) = system.disruptions.records["blue"].nodes
    lines = [line.partition(" ")[2] for line in result.err.splitlines()]
    assert result.code == 0
    assert lines == [
        f"run 1: starting: consolidation: delete {node}",
        f"run 1: validating: consolidation: delete {node}",
        "run 1: terminating: 0 of 1 node gone",
        f"{node}: waiting to begin",
        f"{node}: draining, 1 pod evicted, waits for pdb shop/web",
        "run 1: terminating: 1 of 1 node gone",
        f"{node}: gone, 1 pod evicted",
        "run 1: done: consolidation: 1 nodes gone",
    ]


@pytest.mark.parametrize("more", [{"ends": {"i-n1": STAYED, "i-n2": STAYED}}, {"dropped": {"0": "pods changed"}}])
def test_a_run_that_did_not_do_everything_ends_the_following_with_exit_1(leeward, system, more):
    steps(system, ended(DisruptionOutcome.DONE, **more))
    assert leeward(*APPLY, "--yes", "--watch").code == 1


def test_a_failed_step_is_shown_and_the_run_followed_on(leeward, system):
    failed = {"retry": NOON + timedelta(minutes=1), "why": "AccessDenied: ec2:CreateFleet"}
    steps(system, failed, ended(DisruptionOutcome.GIVEN_UP))
    result = leeward(*APPLY, "--yes", "--wait")
    assert result.code == 1
    assert "a step failed: AccessDenied: ec2:CreateFleet; tried again at 2026-05-01T12:01:00Z" in result.err
    assert "given-up: " in result.err


def test_a_table_that_does_not_answer_for_a_moment_is_asked_again(leeward, system):
    steps(system, ended(DisruptionOutcome.DONE))
    sleep = system.clock.sleep

    def fails_once(seconds):
        sleep(seconds)
        system.disruptions.fail("read", AwsUnavailableError("dynamodb:GetItem: 503"), times=1)
        system.clock.sleep = lambda _: None

    system.clock.sleep = fails_once
    result = leeward(*APPLY, "--yes", "--watch")
    assert (result.code, "run 1: not known now: dynamodb:GetItem: 503" in result.err) == (0, True)


def test_a_ctrl_c_leaves_the_run_under_way_and_says_so(leeward, system):
    def ctrl_c(_):
        raise KeyboardInterrupt

    system.clock.sleep = ctrl_c
    result = leeward(*APPLY, "--yes", "--watch")
    assert result.code == 130
    assert "not followed any more, and still under way: run 1" in result.err
    assert system.disruption_executions.open == {"blue-1-1"}
