"""Notice of what lasts: blocked drains with their causes, pauses, and what of it needs an operator.

Decides what counts as blocked for long, near its end or forgotten. Nothing is done about any of them: each is a name in
the result of the pass, and a metric; those that need an operator have an alarm (docs/runbooks.md)."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from leeward.blockers.inputs import LONGEST_HOOK_WAIT, LONGEST_HOOK_WAIT_TIME_OUTS
from leeward.cluster.facets import required
from leeward.cluster.state import ClusterState
from leeward.model.blocked import BlockedCause, BlockedLine
from leeward.model.group import LifecycleHook
from leeward.model.pause import Pause
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant
from leeward.policy.document import Heartbeat
from leeward.ports import Ports
from leeward.reconcile.result import Notice, ReconcileResult
from leeward.termination import heartbeats
from leeward.termination.drain_reports import BLOCKED_AFTER, moved_last

BLOCKED_LONG = timedelta(hours=1)  # without a pod that moved; a drain that nothing holds gives up after drain.timeout
HOOK_ENDS_WITHIN = timedelta(hours=2)  # or within a tenth of its time, if that is less
PAUSE_FORGOTTEN = timedelta(days=3)  # a pause without an end; its event is repeated each day


def note_attention(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Name blocked drains and pauses of the cluster. Reads only what the pass has read already."""
    now = ports.clock.now()
    for record in required(state.records, "the open records").values():
        causes = blocked_by(record)
        if record.subject.cluster != state.cluster or not causes:
            continue
        notice, still = notice_of(record, causes), stands_still(record, now)
        result.blocked += [notice] if still >= BLOCKED_AFTER else []
        result.blocked_long += [notice] if still >= BLOCKED_LONG else []
    for pause in state.policies.pauses.pauses:
        if pause.in_force(now):
            notice = Notice(cluster=state.cluster, group=pause.group, what=_described(pause))
            result.pauses.append(notice)
            result.pauses_forgotten += [notice] if is_forgotten(pause, now) else []


def note_hook_ends(
    hooks: Iterable[LifecycleHook],
    record: TerminationRecord,
    heartbeat: Heartbeat,
    now: datetime,
    result: ReconcileResult,
) -> None:
    """Name the instance if hooks of ours that hold it are near their end. Afterwards Auto Scaling ends it by the hook's
    default result, with the pods that are left.
    """
    if any(left < limit for left, limit in _waits(hooks, record, heartbeat, now)):
        result.hooks_ending.append(notice_of(record))


def blocked_by(record: TerminationRecord) -> tuple[BlockedCause, ...]:
    """Return the causes for which pods do not leave; empty before and after the drain, and while its node is back in
    service until the next try.
    """
    draining = "draining" in record.times and "drained" not in record.times and "retry" not in record.times
    causes = (BlockedLine.read(line).cause for line in record.blocked_by if draining)
    return tuple(sorted({cause for cause in causes if cause is not None}))


def stands_still(record: TerminationRecord, now: datetime) -> timedelta:
    """Return for how long no pod of a drain has moved."""
    return now - moved_last(record, record.times["draining"])


def notice_of(record: TerminationRecord, causes: tuple[BlockedCause, ...] = ()) -> Notice:
    """Return the notice with the node, its instance and its group, as far as they are known."""
    subject = record.subject
    name = f"{subject.node} ({record.instance})" if subject.node else record.instance
    what = f"{name}, group {subject.group}" if subject.group else name
    return Notice(cluster=subject.cluster, group=subject.group or "", what=what, causes=causes)


def is_forgotten(pause: Pause, now: datetime) -> bool:
    """Return whether the pause has no end and is older than `PAUSE_FORGOTTEN`."""
    return pause.until is None and now - pause.since >= PAUSE_FORGOTTEN


def _waits(
    hooks: Iterable[LifecycleHook], record: TerminationRecord, heartbeat: Heartbeat, now: datetime
) -> Iterator[tuple[timedelta, timedelta]]:
    """Yield for each hook the time for which heartbeats can keep it waiting, and that below which its end is near."""
    for hook in hooks:
        since = heartbeats.held_since(record, hook)
        longest = timedelta(seconds=hook.heartbeat_timeout) * LONGEST_HOOK_WAIT_TIME_OUTS
        wait = min(heartbeat.until, LONGEST_HOOK_WAIT, longest)
        if since is not None:
            yield since + wait - now, min(HOOK_ENDS_WITHIN, wait / 10)


def _described(pause: Pause) -> str:
    what = f"group {pause.group}" if pause.group else "the cluster"
    return f"{what} is paused since {format_instant(pause.since)} by {pause.by}: {pause.why}"
