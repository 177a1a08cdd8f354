"""Rule that each start of an upgrade or a disruption run is notified once, and so is its end.

The ends are those of executions, which know nothing of notifications. An upgrade's execution that was stopped or timed
out is notified within `TOLD_WITHIN`, whether or not the bus delivers the event of its end, unless another execution
has taken the upgrade over or the group is gone. A disruption run is no such case: its next execution continues it."""

from collections.abc import Iterator
from dataclasses import replace

from leeward.notifications.workflow_events import ENDS, RunEvent, RunEventType, UpgradeEvent, UpgradeEventType
from simulation.aws.bus import ENDED_BADLY
from simulation.definitions import DISRUPTION_RUN, UPGRADES
from simulation.endings import Ending
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
TOLD_WITHIN = 600.0  # seconds from a stop: two observations of the minute reconciler, some of which die


class Notifications:
    """Events since the beginning of the run, by what they are about."""

    def __init__(self) -> None:
        self._new = News().of
        self._ids: set[str] = set()
        self._open: set[tuple[str, str]] = set()  # what is started and has not ended, by the notifications
        self._ended: set[str] = set()  # executions with an end that was notified
        self._stopped: dict[str, Ending] = {}  # executions of upgrades that no step has ended, until that is notified

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield events that are repeated, out of order or about nothing, and ends without one."""
        for event in self._new("notified", view.notified):
            yield from self._ordered(event)
        for ending in self._new("endings", view.endings):
            if ending.machine not in {*UPGRADES, DISRUPTION_RUN}:
                continue
            if ending.state in ENDED:
                if ending.name not in self._ended:
                    yield f"{ending.machine} {ending.name} ended as {ending.state}, and no notification says so"
            elif ending.machine in UPGRADES and ending.status in ENDED_BADLY:
                self._stopped[ending.name] = ending
        if self._stopped:
            yield from self._not_told(view)

    def _not_told(self, view: WorldView) -> Iterator[str]:
        """Yield stopped executions that still hold an upgrade and of whose end no notification has come in time."""
        for name, ending in list(self._stopped.items()):
            record = view.upgrades.get(ending.group)
            held = record is not None and record.execution == name and ending.group in view.groups
            if name in self._ended or not held:
                del self._stopped[name]
            elif view.stood_still(TOLD_WITHIN):
                self._stopped[name] = replace(ending, at=view.now)
            elif view.now - ending.at > TOLD_WITHIN:
                del self._stopped[name]
                yield f"{ending.machine} {name} was stopped in {ending.state}, and no notification says so"

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
