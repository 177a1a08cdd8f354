"""The rule about notifications finds a start or an end that is missing, repeated or out of order."""

from dataclasses import replace

import pytest

from leeward.notifications.workflow_events import RunEventType, UpgradeEventType
from simulation.endings import Ending
from simulation.invariants import Checker, Rule
from tests.fakes.builders import GROUP
from tests.simulation.view_stand_in import World
from tests.unit.notifications.workflows import run_events, upgrade_events

UPGRADE, RUN = upgrade_events(), run_events()
STARTED, HELD, FINISHED = (UPGRADE[getattr(UpgradeEventType, kind)] for kind in ("STARTED", "HELD", "FINISHED"))
RUN_STARTED, DROPPED = RUN[RunEventType.STARTED], RUN[RunEventType.DROPPED]


def judged(*events, endings=()):
    world = World()
    world.notified.extend(events)
    world.endings.extend(endings)
    return [violation.rule for violation in Checker().after_event(world) if violation.rule is Rule.NOTIFIED]


def an_ending(state="Upgraded", machine="node-group-upgrade", name="web-1"):
    given = {"status": "SUCCEEDED", "cause": "", "asked": {"group": "web"}}
    return Ending(began=0.0, at=9.0, name=name, machine=machine, state=state, **given)


def test_a_start_and_an_end_are_right():
    assert judged(STARTED, HELD, FINISHED, RUN_STARTED, DROPPED, endings=[an_ending()]) == []
    assert judged(STARTED, endings=[an_ending("Delegated")]) == []


@pytest.mark.parametrize(
    "events",
    [
        (STARTED, STARTED),
        (FINISHED,),
        (HELD,),
        (RUN_STARTED, DROPPED, DROPPED),
        (STARTED, replace(STARTED, id="other")),
    ],
    ids=["the same twice", "an end without a start", "a hold without a start", "two ends", "two starts"],
)
def test_what_is_repeated_or_out_of_order_is_found(events):
    assert set(judged(*events)) == {Rule.NOTIFIED}


def test_an_end_that_is_not_notified_is_found():
    assert judged(STARTED, endings=[an_ending()]) == [Rule.NOTIFIED]
    run = an_ending("DisruptionGivenUp", "disruption", "blue-4-1")
    assert judged(RUN_STARTED, endings=[run]) == [Rule.NOTIFIED]


class TestStops:
    """An execution that ends without a step of its own."""

    def judged(self, *events, minutes, **changes):
        world, checker = World(), Checker()
        record = replace(STARTED.record, execution="web-1", group=GROUP)
        world.upgrades[GROUP] = replace(record, **changes)
        world.notified.extend((STARTED, *events))
        stop = replace(an_ending("WaitForPods"), status="ABORTED", at=world.now, asked={"group": GROUP})
        world.endings.append(stop)
        rules = [violation.rule for violation in checker.after_event(world)]
        world.clock.advance(minutes=minutes)
        return Rule.NOTIFIED in (*rules, *(violation.rule for violation in checker.after_event(world)))

    def test_a_stop_that_is_not_notified_in_ten_minutes_is_found(self):
        assert not self.judged(minutes=9)
        assert self.judged(minutes=11)

    def test_a_stop_that_is_notified_or_taken_over_is_right(self):
        failed = UPGRADE[UpgradeEventType.FAILED]
        told = replace(failed, record=replace(failed.record, execution="web-1"))
        assert not self.judged(told, minutes=11)
        assert not self.judged(minutes=11, execution="web-2")
