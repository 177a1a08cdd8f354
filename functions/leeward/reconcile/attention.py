"""Notice of what needs an operator: drains blocked for long, hooks near their end, pauses that seem forgotten.

Nothing is done about any of them: each is a name in the result of the pass, and a metric with an alarm
(docs/runbooks.md)."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from leeward.cluster.facets import required
from leeward.cluster.state import ClusterState
from leeward.model.pause import Pause
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.reconcile.result import ReconcileResult
from leeward.termination.instance_state import UNSELECTED

BLOCKED_LONG = timedelta(hours=1)  # without a pod that moved; a drain that nothing holds gives up after drain.timeout
HOOK_ENDS_WITHIN = timedelta(hours=2)  # or within a tenth of its time, if that is less
PAUSE_FORGOTTEN = timedelta(days=3)  # a pause without an end; its event is repeated each day


def note_attention(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Name what needs an operator in the cluster, as `CLUSTER: what`. Reads only what the pass has read already."""
    now = ports.clock.now()
    records = [one for one in required(state.records, "the open records").values() if is_in(one, state)]
    result.blocked_long += [f"{state.cluster}: {name_of(one)}" for one in records if is_blocked_long(one, now)]
    result.hooks_ending += [
        f"{state.cluster}: {name_of(one)}" for one in records if is_near_hook_end(one, _until(one, state), now)
    ]
    pauses = state.policies.pauses.pauses
    result.pauses += [f"{state.cluster}: {_described(one)}" for one in pauses]
    result.pauses_forgotten += [f"{state.cluster}: {_described(one)}" for one in forgotten(pauses, now)]


def is_in(record: TerminationRecord, state: ClusterState) -> bool:
    """Return whether the termination is one of the cluster's."""
    return record.subject.cluster == state.cluster


def name_of(record: TerminationRecord) -> str:
    """Return the node, its instance and its group, as far as they are known."""
    node, group = record.subject.node, record.subject.group
    name = f"{node} ({record.instance})" if node else record.instance
    return f"{name}, group {group}" if group else name


def is_blocked_long(record: TerminationRecord, now: datetime) -> bool:
    """Return whether something has blocked the drain for `BLOCKED_LONG`, counted from the last pod that moved."""
    times = record.times
    if not record.blocked_by or "draining" not in times or "drained" in times:
        return False
    return now - max(times["draining"], times.get("moved", times["draining"])) >= BLOCKED_LONG


def is_near_hook_end(record: TerminationRecord, until: timedelta, now: datetime) -> bool:
    """Return whether the hooks of ours that hold the instance are heartbeaten for less than `HOOK_ENDS_WITHIN` more.
    `until`: for how long they are heartbeaten, from the first time. Afterwards Auto Scaling ends them by their default.
    """
    held = record.times.get("held")
    if held is None or "terminated" in record.times or "answered" in record.times:
        return False
    return now >= held + until - min(HOOK_ENDS_WITHIN, until / 10)


def forgotten(pauses: tuple[Pause, ...], now: datetime) -> Iterator[Pause]:
    """Yield pauses without an end that are older than `PAUSE_FORGOTTEN`."""
    return (one for one in pauses if one.until is None and now - one.since >= PAUSE_FORGOTTEN)


def _until(record: TerminationRecord, state: ClusterState) -> timedelta:
    policy = state.policy_of(state.groups.get(record.subject.group or ""))
    return (policy or UNSELECTED).interruption.heartbeat.until


def _described(pause: Pause) -> str:
    what = f"group {pause.group}" if pause.group else "the cluster"
    return f"{what} is paused since {format_instant(pause.since)} by {pause.by}: {pause.why}"
