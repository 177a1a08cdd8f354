"""The wait for EC2's reboot where more than one date, or more than one event, is known."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.instance_status import ScheduledEvent
from leeward.model.termination import Cause, CauseKind, Reboot, RebootBy, Status, TerminationRecord
from leeward.termination.reboot import Ec2RebootWait, after_ec2_reboot
from leeward.termination.run import Next, Run
from tests.fakes.builders import a_node, a_subject
from tests.fakes.clock import START

I = "i-0abc"  # noqa: E741
MINUTE = timedelta(minutes=1)
FIRST, SECOND = START + 20 * MINUTE, START + 90 * MINUTE
RUN = Run(instance=I, attempt=1, version=1, next=Next.REBOOT)


def waiting(*dates, missing="", events=(), **node):
    causes = tuple(
        Cause(id=f"c-{n}", kind=CauseKind.SCHEDULED_CHANGE, at=START, deadline=at, reboot=Reboot(by=RebootBy.EC2))
        for n, at in enumerate(dates)
    )
    record = TerminationRecord(subject=a_subject(I), status=Status.OPEN, attempt=1, version=1, causes=causes)
    return Ec2RebootWait(
        record=record, node=replace(a_node(I), boot="b-2", **node), before="b-1", missing=missing, events=events
    )


def listed(starts, prefix=""):
    return ScheduledEvent(id="e", instance=I, code="system-reboot", starts=starts, description=prefix)


@pytest.mark.parametrize("dates", [(FIRST, SECOND), (SECOND, FIRST)], ids=["moved later", "the other order"])
def test_a_reboot_that_is_moved_is_waited_for_until_its_last_date(dates):
    """The node has another boot id already, from a reboot of its own: EC2's is still to come."""
    wait = waiting(*dates, events=(listed(SECOND),))
    assert after_ec2_reboot(RUN, wait, FIRST + 16 * MINUTE).next is Next.WAIT
    assert after_ec2_reboot(RUN, wait, SECOND + 16 * MINUTE).next is Next.REBOOTED


def test_a_node_that_is_down_before_its_last_date_is_not_replaced():
    down = {"ready": False, "not_ready_since": FIRST, "missing": "it is NotReady"}
    wait = waiting(FIRST, SECOND, events=(listed(SECOND),), **down)
    assert after_ec2_reboot(RUN, wait, FIRST + 30 * MINUTE).next is Next.WAIT
    assert after_ec2_reboot(RUN, wait, SECOND + 16 * MINUTE).next is Next.REPLACE


def test_of_two_events_the_one_still_to_come_is_waited_for():
    events = (listed(FIRST, "[Completed] "), listed(SECOND))
    assert after_ec2_reboot(RUN, waiting(FIRST, SECOND, events=events), FIRST + MINUTE).next is Next.WAIT
    over = (listed(FIRST, "[Completed] "), listed(SECOND, "[Completed] "))
    assert after_ec2_reboot(RUN, waiting(FIRST, SECOND, events=over), FIRST + MINUTE).next is Next.REBOOTED
