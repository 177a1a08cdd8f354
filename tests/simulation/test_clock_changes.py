"""Windows and freezes in the hour that clocks skip or repeat."""

from datetime import datetime, timedelta

import pytest

from leeward.policy.document import Window
from leeward.policy.schedule import is_active
from simulation.case import Case
from simulation.clock_changes import BEFORE, CHANGES, begin_of, is_open
from simulation.features import Feature


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.zone} {change.at:%m}")
def test_windows_around_a_change_of_clocks_are_open_as_the_product_has_it(change):
    for minute in change.minutes:
        schedule = f"{minute} {change.hour} * * *"
        window = Window(schedule=schedule, duration=timedelta(minutes=30), time_zone=change.zone)
        moments = [change.at + timedelta(minutes=number) for number in range(-120, 180)]
        open_ = [moment for moment in moments if is_open(window, moment.timestamp())]
        assert open_ == [moment for moment in moments if is_active(window, moment)]
        assert len(open_) == 30


def test_worlds_cross_changes_in_both_directions():
    begins = {begin_of(seed) for seed in range(60)}
    assert begins == {(change.at - BEFORE).timestamp() for change in CHANGES}
    case = Case(seed=3, hours=0.1, per_hour=1, features=(Feature.CLOCKS_CHANGE.value,))
    assert case.world().timeline.instant() == datetime.fromtimestamp(begin_of(3), tz=CHANGES[0].at.tzinfo)
