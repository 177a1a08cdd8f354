"""Pause, windows, canary, abort and rollback (X3, X9)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.errors import InvalidInputError
from leeward.policy.document import Canary, ClusterSettings, OnAlarm, UpdatePolicy, Window
from leeward.upgrade.control import Hold, Move, is_open, opens, permission, with_control
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from tests.unit.upgrade.builders import NEW, NOON, OLD, template

NIGHT = Window(schedule="0 22 * * *", duration=timedelta(hours=6))
BERLIN = Window(schedule="0 22 * * *", duration=timedelta(hours=6), time_zone="Europe/Berlin")
MAY = Window(schedule="0 0 1 5 *", duration=timedelta(days=31))
RECORD = UpgradeRecord(
    group="web",
    target=UpgradeTarget(template=template(NEW)),
    previous=UpgradeTarget(template=template(OLD)),
    strategy=Strategy.DEFAULT,
    desired=3,
    maximum=6,
    began=NOON,
)
CANARY = UpdatePolicy(canary=Canary(nodes=2, bake=timedelta(minutes=10)))
GUARDED = UpdatePolicy(alarms=("web-5xx",), on_alarm=OnAlarm.ROLLBACK)
RINGS = "alarm web-5xx is in ALARM since 2024-05-06T12:00:00Z"


def may(record=RECORD, update=None, settings=None, now=NOON, finished=0, paused=""):
    cluster = settings or ClusterSettings(name="blue")
    return permission(record, update or UpdatePolicy(), cluster, now, finished=finished, paused=paused)


def test_nothing_holds_an_upgrade_without_control_requests_windows_and_canary():
    assert may().move is Move.GO
    assert may().at_most is None


def test_a_pause_starts_nothing_new_until_it_is_resumed():
    found = may(replace(RECORD, control=ControlRequest.PAUSE))
    assert (found.move, found.hold, found.until) == (Move.HOLD, Hold.PAUSED, None)
    assert may(with_control(with_control(RECORD, ControlRequest.PAUSE), ControlRequest.RUN)).move is Move.GO


def test_a_paused_cluster_holds_every_upgrade():
    found = may(paused="cluster blue is paused: game day")
    assert (found.hold, found.why) == (Hold.PAUSED, "cluster blue is paused: game day")


def test_outside_its_windows_it_holds_and_says_when_they_open():
    found = may(update=UpdatePolicy(windows=(NIGHT,)))
    assert (found.hold, found.until) == (Hold.WINDOW, datetime(2024, 5, 6, 22, tzinfo=UTC))
    assert may(update=UpdatePolicy(windows=(NIGHT,)), now=datetime(2024, 5, 6, 23, tzinfo=UTC)).move is Move.GO


def test_a_freeze_wins_over_an_open_window():
    found = may(update=UpdatePolicy(windows=(NIGHT,)), settings=ClusterSettings(name="blue", freeze=(MAY,)))
    assert found.until == datetime(2024, 6, 1, 0, tzinfo=UTC)  # inside the night that began on May 31st


def test_windows_and_freezes_hold_neither_an_abort_nor_a_rollback():
    frozen = ClusterSettings(name="blue", freeze=(MAY,))
    abort, back = (replace(RECORD, control=one) for one in (ControlRequest.ABORT, ControlRequest.ROLLBACK))
    assert may(abort, settings=frozen, paused="cluster blue is paused").move is Move.UNDO
    assert may(back, settings=frozen, paused="cluster blue is paused").move is Move.ROLL_BACK


def test_windows_follow_their_own_time_zone():
    assert opens((BERLIN,), (), NOON) == datetime(2024, 5, 6, 20, tzinfo=UTC)
    assert opens((NIGHT, BERLIN), (), NOON) == datetime(2024, 5, 6, 20, tzinfo=UTC)


def test_an_open_moment_opens_now_and_one_that_never_comes_is_none():
    assert opens((), (), NOON) == NOON
    assert opens((Window(schedule="0 0 29 2 *", duration=timedelta(hours=1)),), (), NOON) is None
    assert opens((), (Window(schedule="* * * * *", duration=timedelta(hours=1)),), NOON) is None


@pytest.mark.parametrize("hours", range(0, 48, 5))
def test_the_moment_at_which_it_opens_is_open_and_no_minute_before_it(hours):
    now, windows, freeze = (
        NOON + timedelta(hours=hours),
        (NIGHT,),
        (Window(schedule="0 23 * * *", duration=timedelta(hours=2)),),
    )
    moment = opens(windows, freeze, now)
    assert is_open(windows, freeze, moment)
    between = int((moment - now).total_seconds() // 60)
    assert not any(is_open(windows, freeze, now + timedelta(minutes=minute)) for minute in range(between))


def test_a_canary_starts_its_nodes_and_no_more():
    assert may(update=CANARY).at_most == 2
    assert may(replace(RECORD, started=1), CANARY).at_most == 1
    assert may(replace(RECORD, started=2), CANARY, finished=1).hold is Hold.CANARY


def test_a_node_that_was_taken_back_before_its_request_is_none_of_the_canary():
    assert may(replace(RECORD, started=2, taken_back=1), CANARY).at_most == 1


def test_a_canary_is_watched_for_its_bake_and_then_the_rest_drains():
    done = replace(RECORD, started=2, canary_done=NOON)
    assert may(done, CANARY, now=NOON + timedelta(minutes=9)).until == NOON + timedelta(minutes=10)
    assert may(done, CANARY, now=NOON + timedelta(minutes=10)) == may()


def test_an_alarm_holds_at_any_moment_and_for_five_minutes_after_it_was_last_seen():
    rings = replace(RECORD, started=2, alarm=RINGS, rang=NOON)
    found = may(rings, CANARY)
    assert (found.move, found.hold, found.why, found.until) == (Move.HOLD, Hold.ALARM, RINGS, None)
    quiet = replace(rings, alarm="")
    held = may(quiet, now=NOON + timedelta(minutes=4, seconds=59))
    assert (held.hold, held.until) == (Hold.ALARM, NOON + timedelta(minutes=5))
    assert may(quiet, now=NOON + timedelta(minutes=5)).move is Move.GO


def test_the_canary_goes_on_where_it_was_once_its_alarm_is_quiet():
    done = replace(RECORD, started=2, canary_done=NOON, rang=NOON)
    assert may(done, CANARY, now=NOON + timedelta(minutes=6)).hold is Hold.CANARY


def test_alarms_that_cannot_be_read_or_do_not_exist_hold_and_roll_nothing_back():
    unread = replace(RECORD, started=2, alarm="its alarms cannot be read (AccessDenied): it holds until they can")
    assert may(unread, GUARDED).hold is Hold.ALARM
    assert may(replace(unread, alarm=""), GUARDED).move is Move.GO


def test_an_alarm_rolls_back_where_the_policy_says_so_and_a_node_of_the_upgrade_was_started():
    rings = replace(RECORD, started=1, alarm=RINGS, rang=NOON)
    assert may(rings, GUARDED).move is Move.ROLL_BACK
    assert may(replace(rings, started=0), GUARDED).hold is Hold.ALARM
    assert may(replace(rings, previous=None), GUARDED).hold is Hold.ALARM
    assert may(replace(rings, rolling_back=True), GUARDED).move is Move.GO


def test_an_alarm_comes_before_a_closed_window_and_after_the_operators_requests():
    rings = replace(RECORD, started=1, alarm=RINGS, rang=NOON)
    assert may(rings, UpdatePolicy(windows=(NIGHT,))).hold is Hold.ALARM
    assert may(replace(rings, control=ControlRequest.ABORT)).move is Move.UNDO
    assert may(replace(rings, control=ControlRequest.PAUSE)).hold is Hold.PAUSED


def test_a_repeated_control_request_is_the_same():
    paused = with_control(RECORD, ControlRequest.PAUSE)
    assert with_control(paused, ControlRequest.PAUSE) is paused


def test_control_requests_that_do_not_apply_are_refused_with_the_state():
    with pytest.raises(InvalidInputError, match="found no earlier template version"):
        with_control(replace(RECORD, previous=None), ControlRequest.ROLLBACK)
    with pytest.raises(InvalidInputError, match="found it ended at 2024-05-06T12:00:00Z"):
        with_control(replace(RECORD, ended=NOON), ControlRequest.PAUSE)
    with pytest.raises(InvalidInputError, match="found abort under way"):
        with_control(replace(RECORD, control=ControlRequest.ABORT), ControlRequest.RUN)
    assert with_control(replace(RECORD, ended=NOON), ControlRequest.ROLLBACK).control is ControlRequest.ROLLBACK
