"""A termination record of a run that cannot be read: the other nodes go on, and nothing is lost."""

import pytest

from leeward.disruption.command import Command, CommandDecision
from leeward.disruption.completion import roll_back
from leeward.disruption.record import GONE
from leeward.disruption.run import DisruptionNext, DisruptionRun
from leeward.disruption.steps import STEPS
from leeward.errors import NewerRecordError, UnexpectedError
from tests.fakes.builders import CLUSTER, GROUP
from tests.unit.disruption.test_rollback import (
    FIRST,
    NEW,
    OLD,
    OTHER,
    SECOND,
    a_record,
    asked,
    ended,
    offsets,
    system,
)
from tests.unit.upgrade.test_unreadable_records import unreadable

__all__ = ["system"]
RUN = DisruptionRun(cluster=CLUSTER, number=3, execution="blue-3-1", next=DisruptionNext.FOLLOW)


def following(system):
    """Two nodes are deleted."""
    nodes = {f"node-{name}": name for name in (OLD, OTHER)}
    command = Command(decision=CommandDecision.DELETE, nodes=tuple(nodes), reason="expired")
    members = dict.fromkeys(nodes, GROUP)
    a_record(
        system, commands=(command,), nodes=nodes, members=members, launched={}, dropped={}, requested=True, orders={}
    )


def step(system, name="follow"):
    return STEPS[name](RUN, {"step": name}, system.ports)


def ends(system):
    return system.disruptions.records[CLUSTER].ends


@pytest.mark.parametrize("error", [NewerRecordError, UnexpectedError])
def test_the_other_termination_is_claimed_and_the_unreadable_one_is_named(system, error):
    following(system)
    unreadable(system, OLD, error=error)
    run = step(system)
    assert (run.next, asked(system)) == (DisruptionNext.FOLLOW, [OTHER])
    assert f"the record of {OLD} cannot be read: termination#{OLD}" in run.why
    assert ends(system) == {}


def test_a_malformed_one_whose_instance_has_ended_is_gone_and_a_newer_one_is_waited_for(system):
    following(system)
    ended(system, OLD)
    unreadable(system, OLD)
    step(system)
    assert ends(system) == {}
    unreadable(system, OLD, error=UnexpectedError)
    step(system)
    assert ends(system) == {OLD: GONE}


def test_a_member_whose_record_cannot_be_read_offsets_no_launch(system):
    """The new node has ended: a member has to offset it, and this one may be ending."""
    ended(system, NEW)
    unreadable(system, SECOND, OTHER)
    assert offsets(roll_back(a_record(system), system.ports)) in ([NEW], [OLD])


def test_an_offset_that_cannot_be_requested_stops_no_other(system):
    a_record(system, launched={NEW: FIRST, SECOND: FIRST})
    unreadable(system, NEW)
    with pytest.raises(NewerRecordError):
        roll_back(system.disruptions.records[CLUSTER], system.ports)
    assert asked(system) == [SECOND]
    ended(system, NEW)
    roll_back(system.disruptions.records[CLUSTER], system.ports)
