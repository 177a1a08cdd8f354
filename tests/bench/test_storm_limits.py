"""Storms within the limits of AWS: how the bench looks for the size at which a deadline breaks, what it counts, and the
sizes at which none does."""

import pytest

from bench import storm_limits
from bench.storm_limits import Limited, Storm, measure
from simulation import journal


def a_storm(count, *, holds_to, evicted=1.0, tainted=2.0, lost=0):
    return Limited(
        storm=Storm(count=count),
        nodes=count,
        pods=100,
        tainted=tainted,
        evicted=evicted if count <= holds_to else 0.5,
        late=0,
        lost=lost,
        launched=0,
        gone=0,
        throttled={},
        attempts={},
        calls={},
        violations=(),
        cpu=0,
    )


@pytest.mark.parametrize("first", [1, 40, 100, 1000])
@pytest.mark.parametrize("holds_to", [1, 7, 70, 900])
def test_the_sizes_found_stand_on_both_sides_of_the_break_and_near_each_other(monkeypatch, first, holds_to):
    monkeypatch.setattr(storm_limits, "measure", lambda storm: a_storm(storm.count, holds_to=holds_to))
    good, bad = storm_limits._bracket(storm_limits.measure(Storm(count=first)))
    assert good <= holds_to < bad
    assert bad <= max(good + 1, good * 1.25)


def test_a_storm_that_never_breaks_is_not_looked_for_without_an_end(monkeypatch):
    monkeypatch.setattr(storm_limits, "measure", lambda storm: a_storm(storm.count, holds_to=10**6))
    assert storm_limits._bracket(storm_limits.measure(Storm(count=1000)))[0] >= storm_limits.MOST


def test_one_that_always_breaks_is_reported_so(monkeypatch):
    monkeypatch.setattr(storm_limits, "measure", lambda storm: a_storm(storm.count, holds_to=0))
    assert storm_limits._bracket(storm_limits.measure(Storm(count=100))) == (0, 1)


@pytest.mark.parametrize("broken", [{"evicted": 0.998}, {"tainted": 15.1}, {"tainted": None}, {"lost": 1}])
def test_each_deadline_counts(broken):
    assert a_storm(10, holds_to=10).met
    assert not a_storm(10, holds_to=10, **broken).met


def test_the_largest_storm_fits_into_the_journals():
    assert storm_limits.MOST < journal.KEPT


@pytest.mark.parametrize(("limits", "count"), [("", len(storm_limits.SMALL)), ("70", 1), ("all", None)])
def test_a_broken_deadline_of_any_storm_fails_the_bench(monkeypatch, capsys, limits, count):
    measured = []

    def measure(storm):
        measured.append(storm)
        return a_storm(storm.count, holds_to=60)

    monkeypatch.setattr(storm_limits, "measure", measure)
    assert not storm_limits.run(limits, breaks=False)
    assert len(measured) == (count or len(storm_limits.SMALL) + len(storm_limits.LARGE))
    assert capsys.readouterr().out.count("50.00%") == sum(storm.count > 60 for storm in measured)


def test_warnings_over_some_seconds_are_judged_each_by_its_own_deadline():
    """Small enough for a taint of the last node long after the first warning, and for a budget that holds no pod."""
    found = measure(Storm(count=4, seconds=40.0))
    assert (found.met, found.late, found.pods > 0) == (True, 0, True)
    assert found.gone > 40


@pytest.mark.long
@pytest.mark.parametrize("storm", storm_limits.SMALL, ids=str)
def test_small_storms_meet_every_deadline(storm):
    assert measure(storm).met


@pytest.mark.long
@pytest.mark.parametrize("storm", [storm for storm in storm_limits.LARGE if storm.count <= 500], ids=str)
def test_storms_over_a_minute_meet_every_deadline(storm):
    assert measure(storm).met
