"""Moments that bound one drain, computed from its record and its policy. Pure.

`started` is the moment at which the present attempt began to drain. A terminationGracePeriod counts from the first
drain of the record's period, so that attempts do not extend it."""

from datetime import datetime, timedelta
from math import ceil

from leeward.model.group import HookResult
from leeward.model.termination import CauseKind, TerminationRecord, detach_deadline, is_abrupt, taken_at
from leeward.policy.document import DrainPolicy

LONG_GRACE = timedelta(minutes=5)  # pods with a longer one are deleted on facts that are minutes old
LAUNCH_WITHIN = timedelta(minutes=5)  # of an empty node's last pod; then its group replaces it
DEADLINE_MARGIN = timedelta(seconds=5)  # what terminating and answering need before EC2 takes the instance


def release_at(record: TerminationRecord, now: datetime) -> datetime | None:
    """Return when an instance that EC2 takes is released, drained or not, so that its hooks are answered before that.
    It is never released earlier while pods are left, and no pause and no work inside a step exceeds this moment. None:
    EC2 does not take the instance. Maintenance releases nothing: an instance that EC2 leaves in service keeps its pods.
    """
    taken = taken_at(record, now)
    return taken - DEADLINE_MARGIN if taken is not None else None


def out_of_time(record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime) -> str | None:
    """Return why the drain's time is over, or None while it is not: the end of its own time, or the moment the instance
    is taken. An instance that EC2 takes does not return to service before that: it would get pods again, for a minute.
    """
    release = release_at(record, now)
    if release is not None and now >= release:
        return "the instance is being taken now"
    if release is not None and not policy.force:
        return None
    end = drain_end(record, policy, started)
    if now < end:
        return None
    if end > started + policy.timeout:
        return f"its deadline has passed, {int((end - started).total_seconds())} s after it began to drain"
    return f"drain.timeout of {int(policy.timeout.total_seconds())} s has passed"


def drain_end(record: TerminationRecord, policy: DrainPolicy, started: datetime) -> datetime:
    """Return when a drain stops waiting for pods: drain.timeout, or the later deadline set by a terminationGracePeriod
    or a manual drain.
    """
    return max(moment for moment in (started + policy.timeout, *_chosen(record, policy, started)))


def node_deadline(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime, *, ours_hold: bool
) -> datetime | None:
    """Return when the node terminates whatever happens: the earliest of terminationGracePeriod, the deadline of a
    manual drain, the detach deadline and the time-outs of another team's hooks that count. A cause that joins can only
    tighten it.

    `ours_hold`: a hook of ours holds the instance, as far as the group reports.
    """
    foreign = _foreign_hooks(record, ours_hold=ours_hold)
    moments = (*_chosen(record, policy, started), detach_deadline(record, now), *foreign)
    return min((moment for moment in moments if moment is not None), default=None)


def may_delete(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime, *, ours_hold: bool
) -> bool:
    """Return whether a step that begins now may delete pods, for an instance that EC2 does not take anyway."""
    if release_at(record, now) is not None:
        return False
    chosen = record.options is not None and record.options.deadline is not None
    if not (policy.force or policy.termination_grace_period is not None or chosen):
        return False
    end = node_deadline(record, policy, started, now, ours_hold=ours_hold)
    first = drain_end(record, policy, started)
    first = first if end is None else min(first, end)
    return now >= first - LONG_GRACE


def deregistered_by(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime, *, ours_hold: bool
) -> datetime | None:
    """Return until when the first eviction waits for load balancers: drain.deregistrationTimeout, but never more than
    half of the drain's time, so that the pods have as much. None: no wait, because the instance is taken too soon or
    the policy says so.
    """
    if not policy.deregistration_timeout or is_abrupt(record, now):
        return None
    half = _halfway(record, policy, started, started, node_deadline(record, policy, started, now, ours_hold=ours_hold))
    return min(started + policy.deregistration_timeout, half)


def surged_by(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime, *, ours_hold: bool
) -> datetime:
    """Return until when a pod waits for a second replica: half of the time left once evictions have begun."""
    since = max(record.times.get("evicting", started), started)
    return _halfway(record, policy, started, since, node_deadline(record, policy, started, now, ours_hold=ours_hold))


def held_by(
    record: TerminationRecord,
    policy: DrainPolicy,
    span: timedelta,
    started: datetime,
    now: datetime,
    *,
    ours_hold: bool,
) -> datetime:
    """Return until when an empty node is held for work still under way at it: `span` from its last pod's end, and not
    past a deadline.
    """
    deadline = node_deadline(record, policy, started, now, ours_hold=ours_hold)
    ends = (record.times.get("drained", now) + span, release_at(record, now), deadline)
    return min(moment for moment in ends if moment is not None)


def settle_seconds(record: TerminationRecord, settle: timedelta, now: datetime) -> int:
    """Return how long, in seconds, the empty node stays so that load balancers deregister it (docs/features.md, U11).
    `settle`: as `settling.py` decides it. A pod that came and left after the node had been emptied once, because others
    had lifted the taint, starts it again. The result does not exceed the detach deadline. The node of a Capacity Block
    stays until then: a group that is asked to terminate it launches another into the block, which would have to be
    drained at once. The node of an upgrade that has started it ahead of a launch waits for that one, which its
    termination offsets.
    """
    span = max(settle, LAUNCH_WITHIN) if record.awaits_launch else settle
    drained = record.times.get("drained", now)
    end = max(drained, record.times.get("moved", drained)) + span
    detach = detach_deadline(record, now)
    if detach is not None and all(cause.kind is CauseKind.CAPACITY_BLOCK for cause in record.causes):
        end = detach
    if detach is not None:
        end = min(end, detach - DEADLINE_MARGIN)
    return max(0, ceil((end - now).total_seconds()))


def _chosen(record: TerminationRecord, policy: DrainPolicy, started: datetime) -> list[datetime]:
    """Return the deadlines that an owner has set: pods are deleted to meet them."""
    deadlines = [record.options.deadline] if record.options and record.options.deadline else []
    if policy.termination_grace_period is not None:
        deadlines.append(record.times.get("begun", started) + policy.termination_grace_period)
    return deadlines


def _foreign_hooks(record: TerminationRecord, *, ours_hold: bool) -> list[datetime]:
    """Return the time-outs of another team's hooks that end the instance. While a hook of ours holds it, a hook that
    continues on time-out ends nothing: the group waits for all hooks. A hook that abandons stops the others.
    """
    ours = ours_hold or any(cause.hook is not None and cause.hook_ours for cause in record.causes)
    foreign = (cause for cause in record.causes if cause.hook is not None and not cause.hook_ours)
    ends = (cause.deadline for cause in foreign if not ours or cause.hook_default is HookResult.ABANDON)
    return [end for end in ends if end is not None]


def _halfway(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, since: datetime, deadline: datetime | None
) -> datetime:
    """Return the moment halfway between `since` and the end of the drain's time; `since` itself if that is over."""
    end = drain_end(record, policy, started)
    end = end if deadline is None else min(end, deadline)
    return since + max(end - since, timedelta()) / 2
