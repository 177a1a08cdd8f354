"""Permission of a step, and how long to pause without one: control requests, windows and the canary, read through
the ports."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from math import ceil

from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Upgrades
from leeward.upgrade.control import Hold, Move, Permission, permission
from leeward.upgrade.lease import written
from leeward.upgrade.observation import Scene
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import Next, Run

SHORTEST, LONGEST = 2, 30  # seconds of a pause
HELD: Mapping[Hold, Next] = {Hold.PAUSED: Next.PAUSED, Hold.WINDOW: Next.WINDOW, Hold.CANARY: Next.BAKE}
MOVES: Mapping[Move, Next] = {Move.UNDO: Next.ABORT, Move.ROLL_BACK: Next.ROLLBACK, Move.FAIL: Next.CANARY_FAILURE}


def allowed(record: UpgradeRecord, scene: Scene, ports: Ports) -> Permission:
    """Return the permission. Reads CloudWatch only while a canary is watched."""
    canary = scene.policy.update.canary
    begun = record.finished + len(record.under_way)  # a canary whose drain has failed does not count
    watched = canary.nodes > 0 and begun > 0 and bool(canary.alarms) and not record.rolling_back
    alarms = ports.alarms.ringing(canary.alarms) if watched else ()
    update = scene.policy.update if not record.rolling_back else replace(scene.policy.update, canary=type(canary)())
    return permission(
        replace(record, started=begun),
        update,
        scene.settings,
        ports.clock.now(),
        finished=record.finished,
        alarms=alarms,
    )


def with_canary(record: UpgradeRecord, scene: Scene, now: datetime) -> UpgradeRecord:
    """Begin the bake when the last canary node is finished."""
    nodes = scene.policy.update.canary.nodes
    if nodes and record.canary_done is None and record.finished >= nodes:
        return replace(record, canary_done=now)
    return record


def seconds_until(moment: datetime | None, now: datetime) -> int:
    """Return the seconds of a pause that ends by itself; limited, so that a changed control request is read in time."""
    left = ceil((moment - now).total_seconds()) if moment is not None else LONGEST
    return min(max(left, SHORTEST), LONGEST)


def held(run: Run, found: Permission, under_way: int, now: datetime) -> Run:
    """Return the run paused, outside the windows, baking, or to be undone. `under_way`: nodes that finish during the
    hold.
    """
    if found.move is Move.HOLD and found.hold is not None:
        finish = f"; {under_way} nodes finish" if under_way else ""
        return again(run, HELD[found.hold], seconds_until(found.until, now), found.why + finish)
    return replace(run, next=MOVES[found.move], why=found.why)


def resumed(run: Run, record: UpgradeRecord, clock: Clock, upgrades: Upgrades) -> UpgradeRecord:
    """Restart the time for new nodes when a hold has just ended, because none were launched during the hold."""
    if run.next not in HELD.values():
        return record
    return written(replace(record, phase_since=clock.now()), upgrades)


def again(run: Run, onward: Next, pause: int, why: str) -> Run:
    """Return the run with one more run after a pause."""
    return replace(run, next=onward, pause=max(pause, 1), pauses=run.pauses + 1, why=why)
