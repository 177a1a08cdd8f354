"""One sample event of each type, as docs/reference/events.md shows it."""

from dataclasses import replace
from typing import Any

from leeward.model.pause import PauseRecord
from leeward.model.termination import Outcome, Replacement, Status
from leeward.notifications.events import events_of_change
from leeward.notifications.workflow_events import RunEventType, UpgradeEventType, events_of_pauses
from tests.fakes.builders import a_pause
from tests.unit.notifications.test_events import BLOCKED, NOW, a_record
from tests.unit.notifications.workflows import CANARY, run_events, upgrade_events

OF_UPGRADES = {
    UpgradeEventType.STARTED: "",
    UpgradeEventType.HELD: CANARY.why,
    UpgradeEventType.RESUMED: CANARY.why,
    UpgradeEventType.ROLLING_BACK: "rolled back: shop-5xx is in ALARM: update.onAlarm says rollback",
    UpgradeEventType.FAILED: "pods did not leave: 8 old nodes wait: shop/web-1: pdb shop/web allows no disruption",
    UpgradeEventType.FINISHED: "9 nodes replaced, 9 members, lt-1 version 7",
    UpgradeEventType.ROLLED_BACK: "9 nodes replaced, 9 members, lt-1 version 6",
}
OF_RUNS = {
    RunEventType.STARTED: "",
    RunEventType.FINISHED: "consolidation: 2 nodes gone, 1 launched",
    RunEventType.DROPPED: "command 0 dropped: pod shop/web-1 fits nowhere else; command 1 dropped: alarm",
}


def samples() -> dict[str, dict[str, Any]]:
    """Return the detail of one event of each type, by type, in the order of the page."""
    new = a_record()
    drains = replace(new, times={**new.times, "draining": NOW})
    blocked = replace(drains, blocked_by=BLOCKED, pods_evicted=4)
    launched = replace(drains, replacement=Replacement(launched=("i-0new",)), pods_evicted=5)
    done = replace(launched, status=Status.CLOSED, outcome=Outcome.TERMINATED)
    failed = replace(
        drains, status=Status.CLOSED, outcome=Outcome.RETURNED_TO_SERVICE, failure="shop/web-1: pdb shop/web"
    )
    changes = [(None, new), (new, drains), (drains, blocked), (launched, done), (drains, failed)]
    events = [event for before, after in changes for event in events_of_change(before, after, NOW)]
    paused = replace(PauseRecord(cluster="blue").paused(a_pause()), version=1)
    resumed = replace(paused.resumed("", a_pause().by, "the game day is over"), version=2)
    since = a_pause().since
    events += [*events_of_pauses(None, paused, since), *events_of_pauses(paused, resumed, since)]
    events += [upgrade_events(text)[kind] for kind, text in OF_UPGRADES.items()]
    events += [run_events(text)[kind] for kind, text in OF_RUNS.items()]
    return {event.type.value: event.detail() for event in events}
