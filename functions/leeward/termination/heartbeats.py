"""Heartbeats that keep lifecycle hooks of ours waiting while a termination is under way, or pauses after a failure: the
moments at which they are due, and their requests."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from leeward.errors import LeewardError, RetryableError
from leeward.model.group import LifecycleHook
from leeward.model.termination import TerminationRecord
from leeward.policy.document import Heartbeat, NodePolicy
from leeward.ports import Ports
from leeward.termination.run import Run
from leeward.termination.situation import UNSELECTED, Freshness, Situation, read, survey
from leeward.workflow.steps import Step

UNATTENDED = timedelta(seconds=90)  # until the next chance: a step may hang for 55 s, the reconciler runs every 60 s
AT_EVERY_CHANCE = timedelta(minutes=2)  # before a heartbeat is due: two passes of the minute reconciler may fail
TWO_PASSES = timedelta(minutes=2)  # of the minute reconciler: the next one, which may fail, and the one after it


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


def next_of(situation: Situation, now: datetime) -> list[datetime]:
    """Return when the hooks of ours that hold the instance need their next heartbeats."""
    hooks = situation.our_hooks if situation.held else ()
    return next_heartbeats(hooks, situation.record, situation.policy.interruption.heartbeat, now)


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


def record_heartbeat(situation: Situation, ports: Ports, ahead: timedelta = timedelta()) -> TerminationRecord:
    """Heartbeat the hooks of ours that hold the instance and need one within `ahead`; return the record as it is then.

    A repeat finds the heartbeat in the record, and sends none before the next is due.
    """
    record = situation.record
    if not situation.held or situation.group is None:
        return record
    return keep_waiting(record, situation.our_hooks, situation.policy, ports, ahead)


def keep_waiting(
    record: TerminationRecord,
    hooks: Iterable[LifecycleHook],
    policy: NodePolicy | None,
    ports: Ports,
    ahead: timedelta,
    unattended: timedelta = UNATTENDED,
) -> TerminationRecord:
    """Heartbeat these hooks of an instance that is known to be held; without a policy the defaults apply. `ahead`,
    `unattended`: as `heartbeats_due` takes them.
    """
    now = ports.clock.now()
    settings = (policy or UNSELECTED).interruption.heartbeat
    due = heartbeats_due(hooks, record, settings, now, ahead, unattended)
    sent = {
        hook.name: now
        for hook in due
        if ports.groups.heartbeat(group=hook.group, hook=hook.name, instance=record.instance)
    }
    held = {"held": now} if sent and "held" not in record.times else {}
    if sent:
        ports.claims.note(record.instance, times=held, heartbeats=sent)
    return replace(record, times={**held, **record.times}, heartbeats={**record.heartbeats, **sent})


def heartbeats_kept(step: Step[Run]) -> Step[Run]:
    """Return the step with a heartbeat of the hooks that hold its instance before an error that the state machine
    retries: retries last for minutes, longer than a short hook waits.
    """

    @wraps(step)
    def kept(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
        try:
            return step(run, call, ports)
        except RetryableError:
            with suppress(LeewardError):
                record_heartbeat(survey(read(run.instance, ports.claims), ports, Freshness.WORK), ports)
            raise

    return kept
