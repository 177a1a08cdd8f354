"""Permission of a running upgrade's next step, given the operator's control request, the policy and the time.

Decides between continuing, holding, undoing and rolling back. A hold starts nothing new: nodes that are draining
finish, so a pause takes effect between nodes. Alarms: nothing new starts while one of the policy's holds, nor in the
five minutes after it was last seen in ALARM, or the upgrade is rolled back where the policy says so. Windows:
further nodes start inside the policy's windows and outside every freeze (`leeward.policy.schedule`). Managed node
groups: EKS has no pause, and cancels no update of a node group (CancelUpdate serves rollbacks of Auto Mode clusters
alone)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice

from cronsim import CronSim

from leeward.errors import InvalidInputError
from leeward.model.counts import count_of
from leeward.model.times import format_instant
from leeward.policy.document import Canary, ClusterSettings, OnAlarm, UpdatePolicy, Window
from leeward.policy.durations import format_duration
from leeward.policy.schedule import MACROS, any_active, is_active, zone
from leeward.upgrade.record import ControlRequest, UpgradeRecord

QUIET = timedelta(minutes=5)  # alarms look at one to five minutes: one that was right comes back within that
_FURTHEST = timedelta(days=366)
_MOST_STARTS = 3 * 24 * 60  # starts of one window that are tried
_MOST_HOPS = 100  # from the end of a freeze to the start of a window and so on
_LATER = {
    ControlRequest.PAUSE: "EKS cannot pause an update: nothing more is started when it has ended",
    ControlRequest.ABORT: "EKS cannot cancel the update of a node group: it is not tried again when it has ended",
    ControlRequest.ROLLBACK: "EKS cannot cancel the update of a node group: the rollback begins when it has ended",
}


class Move(StrEnum):
    """The next step."""

    GO = "go"
    HOLD = "hold"
    UNDO = "undo"
    ROLL_BACK = "roll-back"


class Hold(StrEnum):
    """Reason why nothing new is started."""

    PAUSED = "paused"
    ALARM = "alarm"
    WINDOW = "window"
    CANARY = "canary"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The next move."""

    move: Move
    why: str
    hold: Hold | None = None
    until: datetime | None = None  # when a hold ends by itself; None: the operator or a later event has to end it
    at_most: int | None = None  # old nodes that may still be started, None without a limit of this kind


def permission(
    record: UpgradeRecord,
    update: UpdatePolicy,
    settings: ClusterSettings,
    now: datetime,
    *,
    finished: int,
    paused: str = "",
) -> Permission:
    """Decide the next move. The operator's control request comes first, then the pause switch, the alarms, freeze and
    windows, the canary.

    `finished`: old nodes that are gone; `paused`: why the pause switch stops upgrades of the group, empty if it does
    not. Alarms are those that the record has (`waits.py`). Alarms, windows and freezes hold neither an abort nor a
    rollback: these end what has begun.
    """
    match record.control:
        case ControlRequest.ABORT:
            return Permission(move=Move.UNDO, why="the operator has asked to abort")
        case ControlRequest.ROLLBACK:
            return Permission(move=Move.ROLL_BACK, why="the operator has asked to roll back")
        case ControlRequest.PAUSE:
            return Permission(move=Move.HOLD, hold=Hold.PAUSED, why="paused by the operator")
        case ControlRequest.RUN:
            if paused:
                return Permission(move=Move.HOLD, hold=Hold.PAUSED, why=paused)
            return _running(record, update, settings, now, finished)


def _running(
    record: UpgradeRecord,
    update: UpdatePolicy,
    settings: ClusterSettings,
    now: datetime,
    finished: int,
) -> Permission:
    alarmed = _alarmed(record, update, now)
    if alarmed is not None:
        return alarmed
    if not is_open(update.windows, settings.freeze, now):
        until = opens(update.windows, settings.freeze, now)
        when = f"it opens at {format_instant(until)}" if until else "it does not open within a year"
        return Permission(move=Move.HOLD, hold=Hold.WINDOW, until=until, why=f"outside the upgrade's windows, {when}")
    return _canary(record, update, now, finished) or Permission(move=Move.GO, why="nothing holds it")


def _alarmed(record: UpgradeRecord, update: UpdatePolicy, now: datetime) -> Permission | None:
    """Return the permission while an alarm holds, and until all have been out of ALARM for a while; None otherwise.

    A rollback needs an alarm that was seen in ALARM, an old node that the upgrade has started (an alarm from before is
    no verdict on the target) and an earlier version; without them the upgrade holds.
    """
    if record.rolling_back:
        return None
    quiet_at = record.rang + QUIET if record.rang is not None else None
    recent = quiet_at is not None and now < quiet_at
    if record.alarm:
        if recent and update.on_alarm is OnAlarm.ROLLBACK and record.started and record.previous is not None:
            return Permission(move=Move.ROLL_BACK, why=f"{record.alarm}: update.onAlarm says rollback")
        return Permission(move=Move.HOLD, hold=Hold.ALARM, why=record.alarm)
    if quiet_at is None or not recent:
        return None
    why = f"its alarms are out of ALARM; it continues after {format_duration(QUIET)}, at {format_instant(quiet_at)}"
    return Permission(move=Move.HOLD, hold=Hold.ALARM, until=quiet_at, why=why)


