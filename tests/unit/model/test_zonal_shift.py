"""ARC's answer about a managed resource, and how shifts are kept from one answer to the next."""

from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.zonal_shift import NOT_SHIFTED, ShiftKind, ShiftSource, ZonalShift, ZonalShifts, applied_shifts

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
SINCE = NOW - timedelta(minutes=3)
EXPIRES = NOW + timedelta(hours=1)


def a_zonal_shift(kind="ZONAL_SHIFT", zone_id="use1-az1", status="APPLIED"):
    return {
        "appliedStatus": status,
        "zonalShiftId": "c8fa2de1",
        "resourceIdentifier": "arn:aws:eks:us-east-1:111122223333:cluster/blue",
        "awayFrom": zone_id,
        "startTime": SINCE,
        "expiryTime": EXPIRES,
        "comment": "",
        "shiftType": kind,
    }


def an_answer(*shifts, autoshifts=(), weights=None):
    return {"zonalShifts": list(shifts), "autoshifts": list(autoshifts), "appliedWeights": weights or {}}


def a_shift(zone_id="use1-az1", **more):
    return ZonalShift(**{"zone_id": zone_id, "kind": ShiftKind.MANUAL, "since": SINCE, **more})


def test_each_type_of_shift_has_its_kind():
    kinds = {"ZONAL_SHIFT": "manual shift", "PRACTICE_RUN": "practice run"}
    for word, kind in kinds.items():
        (shift,) = applied_shifts(an_answer(a_zonal_shift(word)), NOW)
        assert (shift.kind.value, shift.zone_id, shift.since, shift.until) == (kind, "use1-az1", SINCE, EXPIRES)


def test_the_shift_of_an_experiment_outlives_its_expiry_while_arc_does_not_answer():
    """AWS FIS renews the shift minute by minute."""
    (shift,) = applied_shifts(an_answer(a_zonal_shift("FIS_EXPERIMENT")), NOW)
    assert (shift.kind.value, shift.zone_id, shift.since) == ("FIS experiment", "use1-az1", SINCE)
    known = NOT_SHIFTED.polled([shift], NOW, ShiftSource.POLL)
    assert known.not_polled("ARC is down", EXPIRES + timedelta(seconds=1)).shifts == known.shifts


def test_an_autoshift_has_no_expiry():
    autoshift = {"appliedStatus": "APPLIED", "awayFrom": "use1-az2", "startTime": SINCE}
    (shift,) = applied_shifts(an_answer(autoshifts=[autoshift]), NOW)
    assert (shift.kind, shift.zone_id, shift.until) == (ShiftKind.AUTOSHIFT, "use1-az2", None)


def test_a_shift_that_gives_way_to_another_is_not_in_effect():
    manual, practice = a_zonal_shift(), a_zonal_shift("PRACTICE_RUN", "use1-az2", "NOT_APPLIED")
    assert [shift.zone_id for shift in applied_shifts(an_answer(manual, practice), NOW)] == ["use1-az1"]


@pytest.mark.parametrize("status", ["NOT_APPLIED", "COMPLETED", None])
def test_an_autoshift_that_is_not_applied_closes_no_zone(status):
    """A practice run or a manual shift away from another zone comes first."""
    other = {"appliedStatus": status, "awayFrom": "use1-az2", "startTime": SINCE}
    assert applied_shifts(an_answer(autoshifts=[other]), NOW) == ()
    answer = an_answer(a_zonal_shift(), autoshifts=[other])
    assert [shift.zone_id for shift in applied_shifts(answer, NOW)] == ["use1-az1"]


def test_a_zone_without_weight_is_shifted_although_no_shift_explains_it():
    weights = {"use1-az1": 1.0, "use1-az2": 0.0}
    (shift,) = applied_shifts(an_answer(weights=weights), NOW)
    assert (shift.zone_id, shift.kind, shift.since) == ("use1-az2", ShiftKind.UNKNOWN, NOW)


def test_nothing_in_effect_is_no_shift():
    assert applied_shifts(an_answer(weights={"use1-az1": 1.0}), NOW) == ()


def test_a_shift_of_unknown_kind_keeps_its_begin_from_poll_to_poll():
    """The answer has no time: the second poll would otherwise end a shift and begin another each minute."""
    first = NOT_SHIFTED.polled(applied_shifts(an_answer(weights={"use1-az2": 0.0}), NOW), NOW, ShiftSource.POLL)
    later = NOW + timedelta(minutes=1)
    again = applied_shifts(an_answer(weights={"use1-az2": 0.0}), later)
    second = first.polled(again, later, ShiftSource.POLL)
    assert (second.shifts, second.ended) == (first.shifts, ())


def test_a_shift_is_known_by_the_name_of_its_zone():
    shifts = ZonalShifts(shifts=(a_shift(),)).named({"use1-az1": "us-east-1c"})
    assert shifts.zones == {"us-east-1c"}
    assert shifts.reason("us-east-1c") == "zonal shift away from us-east-1c (manual shift since 2026-03-02T09:57:00Z)"
    assert shifts.reason("us-east-1a") == shifts.reason("") == ""


def test_a_zone_that_no_subnet_has_closes_no_zone():
    shifts = ZonalShifts(shifts=(a_shift(),)).named({})
    assert (shifts.zones, shifts.reason("")) == (frozenset(), "")


def test_a_shift_that_is_missing_from_the_answer_has_ended():
    before = NOT_SHIFTED.polled([a_shift()], NOW, ShiftSource.EVENT)
    after = before.polled([], NOW + timedelta(minutes=1), ShiftSource.POLL)
    assert after.shifts == ()
    assert [(shift.zone_id, shift.ended) for shift in after.ended] == [("use1-az1", NOW + timedelta(minutes=1))]
    assert after.polled([], NOW + timedelta(minutes=30), ShiftSource.POLL).ended == ()


def test_a_shift_keeps_the_source_by_which_it_was_learned():
    before = NOT_SHIFTED.polled([a_shift()], NOW, ShiftSource.EVENT)
    assert before.polled([a_shift()], NOW, ShiftSource.POLL).shifts[0].source is ShiftSource.EVENT


def test_while_arc_does_not_answer_the_last_known_shifts_hold():
    before = NOT_SHIFTED.polled([a_shift(until=EXPIRES)], NOW, ShiftSource.POLL)
    after = before.not_polled("no answer", NOW + timedelta(minutes=5))
    assert (after.shifts, after.failed, after.read) == (before.shifts, "no answer", NOW)


def test_a_shift_that_has_expired_ends_although_arc_does_not_answer():
    before = NOT_SHIFTED.polled([a_shift(until=EXPIRES)], NOW, ShiftSource.POLL)
    after = before.not_polled("no answer", EXPIRES)
    assert (after.shifts, [shift.zone_id for shift in after.ended]) == ((), ["use1-az1"])


def test_an_announced_shift_counts_where_arc_does_not_answer():
    announced = a_shift(kind=ShiftKind.AUTOSHIFT, source=ShiftSource.EVENT)
    after = NOT_SHIFTED.not_polled("no answer", NOW, announced)
    assert after.shifts == (announced,)
    assert after.not_polled("no answer", NOW, announced).shifts == (announced,), "a second copy of the event"
