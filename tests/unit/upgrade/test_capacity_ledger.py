"""The upgrade's side of the ledger: what is offset, returned, written off, and who has changed the size (U15, U16)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.capacity import NoOffset
from leeward.model.group import ScalingActivity
from leeward.model.instance import CapacityType
from leeward.model.termination import (
    Cause,
    CauseKind,
    Outcome,
    Status,
    Subject,
    TerminationRecord,
)
from leeward.termination.capacity_ledger import surplus
from leeward.upgrade.capacity_ledger import conclude, detect_resize, settle_held, with_late_offsets
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import LaunchOrder, OpenLaunch, UpgradeRecord, cause_id, launch_token, surge_of
from leeward.upgrade.surge.sizes import Strategy
from leeward.workflow.executions import execution_name
from tests.fakes.ledger import by

NOON = datetime(2026, 5, 6, 12, 0, tzinfo=UTC)
OLD, NEW, TAG = "i-01d", "i-0e3", "20260506T120000.1"
RECORD = UpgradeRecord(
    group="web",
    target=UpgradeTarget(),
    strategy=Strategy.DEFAULT,
    desired=3,
    maximum=6,
    began=NOON,
    launched=1,
    started=1,
    ahead={NEW: OpenLaunch(zone="a", offset_by=OLD)},
    under_way={OLD: TAG},
)
OWN = Cause(id=cause_id(RECORD, OLD), kind=CauseKind.UPGRADE, at=NOON)
SURGE = surge_of(RECORD, NEW, OLD)


def a_termination(*causes, status=Status.OPEN, outcome=None, offsets=None, **more):
    subject = Subject(
        instance=OLD,
        cluster="blue",
        group="web",
        zone="a",
        subnet="subnet-a",
        instance_type="m5.large",
        capacity_type=CapacityType.ON_DEMAND,
    )
    known = causes or (OWN, surplus(SURGE, NOON))
    return TerminationRecord(
        subject=subject,
        status=status,
        attempt=1,
        version=1,
        causes=known,
        outcome=outcome,
        offsets=offsets or {},
        **more,
    )


def concluded(termination, record=RECORD):
    return conclude(record, {OLD: termination} if termination else {})


def test_an_unclaimed_termination_is_requested_again():
    assert concluded(None).unclaimed == (OLD,)
    assert concluded(a_termination(OWN)).unclaimed == (OLD,), "the request of the offset has not joined"
    assert concluded(a_termination()).unclaimed == ()


def test_a_decrement_pays_before_the_instance_is_gone():
    found = concluded(a_termination(offsets={SURGE: by(OLD)})).record
    assert (found.ahead, found.gone, found.under_way) == ({}, 1, {OLD: TAG})


def after(minutes, cause=None):
    """The ledger of an instance that its hook holds, so long after the request to the group; `cause`: in the group's
    history.
    """
    history = [ScalingActivity(at=NOON, cause=cause, leaves=OLD)] if cause else []
    termination = a_termination(times={"terminating": NOON})
    return settle_held(RECORD, {OLD: termination}, history, NOON + timedelta(minutes=minutes))


def test_an_instance_that_its_hook_holds_has_offset_when_the_group_reports_that_it_shrinks():
    found = after(
        1, "At noon an instance was taken out in response to a user request, shrinking the capacity from 4 to 3."
    )
    assert (found.ahead, found.gone, found.under_way) == ({}, 1, {OLD: TAG})


def test_one_whom_its_hook_holds_and_the_group_replaces_does_not_pay():
    assert after(1, "At noon an instance was taken out of service in response to a user request.").unassigned == (NEW,)


def test_the_word_of_the_group_is_waited_for_and_not_for_ever():
    assert after(15) == RECORD
    assert after(16).unassigned == (NEW,)


def test_one_that_is_gone_is_finished():
    found = concluded(a_termination(status=Status.CLOSED, outcome=Outcome.TERMINATED, offsets={SURGE: by(OLD)})).record
    assert (found.under_way, found.finished, found.gone, found.ahead) == ({}, 1, 1, {})


@pytest.mark.parametrize("offsets", [{SURGE: NoOffset.RETURNED}, {}])
def test_a_launch_that_the_end_did_not_offset_waits_for_another_old_node(offsets):
    found = concluded(a_termination(status=Status.CLOSED, outcome=Outcome.TERMINATED, offsets=offsets)).record
    assert (found.unassigned, found.gone, found.finished) == ((NEW,), 0, 1)


def test_a_launch_that_is_written_off_is_removed_and_reported():
    written_off = {SURGE: NoOffset.WRITTEN_OFF}
    found = concluded(a_termination(status=Status.CLOSED, outcome=Outcome.TERMINATED, offsets=written_off)).record
    assert (found.ahead, found.gone) == ({}, 0)
    assert "was written off" in found.warnings[0]


def test_one_that_was_returned_to_service_has_failed_with_its_reason():
    given = a_termination(
        status=Status.CLOSED,
        outcome=Outcome.RETURNED_TO_SERVICE,
        offsets={SURGE: NoOffset.RETURNED},
        blocked_by=("shop/web: pdb shop/web",),
    )
    found = concluded(given)
    assert found.record.failed == (OLD,)
    assert (found.record.under_way, found.record.unassigned) == ({}, (NEW,))
    assert found.failures == {OLD: "shop/web: pdb shop/web"}


def test_a_cooldown_that_began_before_the_request_shows_nothing_of_its_drain():
    resting = a_termination(OWN, times={"retry": NOON + timedelta(minutes=7)})
    assert concluded(resting, replace(RECORD, ahead={})).record.under_way == {OLD: TAG}


def test_without_an_offset_one_that_waits_for_its_maintenance_is_no_longer_waited_for_either():
    waiting = a_termination(OWN, times={"retry": NOON + timedelta(minutes=25)}, blocked_by=("default/web-1: pdb web",))
    found = concluded(waiting, replace(RECORD, ahead={})).record
    assert (found.under_way, found.failed) == ({}, (OLD,))
    assert found.reasons == {OLD: "default/web-1: pdb web"}


def test_one_that_waits_for_its_maintenance_is_no_longer_waited_for():
    waiting = a_termination(offsets={SURGE: NoOffset.RETURNED}, times={"retry": NOON + timedelta(hours=1)})
    assert (concluded(waiting).record.under_way, concluded(waiting).record.failed) == ({}, (OLD,))


def test_concluding_again_changes_nothing():
    ended = a_termination(status=Status.CLOSED, outcome=Outcome.TERMINATED, offsets={SURGE: by(OLD)})
    once = concluded(ended).record
    assert concluded(ended, once).record == once


def sizes(desired, *, others=0, shrunk=False, record=RECORD, now=NOON):
    return detect_resize(record, desired=desired, of_others=others, shrunk=shrunk, now=now)


def test_what_was_launched_ahead_explains_a_larger_size():
    assert sizes(4) == RECORD
    assert sizes(5, others=1) == RECORD


def test_a_larger_size_is_believed_at_second_sight():
    first = sizes(5)
    assert (first.others_seen, first.others_scaled) == (NOON, None)
    assert sizes(5, record=first, now=NOON + timedelta(seconds=30)).others_scaled is None
    assert sizes(4, record=first).others_seen is None
    second = sizes(5, record=first, now=NOON + timedelta(seconds=61))
    assert second.others_scaled is not None
    assert "desired is 5, 4 are explained" in second.warnings[0]


def test_a_termination_without_an_offset_request_has_none_to_settle():
    free = replace(RECORD, ahead={**RECORD.ahead, "i-0e4": OpenLaunch(zone="a")})
    assert sizes(4, shrunk=True, record=free).ahead == RECORD.ahead


def test_nothing_is_judged_while_a_launch_may_not_be_written_down():
    assert (
        sizes(
            9, shrunk=True, record=replace(RECORD, orders={"1": LaunchOrder(zone="a", subnet="subnet-a")})
        ).others_scaled
        is None
    )


@pytest.mark.parametrize("group", ["web", "a" * 255, "team/web nodes", "ümläut"])
def test_names_of_executions_fit_step_functions_and_differ_by_group(group):
    name = execution_name(group, 12)
    assert len(name) <= 80
    assert name.isascii()
    assert name.replace("-", "").replace("_", "").isalnum()
    assert name != execution_name(group + "x", 12)


def test_a_launch_token_fits_and_is_the_same_for_the_same_order():
    assert launch_token(RECORD, "7") == launch_token(replace(RECORD, version=9), "7")
    assert launch_token(RECORD, "7") != launch_token(RECORD, "8")
    assert len(launch_token(RECORD, "1000")) <= 64


def test_a_launch_is_assigned_first_to_the_early_node_that_has_drained():
    early = {"i-o1": "t1", "i-o2": "t2"}
    record = replace(RECORD, under_way=early, early=tuple(early), ahead={NEW: OpenLaunch(zone="a")})
    ends = {"i-o1": a_termination(), "i-o2": a_termination(times={"drained": NOON})}
    after, late = with_late_offsets(record, ends)
    assert (late, after.early, after.assigned) == (["i-o2"], ("i-o1",), {NEW: "i-o2"})
    assert with_late_offsets(after, ends) == (after, [])


def test_an_early_node_that_its_group_has_replaced_waits_for_no_launch():
    cause = Cause(id=cause_id(RECORD, OLD), kind=CauseKind.UPGRADE, at=NOON, awaits_launch=True)
    record = replace(RECORD, ahead={}, early=(OLD,))
    ended = a_termination(cause, status=Status.CLOSED, outcome=Outcome.TERMINATED)
    after = conclude(record, {OLD: ended}).record
    assert (after.early, dict(after.under_way), after.finished) == ((), {}, 1)
