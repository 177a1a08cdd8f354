"""The moments that bound one drain, from its record and its policy. Pure.

`started` is when the present attempt began to drain; a terminationGracePeriod counts from the first drain of the
record's period, so that attempts do not extend it."""

from datetime import datetime, timedelta
from math import ceil

from leeward.model.deadlines import ABRUPT, detach_deadline, taken_at
from leeward.model.group import HookResult
from leeward.model.termination import TerminationRecord
from leeward.policy.document import DrainPolicy

LONG_GRACE = timedelta(minutes=5)  # pods with a longer one are deleted on facts of minutes ago
DEADLINE_MARGIN = timedelta(seconds=5)  # what terminating and answering need before EC2 takes the instance


def release_at(record: TerminationRecord) -> datetime | None:
    """When an instance that EC2 takes is released, drained or not, so that its hooks are answered before: never earlier
    while pods are left, and no pause and no work inside a step goes past it. None: EC2 does not take it. Maintenance
    releases nothing: what EC2 leaves in service keeps its pods.
    """
    taken = taken_at(record)
    return taken - DEADLINE_MARGIN if taken is not None else None


def out_of_time(record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime) -> str | None:
    """Why the drain's time is over, None while it is not: the end of its own time, or the moment the instance is taken.
    What EC2 takes does not return to service before: it would get pods again, for a minute.
    """
    release = release_at(record)
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
    """When a drain stops waiting for pods: drain.timeout, or the later deadline that a terminationGracePeriod or a
    manual drain has set.
    """
    return max(moment for moment in (started + policy.timeout, *_chosen(record, policy, started)))


def node_deadline(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime, *, ours_hold: bool
) -> datetime | None:
    """When the node goes whatever happens: the earliest of terminationGracePeriod, the deadline of a manual drain, the
    detach deadline and the time-outs of another team's hooks that count. A cause that joins can only tighten it.

    `ours_hold`: a hook of ours holds the instance, as far as the group tells.
    """
    foreign = _foreign_hooks(record, ours_hold=ours_hold)
    moments = (*_chosen(record, policy, started), detach_deadline(record, now), *foreign)
    return min((moment for moment in moments if moment is not None), default=None)


def may_delete(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime, *, ours_hold: bool
) -> bool:
    """Whether a step that begins now may delete pods, for an instance that EC2 does not take anyway."""
    if release_at(record) is not None:
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
    """Until when the first eviction waits for load balancers: drain.deregistrationTimeout, and never longer than half
    of what the drain has, so that the pods have as much. None: not at all, the instance is taken too soon, or the
    policy says so.
    """
    if not policy.deregistration_timeout or record.has(*ABRUPT):
        return None
    half = _halfway(record, policy, started, started, node_deadline(record, policy, started, now, ours_hold=ours_hold))
    return min(started + policy.deregistration_timeout, half)


def surged_by(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime, *, ours_hold: bool
) -> datetime:
    """Until when a pod waits for a second replica: half of what is left once evictions have begun."""
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
    """Until when an empty node is held back for what is still under way at it: `span` from its last pod's end, and not
    past a deadline.
    """
    deadline = node_deadline(record, policy, started, now, ours_hold=ours_hold)
    ends = (record.times.get("drained", now) + span, release_at(record), deadline)
    return min(moment for moment in ends if moment is not None)


def settle_seconds(record: TerminationRecord, policy: DrainPolicy, now: datetime) -> int:
    """How long the empty node stays, so that load balancers let go (docs/features.md, U11); not past the detach
    deadline.
    """
    end = record.times.get("drained", now) + policy.settle
    detach = detach_deadline(record, now)
    if detach is not None:
        end = min(end, detach - DEADLINE_MARGIN)
    return max(0, ceil((end - now).total_seconds()))


def _chosen(record: TerminationRecord, policy: DrainPolicy, started: datetime) -> list[datetime]:
    """The deadlines that an owner has set: pods are deleted for them."""
    found = [record.options.deadline] if record.options and record.options.deadline else []
    if policy.termination_grace_period is not None:
        found.append(record.times.get("begun", started) + policy.termination_grace_period)
    return found


def _foreign_hooks(record: TerminationRecord, *, ours_hold: bool) -> list[datetime]:
    """Time-outs of another team's hooks that end the instance. While a hook of ours holds it, one that continues when
    it times out ends nothing: the group waits for all hooks. One that abandons stops the others.
    """
    ours = ours_hold or any(cause.hook is not None and cause.hook_ours for cause in record.causes)
    foreign = (cause for cause in record.causes if cause.hook is not None and not cause.hook_ours)
    ends = (cause.deadline for cause in foreign if not ours or cause.hook_default is HookResult.ABANDON)
    return [end for end in ends if end is not None]


def _halfway(
    record: TerminationRecord, policy: DrainPolicy, started: datetime, since: datetime, deadline: datetime | None
) -> datetime:
    """Between `since` and the end of the drain's time; `since` itself where that is over."""
    end = drain_end(record, policy, started)
    end = end if deadline is None else min(end, deadline)
    return since + max(end - since, timedelta()) / 2
