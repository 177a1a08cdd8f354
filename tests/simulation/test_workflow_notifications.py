"""Notifications of whole upgrades: each hold begins and ends once, whatever is retried in between."""

import pytest

from tests.simulation.managed_stories import MANAGED
from tests.simulation.upgrade_stories import SELF_MANAGED

STARTED, HELD, RESUMED, FINISHED = "Upgrade Started", "Upgrade Held", "Upgrade Resumed", "Upgrade Finished"
STORIES = {
    "canary": [STARTED, f"{HELD} canary", RESUMED, FINISHED],
    "paused": [STARTED, f"{HELD} paused", RESUMED, FINISHED],
    "outside its windows": [STARTED, f"{HELD} window", RESUMED, FINISHED],
    "alarm": [STARTED, f"{HELD} alarm", RESUMED, FINISHED],
    "rolled back": [STARTED, "Upgrade Rollback Started", "Upgrade Rolled Back"],
    "aborted": [STARTED, FINISHED],
    "blocked": [STARTED, "Upgrade Failed", STARTED, FINISHED],
    "full at the gate": [STARTED, FINISHED],
    "EKS may not start yet": [STARTED, f"{HELD} window", RESUMED, FINISHED],
}


OFTEN = ("canary", "alarm", "rolled back", "blocked", "EKS may not start yet")  # the others in the long form


@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.long) for name in STORIES]
)
def test_an_upgrade_is_notified_from_its_start_over_its_holds_to_its_end(name, monkeypatch):
    story = {**SELF_MANAGED, **MANAGED}[name]
    world = story.plan(monkeypatch)
    world.run(story.hours)
    events = world.world.system.notified.events
    assert len({event.id for event in events}) == len(events)
    assert [_named(event) for event in events] == STORIES[name]


def _named(event):
    """Return the type of the event, and the kind of a hold."""
    return f"{HELD} {event.record.hold.kind}" if event.type.value == HELD else event.type.value
