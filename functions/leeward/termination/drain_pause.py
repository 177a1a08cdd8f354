"""Pauses of a drain: when its pods are read next.

Decides nothing about pods; a cause that joins ends a pause early."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil

from leeward.model.termination import CauseKind, TerminationRecord, detach_deadline
from leeward.model.times import format_instant, parse_instant
from leeward.ports.clock import Clock
from leeward.termination import deadlines, decisions, heartbeats
from leeward.termination.run import Next, Run
from leeward.termination.situation import Situation


def is_only_announced(run: Run, record: TerminationRecord, now: datetime) -> bool:
    """Return whether only the message that a hook of ours holds the instance ended this pause. Its pods are then read
    when the pause would have ended.
    """
    joined = record.causes[-(record.version - run.version) :] if record.version > run.version else ()
    only = all(cause.kind is CauseKind.ASG_TERMINATE and cause.hook_ours for cause in joined)
    return bool(joined) and only and bool(run.look) and now + timedelta(seconds=1) < parse_instant(run.look)


def sleep_on(run: Run, situation: Situation, clock: Clock) -> Run:
    """Return the rest of a pause that such a message has ended, or less if a heartbeat is due before."""
    now = clock.now()
    moments = [parse_instant(run.look), *next_heartbeats(situation, now)]
    pause = max(ceil((min(moments) - now).total_seconds()), 1)
    return replace(run, next=Next.WAIT, pause=pause, why=run.why or "a hook of ours holds it")


def pause_drain(
    run: Run,
    situation: Situation,
    started: datetime,
    why: str,
    clock: Clock,
    *,
    hint: float | None,
    moments: Sequence[datetime] = (),
) -> Run:
    """Return a pause until the next look at the pods: `hint` seconds, a deadline, a heartbeat or one of `moments`."""
    now, record = clock.now(), situation.record
    end = deadlines.drain_end(record, situation.policy.drain, started)
    known = (end, detach_deadline(record, now), deadlines.release_at(record, now), *moments)
    soon = [moment for moment in known if moment is not None and moment > now]
    limits = [*next_heartbeats(situation, now), *soon]
    since = max((cause.at for cause in record.causes if cause.at <= now), default=started)
    pause = decisions.pause_seconds(waited=now - max(started, since), hint=hint, limits=limits, now=now)
    look = format_instant(now + timedelta(seconds=pause))
    return replace(run, next=Next.WAIT, pause=pause, why=why[:500], look=look)


def next_heartbeats(situation: Situation, now: datetime) -> list[datetime]:
    """Return when the hooks of ours that hold the instance need their next heartbeats."""
    hooks = situation.our_hooks if situation.held else ()
    return heartbeats.next_heartbeats(hooks, situation.record, situation.policy.interruption.heartbeat, now)
