"""Moments at which lifecycle hooks of ours need heartbeats, computed from the record and the policy. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from leeward.model.group import LifecycleHook
from leeward.model.termination import TerminationRecord
from leeward.policy.document import Heartbeat

UNATTENDED = timedelta(seconds=90)  # until the next chance: a step may hang for 55 s, the reconciler runs every 60 s


def heartbeat_interval(heartbeat: Heartbeat, hook: LifecycleHook) -> timedelta:
    """Return half of the hook's time-out, so that one lost heartbeat loses nothing. The policy may only shorten it."""
    half = timedelta(seconds=max(hook.heartbeat_timeout / 2, 1))
    return half if heartbeat.interval is None else min(heartbeat.interval, half)


def held_since(record: TerminationRecord, hook: LifecycleHook) -> datetime | None:
    """Return when the hook began to hold the instance: by the cause that it brought, the first heartbeat, or our own
    request to the group. None: unknown. Older causes, such as maintenance announced days ahead, do not date it.
    """
    own = (cause.at for cause in record.causes if cause.hook == hook.name)
    return min(own, default=record.times.get("held", record.times.get("terminating")))


def heartbeats_due(
    hooks: Iterable[LifecycleHook],
    record: TerminationRecord,
    heartbeat: Heartbeat,
    now: datetime,
    ahead: timedelta,
    unattended: timedelta = UNATTENDED,
) -> tuple[LifecycleHook, ...]:
    """Return the waiting hooks of ours that need a heartbeat within `ahead`, or that would end before the next chance
    to send one, `unattended` from now. Return none once `until` has passed since the hook began to hold the instance.
    """
    return tuple(
        hook
        for hook in hooks
        if (due := _next_heartbeat(hook, record, heartbeat, now)) is not None
        and (due <= now + ahead or _ends(hook, record, now) <= now + unattended)
    )


def _ends(hook: LifecycleHook, record: TerminationRecord, now: datetime) -> datetime:
    """Return when Auto Scaling ends the hook without another heartbeat."""
    began = record.heartbeats.get(hook.name, held_since(record, hook) or now)
    return began + timedelta(seconds=hook.heartbeat_timeout)


def next_heartbeats(
    hooks: Iterable[LifecycleHook], record: TerminationRecord, heartbeat: Heartbeat, now: datetime
) -> list[datetime]:
    """Return when each waiting hook of ours needs its next heartbeat."""
    heartbeats = (_next_heartbeat(hook, record, heartbeat, now) for hook in hooks)
    return [due for due in heartbeats if due is not None]


def _next_heartbeat(
    hook: LifecycleHook, record: TerminationRecord, heartbeat: Heartbeat, now: datetime
) -> datetime | None:
    """Return when the hook needs its next heartbeat. None: heartbeats have ended, and the hook's own default result is
    next. A hook that has waited for an unknown time needs one at once.
    """
    since = held_since(record, hook)
    if since is None:
        return now
    due = record.heartbeats.get(hook.name, since) + heartbeat_interval(heartbeat, hook)
    return due if max(due, now) < since + heartbeat.until else None
