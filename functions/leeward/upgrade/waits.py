"""Waits of an upgrade: whether a step may go on, how long it pauses, and when a wait has stalled.

Decides from the record since when a wait has stood still: the nodes that it is for stay the same, no drain begins or
ends, and no pod leaves them. Nodes that another controller or a person terminates count as well: an upgrade that ends
names the node, what blocks it, the object and the fix, and is started again afterwards.

Alarms are read before each start. The record says what the last reading found, so that `leeward upgrade status` and
the next turn know it without CloudWatch. A turn may take minutes, in a launch that hangs, so each start reads again
once the reading is some seconds old: no termination is requested later than 30 s after an alarm."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from math import ceil

from leeward.model.alarm import AlarmReading
from leeward.model.counts import count_of
from leeward.policy.document import Canary, DrainPolicy, UpdatePolicy
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Clusters
from leeward.ports.monitoring import Alarms
from leeward.ports.records import Claims, Upgrades
from leeward.termination.requests import read_apart
from leeward.upgrade.capacity_ledger import not_requested, with_warning
from leeward.upgrade.control import Hold, Move, Permission, permission
from leeward.upgrade.observation import Observation
from leeward.upgrade.preflight.model import Preflight, why_zones_wait
from leeward.upgrade.record import ControlRequest, NotedHold, UpgradeRecord
from leeward.upgrade.run import UpgradeNext, UpgradeRun, read, written
from leeward.upgrade.waves.drain_selection import still_there, with_decrement
from leeward.upgrade.waves.shared_budgets import is_begun
from leeward.workflow.alarms import read_alarms

SHORTEST, LONGEST = 2, 30  # seconds of a pause
HELD: Mapping[Hold, UpgradeNext] = {
    Hold.PAUSED: UpgradeNext.PAUSED,
    Hold.ALARM: UpgradeNext.ALARM,
    Hold.WINDOW: UpgradeNext.WINDOW,
    Hold.CANARY: UpgradeNext.BAKE,
}
MOVES: Mapping[Move, UpgradeNext] = {Move.UNDO: UpgradeNext.ABORT, Move.ROLL_BACK: UpgradeNext.ROLLBACK}
ENDING = frozenset(
    {
        UpgradeNext.ABORT,
        UpgradeNext.ROLLBACK,
        UpgradeNext.BLOCKED,
        UpgradeNext.CREATION_FAILURE,
        UpgradeNext.EVICTION_FAILURE,
        UpgradeNext.UPDATE_FAILURE,
    }
)
STALLED = timedelta(minutes=40)  # longer than a group tries to launch before an operator should look
AFTER_DRAIN = timedelta(minutes=15)  # load balancers, volumes, settling and the end of an instance
MOST_NAMED = 5  # nodes of a failure; the others are blocked by the same objects most often
FRESH = timedelta(seconds=5)  # age of a reading that still allows a start; DescribeAlarms allows about ten a second
HELD_EVENT, RESUMED_EVENT = "UpgradeHeld", "UpgradeResumed"  # reasons of Events


def allowed(record: UpgradeRecord, observation: Observation, clock: Clock) -> Permission:
    """Return the permission. A rollback keeps no canary. A group whose launches Leeward does not place is held during a
    zonal shift away from one of its zones.
    """
    shifted = why_zones_wait(observation.preflight.snapshot, observation.group)
    if shifted and not with_decrement(record) and record.control is ControlRequest.RUN:
        why = f"{shifted}: the group would launch in that zone by itself"
        return Permission(move=Move.HOLD, hold=Hold.WINDOW, why=why)
    begun = record.finished + len(record.under_way)  # a canary whose drain has failed does not count
    canary = Canary() if record.rolling_back else observation.preflight.canary
    return permission(
        replace(record, started=begun),
        replace(observation.policy.update, canary=canary),
        observation.settings,
        clock.now(),
        finished=record.finished,
        paused=observation.paused,
    )


def with_canary(record: UpgradeRecord, observation: Observation, now: datetime) -> UpgradeRecord:
    """Begin the bake when the last canary node is finished."""
    nodes = observation.preflight.canary.nodes
    if nodes and record.canary_done is None and record.finished >= nodes:
        return replace(record, canary_done=now)
    return record


def seconds_until(moment: datetime | None, now: datetime) -> int:
    """Return the seconds of a pause that ends by itself; limited, so that a changed control request is read in time."""
    left = ceil((moment - now).total_seconds()) if moment is not None else LONGEST
    return min(max(left, SHORTEST), LONGEST)


def held(run: UpgradeRun, permission: Permission, under_way: int, now: datetime) -> UpgradeRun:
    """Return the run paused, held by an alarm, outside the windows, baking, or to be undone. `under_way`: nodes that
    finish during the hold.
    """
    if permission.move is Move.HOLD and permission.hold is not None:
        finish = f"; {count_of(under_way, 'node finishes', 'nodes finish')}" if under_way else ""
        pause = seconds_until(permission.until, now)
        return replace(again(run, HELD[permission.hold], pause, permission.why + finish), hold=hold_of(permission, now))
    return replace(run, next=MOVES[permission.move], why=permission.why)


def hold_of(permission: Permission, now: datetime) -> NotedHold | None:
    """Return the hold that a notification names. A canary whose nodes still drain is progress, not a hold."""
    waits = permission.hold is Hold.CANARY and permission.until is None
    if permission.hold is None or permission.hold is Hold.TEMPLATE or waits:
        return None
    return NotedHold(kind=permission.hold.value, since=now, why=permission.why, until=permission.until)


def noted_hold(run: UpgradeRun, record: UpgradeRecord, upgrades: Upgrades) -> UpgradeRun:
    """Write into the record that a hold has begun, has become another or is over: one write for each. A repeated step
    finds it there and writes nothing. `record`: as the step has read it. An end or a rollback writes that itself.
    """
    before = record.hold.kind if record.hold is not None else ""
    after = run.hold.kind if run.hold is not None else ""
    if before != after and run.next not in ENDING:
        written(replace(read(run, upgrades), hold=run.hold), upgrades)
    return run


def resumed(run: UpgradeRun, record: UpgradeRecord, clock: Clock, upgrades: Upgrades) -> UpgradeRecord:
    """Restart the time for new nodes when a hold has just ended, because none were launched during the hold."""
    if run.next not in HELD.values():
        return record
    return written(replace(record, phase_since=clock.now()), upgrades)


def again(run: UpgradeRun, onward: UpgradeNext, pause: int, why: str) -> UpgradeRun:
    """Return the run with one more run after a pause."""
    return replace(run, next=onward, pause=max(pause, 1), pauses=run.pauses + 1, why=why)


def leaving_nodes(preflight: Preflight, record: UpgradeRecord, held: Mapping[str, str]) -> tuple[str, ...]:
    """Return instances whose end the upgrade waits for: those whose termination it has requested, and old nodes that
    others terminate. `held`: those of the first that their hook holds, which end when their pods leave.
    """
    others = {one.instance.id for one in preflight.old if one.node is not None and one.node.tainted}
    return tuple(sorted((record.under_way.keys() | others) - held.keys()))


def longest_wait(drain: DrainPolicy) -> timedelta:
    """Return the time in which something has to move: no shorter than a drain that uses all of its time."""
    longest = max(drain.timeout, drain.termination_grace_period or timedelta())
    return max(STALLED, longest + AFTER_DRAIN)


def pods_left(instances: Iterable[str], preflight: Preflight) -> int:
    """Count pods on these instances that have to leave and have not left."""
    wanted, snapshot = set(instances), preflight.snapshot
    nodes = [node for node in snapshot.nodes if node.instance_id in wanted]
    return sum(still_there(pod) for node in nodes for pod in snapshot.pods_on(node.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeWait:
    """Object of a wait: nodes, launches, budgets."""

    what: str
    objects: Iterable[str] = ()
    limit: timedelta  # in which something has to move
    pods: int = 0  # left on the objects; fewer are progress, compared when the limit is reached

    def key(self, record: UpgradeRecord) -> str:
        """Return words that differ whenever the wait has moved: another attempt, drain, end or failure, or other
        objects.
        """
        objects = sorted(self.objects)
        digest = sha256(" ".join(objects).encode()).hexdigest()[:8]
        counts = (
            f"attempt {record.attempt}, {record.started} started, {record.finished} gone, {len(record.failed)} failed"
        )
        return f"{self.what}: {len(objects)} ({', '.join(objects[:MOST_NAMED])}; {digest}; {counts})"


def track_wait(
    record: UpgradeRecord, wait: UpgradeWait, clock: Clock, upgrades: Upgrades
) -> tuple[UpgradeRecord, bool]:
    """Return the record, and whether this wait has stood still for longer than its limit. Its beginning is written when
    what is waited for changes; a repeat finds the same words and writes nothing.
    """
    now, key = clock.now(), wait.key(record)
    if record.wait_key != key:
        return written(replace(record, phase_since=now, wait_key=key, awaited=wait.pods), upgrades), False
    if now - (record.phase_since or now) <= wait.limit:
        return record, False
    if wait.pods < record.awaited:
        return written(replace(record, phase_since=now, awaited=wait.pods), upgrades), False
    return record, True


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
    reason, said = (HELD_EVENT, after.alarm) if after.alarm else (RESUMED_EVENT, "its alarms no longer hold it")
    message = f"upgrade of {after.group}: {said}"[:1000]
    kubernetes = clusters.kubernetes(after.cluster)
    kubernetes.event(node, reason=reason, message=message, warning=bool(after.alarm), now=clock.now())
