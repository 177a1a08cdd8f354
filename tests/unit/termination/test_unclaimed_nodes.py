"""Nodes that return to service: the taint is removed only where no termination is open, also one claimed meanwhile."""

from datetime import timedelta

import pytest

from leeward.model.node import disruption_taint
from leeward.model.termination import Cause, CauseKind, Outcome
from leeward.termination.requests import untaint_unclaimed
from tests.fakes.builders import a_node, a_subject, an_instance
from tests.fakes.system import FakeSystem

INSTANCE, NAME = "i-0abc", "node-i-0abc"


@pytest.fixture
def system():
    found = FakeSystem(instances=[an_instance(INSTANCE)], nodes=[a_node(INSTANCE)])
    found.kubernetes.taint(found.kubernetes.by_name[NAME], disruption_taint(found.ports.deployment))
    return found


def claim(system):
    now = system.clock.now()
    cause = Cause(id="w1", kind=CauseKind.SPOT_INTERRUPTION, at=now, deadline=now + timedelta(minutes=2))
    system.claims.claim(a_subject(INSTANCE), cause, now)


def returned(system):
    return untaint_unclaimed(system.kubernetes.by_name[NAME], system.kubernetes, system.ports)


def test_a_node_without_a_termination_loses_taint_and_cordon(system):
    assert returned(system)
    node = system.kubernetes.by_name[NAME]
    assert (node.tainted, node.unschedulable) == (False, False)


def test_a_node_with_an_open_termination_is_not_written(system):
    claim(system)
    system.kubernetes.untaint = None  # not called
    assert not returned(system)
    assert system.kubernetes.by_name[NAME].tainted


@pytest.mark.parametrize("when", ["before the write", "after the write"])
def test_a_termination_claimed_between_the_read_and_the_write_finds_the_taint_put_back(system, when):
    write = system.kubernetes.untaint

    def slow(node, taint):
        if when == "before the write":
            claim(system)
        found = write(node, taint)
        if when == "after the write":
            claim(system)
        return found

    system.kubernetes.untaint = slow
    assert not returned(system)
    node = system.kubernetes.by_name[NAME]
    assert (node.tainted, node.unschedulable) == (True, True)


def test_a_closed_termination_does_not_hold_its_node(system):
    claim(system)
    record = system.claims.read(INSTANCE)
    system.claims.close(INSTANCE, version=record.version, outcome=Outcome.RETURNED_TO_SERVICE, now=system.clock.now())
    assert returned(system)
