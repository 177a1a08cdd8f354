"""How the bench looks for the size of storm at which a deadline breaks."""

import pytest

from bench import storm_limits
from bench.storm_limits import Limited


def a_storm(count, *, holds_to, evicted=1.0, tainted=2.0, lost=0):
    return Limited(
        count=count,
        nodes=count,
        pods=100,
        tainted=tainted,
        evicted=evicted if count <= holds_to else 0.5,
        late=0,
        lost=lost,
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
    monkeypatch.setattr(storm_limits, "storm", lambda count: a_storm(count, holds_to=holds_to))
    good, bad = storm_limits._bracket(storm_limits.storm(first))
    assert good <= holds_to < bad
    assert bad <= max(good + 1, good * 1.25)


def test_a_storm_that_never_breaks_is_not_looked_for_without_an_end(monkeypatch):
    monkeypatch.setattr(storm_limits, "storm", lambda count: a_storm(count, holds_to=10**6))
    assert storm_limits._bracket(storm_limits.storm(1000))[0] >= storm_limits.MOST


def test_one_that_always_breaks_is_reported_so(monkeypatch):
    monkeypatch.setattr(storm_limits, "storm", lambda count: a_storm(count, holds_to=0))
    assert storm_limits._bracket(storm_limits.storm(100)) == (0, 1)


@pytest.mark.parametrize("broken", [{"evicted": 0.998}, {"tainted": 15.1}, {"tainted": None}, {"lost": 1}])
def test_each_deadline_counts(broken):
    assert a_storm(10, holds_to=10).met
    assert not a_storm(10, holds_to=10, **broken).met
