"""Records on their way from step to step: which are passed on, and which the next step uses."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.termination import Cause, CauseKind
from leeward.termination.run import CARRIED_FOR, LARGEST_CARRIED, Next, Run, carrying, latest
from tests.fakes.builders import a_subject
from tests.fakes.clock import START
from tests.fakes.system import FakeSystem

I = "i-0abc"  # noqa: E741


@pytest.fixture
def system():
    system = FakeSystem()
    system.claims.claim(a_subject(I), Cause(id="e", kind=CauseKind.MANUAL, at=START), START)
    return system


def passed_on(system, *, record=None, later=timedelta(), attempt=None, **changes):
    """The number of reads of the step that follows."""
    record = record or system.claims.records[I]
    run = Run(instance=I, attempt=record.attempt, version=record.version, next=Next.DRAIN, read_at=system.clock.now())
    document = replace(carrying(run, record, system.ports.claims), **changes).to_json()
    if attempt is not None:
        document["attempt"] = attempt
    before = system.claims.asked["read"]
    system.clock.advance(seconds=later.total_seconds())
    run, shown = latest(Run.from_json(document), system.ports)
    assert shown.instance == I
    return system.claims.asked["read"] - before


@pytest.mark.parametrize(
    ("given", "reads"),
    [
        ({}, 0),
        ({"later": CARRIED_FOR}, 0),
        ({"later": CARRIED_FOR + timedelta(seconds=1)}, 1),  # as long as a step may act on its own read
        ({"pause": 1}, 1),  # a pause ends when a cause has joined
        ({"next": Next.WAIT}, 1),
        ({"attempt": 7}, 1),
    ],
)
def test_a_record_is_used_by_the_step_that_follows_at_once(system, given, reads):
    assert passed_on(system, **given) == reads


def test_a_record_that_a_state_machine_could_not_pass_on_is_read_again(system):
    long = replace(system.claims.records[I], failure="x" * LARGEST_CARRIED)
    assert passed_on(system, record=long) == 1
