"""Windows and freezes in the hour that clocks skip or repeat."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.policy.document import Window
from leeward.policy.schedule import is_active
from simulation.case import Case
from simulation.clock_changes import BEFORE, CHANGES, begin_of, is_open
from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.test_alarm_rules import broken, guarded


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.zone} {change.at:%m}")
def test_windows_around_a_change_of_clocks_are_open_as_the_product_has_it(change):
    for minute in change.minutes:
        schedule = f"{minute} {change.hour} * * *"
        window = Window(schedule=schedule, duration=timedelta(minutes=30), time_zone=change.zone)
        moments = [change.at + timedelta(minutes=number) for number in range(-120, 180)]
        open_ = [moment for moment in moments if is_open(window, moment.timestamp())]
        assert open_ == [moment for moment in moments if is_active(window, moment)]
        assert len(open_) == 30


@pytest.mark.parametrize(("minutes", "found"), [(0, []), (20, [Rule.CLOSED]), (50, [])])
def test_a_node_that_an_upgrade_starts_in_a_freeze_is_found(minutes, found):
    world = guarded()
    assert broken(world, Rule.CLOSED) == []
    began = datetime.fromtimestamp(world.now, UTC) - timedelta(minutes=minutes)
    freeze = Window(schedule=f"{began.minute} {began.hour} * * *", duration=timedelta(minutes=40))
    settings = replace(world.policies.settings, freeze=(freeze,))
    world.policies = replace(world.policies, settings=settings)
    assert broken(world, Rule.CLOSED) == found


def test_worlds_cross_changes_in_both_directions():
    begins = {begin_of(seed) for seed in range(60)}
    assert begins == {(change.at - BEFORE).timestamp() for change in CHANGES}
    case = Case(seed=3, hours=0.1, per_hour=1, features=(Feature.CLOCKS_CHANGE.value,))
    assert case.world().timeline.instant() == datetime.fromtimestamp(begin_of(3), tz=CHANGES[0].at.tzinfo)