def _canary(record: UpgradeRecord, update: UpdatePolicy, now: datetime, finished: int) -> Permission | None:
    """Return the canary's permission, None once it has passed."""
    canary = update.canary
    baked = record.canary_done is not None and now >= record.canary_done + canary.bake
    if canary.nodes == 0 or baked:
        return None
    if record.canary_done is not None:
        until = record.canary_done + canary.bake
        why = f"the canary is watched for {format_duration(canary.bake)}, until {format_instant(until)}"
        return Permission(move=Move.HOLD, hold=Hold.CANARY, until=until, why=why)
    left = canary.nodes - (record.started - record.taken_back)
    if left > 0:
        return Permission(
            move=Move.GO, at_most=left, why=f"canary: {finished} of {count_of(canary.nodes, 'node')} finished"
        )
    return Permission(
        move=Move.HOLD, hold=Hold.CANARY, why=f"canary: {finished} of {count_of(canary.nodes, 'node')} finished"
    )


def canary_of(update: UpdatePolicy, parallel: int) -> Canary:
    """Return the policy's canary; where it has alarms and no canary, the first wave, watched for a while.
    Without that a target that breaks a workload would reach several waves before the first alarm. `parallel`: old nodes
    that may be unavailable at once.
    """
    if update.canary.nodes or not update.alarms:
        return update.canary
    return Canary(nodes=parallel, bake=QUIET)


def with_control(record: UpgradeRecord, control: ControlRequest) -> UpgradeRecord:
    """Return the record with the operator's control request; a repeat gives the same. Raises InvalidInputError for a
    request that does not apply now: an upgrade that has ended well can only be rolled back, one that is being undone
    can only go on with that.
    """
    if control is record.control:
        return record
    name = f"upgrade of {record.group}"
    if control is ControlRequest.ROLLBACK and record.previous is None and record.target.nodegroup is not None:
        raise InvalidInputError(
            f"{name}: found no earlier version of a launch template of its own, nor a release of EKS' image, expected "
            "one to ask EKS for; make another node group of that version"
        )
    if control is ControlRequest.ROLLBACK and record.previous is None:
        raise InvalidInputError(f"{name}: found no earlier template version, expected one to roll back to")
    if record.ended is not None and not record.error and control is not ControlRequest.ROLLBACK:
        raise InvalidInputError(f"{name}: found it ended at {format_instant(record.ended)}, expected one that runs")
    if record.ended is None and record.control in {ControlRequest.ABORT, ControlRequest.ROLLBACK}:
        raise InvalidInputError(f"{name}: found {record.control.value} under way, expected one that runs or is paused")
    return replace(record, control=control)


def is_open(windows: Sequence[Window], freeze: Sequence[Window], now: datetime) -> bool:
    """Return whether further nodes may start; always open without windows. A freeze wins over every window."""
    return (not windows or any_active(windows, now)) and not any_active(freeze, now)


def opens(windows: Sequence[Window], freeze: Sequence[Window], now: datetime) -> datetime | None:
    """Return the first moment from now on at which it is open; None when there is none within a year."""
    moment = now
    for _ in range(_MOST_HOPS):
        ends = [end for window in freeze if (end := _end(window, moment)) is not None]
        if ends:
            moment = max(ends)
        elif windows and not any_active(windows, moment):
            starts = [start for window in windows if (start := next(_starts(window, moment), None)) is not None]
            if not starts:
                return None
            moment = min(starts)
        else:
            return moment
        if moment - now > _FURTHEST:
            return None
    return None


def _end(window: Window, moment: datetime) -> datetime | None:
    """Return the end of the window's span that holds the moment; None when none does."""
    if not is_active(window, moment):
        return None
    spans = (start for start in _starts(window, moment - window.duration) if start <= moment)
    return next(spans) + window.duration


def _starts(window: Window, after: datetime) -> Iterator[datetime]:
    """Yield starts later than the moment, in UTC."""
    line = MACROS.get(window.schedule, window.schedule)
    for start in islice(CronSim(line, after.astimezone(zone(window.time_zone))), _MOST_STARTS):
        if start.astimezone(UTC) > after:
            yield start.astimezone(UTC)


def limits(record: UpgradeRecord) -> str:
    """Return the limit to report with the control request while EKS rolls the group; empty where it takes effect at
    once.
    """
    if record.target.nodegroup is None or not record.update or record.ended is not None:
        return ""
    return _LATER.get(record.control, "")
