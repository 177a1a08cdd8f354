"""Notifications of upgrades and disruption runs, as fn notifications makes them of the writes of their records."""

from collections.abc import Callable

from leeward.disruption.record import DisruptionRecord
from leeward.notifications.workflow_events import RunEvent, UpgradeEvent, events_of_runs, events_of_upgrades
from leeward.upgrade.record import UpgradeRecord
from simulation.journal import Journal
from simulation.timeline import Timeline

UpgradeWrote = Callable[[UpgradeRecord | None, UpgradeRecord], None]
RunWrote = Callable[[DisruptionRecord | None, DisruptionRecord], None]


class Notified:
    """Events in the order of the writes."""

    def __init__(self, timeline: Timeline) -> None:
        self.events = Journal[UpgradeEvent | RunEvent]()
        self._timeline = timeline

    def of_upgrades(self, wrote: UpgradeWrote) -> UpgradeWrote:
        """Return an observer of writes that makes events and calls `wrote`."""

        def both(before: UpgradeRecord | None, after: UpgradeRecord) -> None:
            for event in events_of_upgrades(before, after, self._timeline.instant()):
                self.events.append(event)
            wrote(before, after)

        return both

    def of_runs(self, wrote: RunWrote) -> RunWrote:
        """Return an observer of writes that makes events and calls `wrote`."""

        def both(before: DisruptionRecord | None, after: DisruptionRecord) -> None:
            for event in events_of_runs(before, after, self._timeline.instant()):
                self.events.append(event)
            wrote(before, after)

        return both
