"""Decrements by others during an upgrade: each settles one launch, whichever turn sees it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.group import ScalingActivity
from leeward.upgrade.observation import observe
from leeward.upgrade.record import OpenLaunch
from leeward.upgrade.surge.launches import settled
from tests.fakes.builders import ZONE, an_instance
from tests.unit.upgrade.test_waits import NEW, OLD, a_rolling_group, draining

GONE = "i-0ccc"


@pytest.mark.parametrize(
    ("taken", "ahead"), [((), []), ((GONE,), [NEW])], ids=["its own launch", "another launch before"]
)
def test_a_new_instance_that_others_take_out_settles_one_launch(taken, ahead):
    system = a_rolling_group()
    now = system.clock.now()
    system.instances.put(replace(an_instance(NEW), launched=now + timedelta(minutes=1)))
    record = replace(draining(system), ahead={GONE: OpenLaunch(zone=ZONE)}, taken=taken)
    cause = "was taken out of service in response to a user request, shrinking the capacity from 3 to 2."
    activities = [ScalingActivity(at=now, cause=f"instance {GONE} {cause}", leaves=GONE)]
    after = settled(record, observe(record, system.ports), activities, system.claims)
    assert (list(after.ahead), after.taken) == (ahead, (GONE,))


@pytest.mark.parametrize(
    ("new_later", "heir"), [(True, NEW), (False, OLD)], ids=["a new node came", "one of an earlier target came"]
)
def test_the_group_s_replacement_of_an_ended_launch_takes_its_place_whatever_it_launched(new_later, heir):
    """Between two starts the group may launch an earlier target. Else the ended launch would count for ever."""
    system = a_rolling_group()
    now = system.clock.now()
    times = {OLD: now + timedelta(minutes=1), NEW: now + timedelta(minutes=2 if new_later else -60)}
    for name, launched in times.items():
        system.instances.put(replace(an_instance(name), launched=launched))
    record = replace(draining(system), under_way={}, ahead={GONE: OpenLaunch(zone=ZONE)})
    cause = f"instance {GONE} was taken out of service in response to a user health-check."
    after = settled(
        record, observe(record, system.ports), [ScalingActivity(at=now, cause=cause, leaves=GONE)], system.claims
    )
    assert list(after.ahead) == [heir]
