"""Alarms that guard an upgrade: read before each start, held by, taken back for, and announced.

The record says what the last reading found, so that `leeward upgrade status` and the next turn know it without
CloudWatch. A turn may take minutes, in a launch that hangs, so each start reads again once the reading is some
seconds old: no termination is requested later than 30 s after an alarm."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from leeward.model.alarm import AlarmReading
from leeward.policy.document import UpdatePolicy
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Clusters
from leeward.ports.monitoring import Alarms
from leeward.ports.records import Claims, Upgrades
from leeward.termination.requests import read_apart
from leeward.upgrade.capacity_ledger import not_requested, with_warning
from leeward.upgrade.control import Move, Permission
from leeward.upgrade.lease import written
from leeward.upgrade.observation import Observation
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.waves.shared_budgets import is_begun
from leeward.workflow.alarms import read_alarms

FRESH = timedelta(seconds=5)  # age of a reading that still allows a start; DescribeAlarms allows about ten a second
HELD, RESUMED = "UpgradeHeld", "UpgradeResumed"  # reasons of Events


class AlarmWatch:
    """Alarms of one upgrade, read again once the last reading is no longer fresh. `names` empty: nothing is read."""

    def __init__(self, names: Collection[str], alarms: Alarms, clock: Clock) -> None:
        self._names, self._alarms, self._clock = tuple(names), alarms, clock
        self._last = AlarmReading()
        self._read: datetime | None = None

    def reading(self) -> AlarmReading:
        """Return the reading, at most `FRESH` old."""
        now = self._clock.now()
        if self._read is None or now - self._read >= FRESH:
            self._read, self._last = now, read_alarms(self._names, self._alarms)
        return self._last

    def allows(self) -> bool:
        """Return whether the next node may start."""
        return not self.reading().holds


def watch_of(record: UpgradeRecord, update: UpdatePolicy, alarms: Alarms, clock: Clock) -> AlarmWatch:
    """Return the watch of a turn. A rollback reads nothing: it ends what the alarm is about."""
    return AlarmWatch(() if record.rolling_back else update.alarms, alarms, clock)


def with_alarms(record: UpgradeRecord, reading: AlarmReading, now: datetime) -> UpgradeRecord:
    """Return the record with what this reading found."""
    return replace(record, alarm=reading.holds, rang=now if reading.ringing else record.rang)


def with_rollback(record: UpgradeRecord, permission: Permission) -> UpgradeRecord:
    """Return the record with the control request that an alarm makes, by policy; `start_rollback` then acts on it."""
    if permission.move is not Move.ROLL_BACK or record.control is not ControlRequest.RUN:
        return record
    return with_warning(replace(record, control=ControlRequest.ROLLBACK), f"rolled back: {permission.why}")


def taken_back(
    record: UpgradeRecord, unrequested: Collection[str], claims: Claims, upgrades: Upgrades
) -> tuple[UpgradeRecord, list[str]]:
    """Return the record and the old instances whose termination is requested all the same: a step that died has begun
    to request it. The others stay in service until the alarms allow a start, and the record is written.
    """
    if not unrequested:
        return record, []
    terminations = read_apart(unrequested, claims).read
    begun = [old for old in unrequested if is_begun(record, old, terminations)]
    staying = [old for old in unrequested if old not in begun]
    return (written(not_requested(record, staying), upgrades) if staying else record), begun


def announce(
    before: UpgradeRecord, after: UpgradeRecord, observation: Observation, clock: Clock, clusters: Clusters
) -> None:
    """Write an Event of an old node in the turn in which the alarms begin to hold the upgrade, or cease to."""
    node = next((old.node for old in observation.preflight.old if old.node is not None), None)
    if node is None or bool(before.alarm) is bool(after.alarm):
        return
    reason, said = (HELD, after.alarm) if after.alarm else (RESUMED, "its alarms no longer hold it")
    message = f"upgrade of {after.group}: {said}"[:1000]
    kubernetes = clusters.kubernetes(after.cluster)
    kubernetes.event(node, reason=reason, message=message, warning=bool(after.alarm), now=clock.now())
