"""Rule that each start of an upgrade or a disruption run is notified once, and so is its end.

The ends are those of executions, which know nothing of notifications. An execution that was stopped, and of which the
bus has lost the event, is left out: only its next start ends with a notification."""

from collections.abc import Iterator

from leeward.notifications.run_events import RunEvent, RunEventType
from leeward.notifications.upgrade_events import ENDS, UpgradeEvent, UpgradeEventType
from simulation.definitions import DISRUPTION_RUN, UPGRADES
from simulation.facts import News
from simulation.view import WorldView

STARTS = frozenset({UpgradeEventType.STARTED, RunEventType.STARTED})
FINAL = {*ENDS, RunEventType.FINISHED, RunEventType.DROPPED}
ENDED = frozenset(
    {
        *("Upgraded", "Aborted", "RolledBack", "PreflightBlocked", "NodeCreationFailure", "PodEvictionFailure"),
        *("NodegroupUpdateFailure", "DisruptionDone", "DisruptionGivenUp"),
    }
)
"""Last states of executions that have ended an upgrade or a run."""


class Notifications:
    """Events since the beginning of the run, by what they are about."""

    def __init__(self) -> None:
        self._new = News().of
        self._ids: set[str] = set()
        self._open: set[tuple[str, str]] = set()  # what is started and has not ended, by the notifications
        self._ended: set[str] = set()  # executions with an end that was notified

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield events that are repeated, out of order or about nothing, and ends without one."""
        for event in self._new("notified", view.notified):
            yield from self._ordered(event)
        for ending in self._new("endings", view.endings):
            if ending.machine not in {*UPGRADES, DISRUPTION_RUN} or ending.state not in ENDED:
                continue
            if ending.name not in self._ended:
                yield f"{ending.machine} {ending.name} ended as {ending.state}, and no notification says so"

    def _ordered(self, event: UpgradeEvent | RunEvent) -> Iterator[str]:
        about = _about(event)
        name = f"{event.type.value} of {about[0]} ({event.id})"
        if event.id in self._ids:
            yield f"{name} is notified twice"
        self._ids.add(event.id)
        if event.type in STARTS:
            if about in self._open:
                yield f"{name}: it was started before and has not ended"
            self._open.add(about)
        elif about not in self._open:
            yield f"{name}: no start was notified"
        if event.type in FINAL:
            self._open.discard(about)
            self._ended.add(event.record.execution)


def _about(event: UpgradeEvent | RunEvent) -> tuple[str, str]:
    if isinstance(event, RunEvent):
        return f"run of {event.record.cluster}", str(event.record.number)
    return event.record.group, event.record.stamp
