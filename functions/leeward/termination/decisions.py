"""Pure decisions of node-termination: whether to ask for a replacement, whether to terminate first, how a drain that
has run out of time ends, how long to pause, when a hook needs a heartbeat. The moments that bound a drain are in
`deadlines.py`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil

from leeward.model.capacity import SurgeOwner
from leeward.model.counts import count_of
from leeward.model.group import GroupFacts
from leeward.model.instance import ALIVE
from leeward.model.lifecycle import ENDING, IN_SERVICE, IN_WORK, PRESENT, role_of
from leeward.model.node import Node
from leeward.model.termination import (
    ABRUPT,
    VOLUNTARY,
    CauseKind,
    RebootBy,
    TerminationRecord,
    is_abrupt,
    maintenance,
    taken_at,
)
from leeward.policy.document import NodePolicy, Rebalance
from leeward.termination import deadlines
from leeward.termination.capacity_ledger import to_offset
from leeward.termination.run import Next
from leeward.termination.situation import Situation

REPLACED_FIRST = (*ABRUPT, CauseKind.SCHEDULED_CHANGE)
LAUNCHED_BEFORE_DRAIN = (
    (REPLACED_FIRST, "the instance will be taken: another is asked for before the drain"),
    ((CauseKind.UNHEALTHY,), "the node is unhealthy: another is asked for before the drain"),
    ((CauseKind.EVACUATION,), "its zone is evacuated: another is launched elsewhere before the drain"),
)
ENDS_OUTSIDE = (  # causes that do not need the group to end the instance, or that a person has requested
    *REPLACED_FIRST,
    CauseKind.CAPACITY_BLOCK,
    CauseKind.STATE_CHANGE,
    CauseKind.ASG_TERMINATE,
    CauseKind.MANUAL,
    CauseKind.NODE_DELETED,
)
CANCELLED = "AWS has taken back the maintenance, and nothing else requests the termination"
CALLED_OFF = "leeward drain --cancel has taken the drain back, and nothing else requests the termination"
FAR_AHEAD = timedelta(days=1)  # a scheduled change further away is deferred by the budgets
SHORTEST_PAUSE = 2  # seconds
JOIN_PAUSE = 10  # seconds between two reads for the Node of an instance that EC2 takes within minutes
LONG_PAUSE = 30  # seconds; the longest pause within minutes
LONGEST_PAUSE = 600  # the longest pause within hours: two days of a held hook are some thousand history events
LAUNCHED_AHEAD = timedelta(seconds=60)  # until a node is Ready; in a storm few members could pay for a later launch
LONG_WAIT = timedelta(minutes=5)
GROWTH = 20  # after a long wait a pause is 1/20 of the time waited
DETACHED_AFTER = timedelta(minutes=5)  # running, and in no group for so long: a person detached it
GIVE_UP_AFTER = timedelta(hours=49)  # an hour past the longest time a lifecycle hook can wait
SMALLEST_STORM = 20  # instances in about a minute: fewer stay within the limits of AWS, and launch their replacements


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Decision and its sentence."""

    act: bool
    why: str


def wants_replacement(situation: Situation, now: datetime) -> Verdict:
    """Return whether Leeward launches another instance before this one drains (docs/features.md, K12, X10).

    It launches none if the group itself is ending the instance (the group replaces it, or shrinks on purpose), nor for
    an operator's drain: terminated without decrement, the group replaces it.
    """
    record, group = situation.record, situation.group
    kept = "the instance is kept" if record.reboot is not None else None
    if unwanted := kept or _why_no_replacement(record, group, situation.lifecycle, now):
        return Verdict(act=False, why=unwanted)
    ahead = next((why for kinds, why in LAUNCHED_BEFORE_DRAIN if record.has(*kinds)), "")
    if ahead:
        return Verdict(act=True, why=ahead)
    if record.has(CauseKind.REBALANCE_RECOMMENDATION):
        if group is not None and group.capacity_rebalance:
            return Verdict(act=False, why="the group has CapacityRebalance on and launches by itself")
        if situation.policy.interruption.rebalance is Rebalance.REPLACE:
            return Verdict(act=True, why="rebalance recommendation: replace first, then drain")
    return Verdict(act=False, why="the group replaces it when it is terminated")


def _why_no_replacement(
    record: TerminationRecord, group: GroupFacts | None, lifecycle: str | None, now: datetime
) -> str | None:
    if group is None or lifecycle is None:
        return "no Auto Scaling group holds the instance any more"
    if record.has(CauseKind.SURPLUS) and to_offset(record):
        return "the group is one too large: it shrinks by this instance"
    if record.has(CauseKind.ASG_TERMINATE) or role_of(lifecycle) in ENDING:
        return "the group itself is ending the instance"
    if in_storm(record):
        return f"EC2 takes {count_of(taken_together(record), 'instance')} at once: the group replaces them"
    return _why_by_the_group(record, group, now)


def _why_by_the_group(record: TerminationRecord, group: GroupFacts, now: datetime) -> str | None:
    if group.capacity_units:  # one launch and one decrement would not balance
        return f"{group.capacity_units}: the group replaces it"
    taken = taken_at(record, now)
    if taken is not None and now > taken - LAUNCHED_AHEAD:
        return "EC2 takes the instance before another would be Ready: the group replaces it"
    return "its Capacity Block ends, and another in it would as well" if record.has(CauseKind.CAPACITY_BLOCK) else None


def in_storm(record: TerminationRecord) -> bool:
    """Return whether EC2 takes so many instances at once, as fn interruption counted when it claimed this one."""
    return taken_together(record) >= SMALLEST_STORM


def taken_together(record: TerminationRecord) -> int:
    """Return how many instances EC2 takes within about a minute, by the largest of the counts that its causes carry."""
    return max((cause.together for cause in record.causes if cause.kind in ABRUPT), default=0)


def is_voluntary(record: TerminationRecord) -> bool:
    """Return whether nothing but a disruption run requests the termination: by its method, and for a decrement."""
    own = (cause.surge is not None and cause.surge.owner is SurgeOwner.DISRUPTION for cause in record.causes)
    return record.has(*VOLUNTARY) and all(
        of_run or cause.kind in VOLUNTARY for cause, of_run in zip(record.causes, own, strict=True)
    )


def has_begun(record: TerminationRecord, lifecycle: str | None) -> bool:
    """Return whether the drain has moved a pod, or its group ends the instance already: from then on it is finished."""
    return "moved" in record.times or bool(record.pods_evicted) or role_of(lifecycle) in ENDING


def only_evacuated(record: TerminationRecord) -> bool:
    """Return whether nothing but the evacuation of its zone requires the termination: it waits for its replacement, and
    without one the node stays.
    """
    return bool(record.causes) and all(cause.kind is CauseKind.EVACUATION for cause in record.causes)


def terminates_first(situation: Situation, now: datetime) -> bool:
    """Return whether the group is asked to terminate before the drain. It is if EC2 takes the instance soon and a
    terminate hook of ours guards the group: the hook then holds the instance while it drains, and the group's answer no
    longer depends on our deadline. The same holds for an upgrade whose policy selects that order (docs/features.md,
    V3).
    """
    record, lifecycle = situation.record, situation.lifecycle
    wanted = (is_abrupt(record, now) and not in_storm(record)) or asks_first(record, situation.policy)
    guarded = bool(situation.our_hooks)
    return guarded and wanted and lifecycle is not None and role_of(lifecycle) not in ENDING | IN_WORK


def back_to_replacement(situation: Situation, now: datetime) -> str | None:
    """Return why a drain under way returns to the step that asks for a replacement, or None while it does not: a cause
    that has joined calls for a launch that was not tried, or for the group to be asked before the drain. None also
    where AWS has refused that: the pods leave first.
    """
    record = situation.record
    if "refused" in record.times:
        return None
    if record.replacement is None:
        wanted = wants_replacement(situation, now)
        if wanted.act:
            return wanted.why
    if terminates_first(situation, now) and "terminating" not in record.times:
        return "a cause has joined: the group is asked to terminate the instance before it drains"
    return None


def asks_first(record: TerminationRecord, policy: NodePolicy) -> bool:
    """Return whether an upgrade terminates the instance with `update.terminate: first`."""
    return record.has(CauseKind.UPGRADE) and policy.update.terminate == "first"


def held_for_upgrade(record: TerminationRecord) -> bool:
    """Return whether Leeward asked the group for the termination, for an upgrade, before the pods had left. Our hook
    holds the instance, heartbeaten until `interruption.heartbeat.until`. It cannot return to service, and only Leeward
    has requested its termination.
    """
    return record.has(CauseKind.UPGRADE) and "terminating" in record.times and "drained" not in record.times


def may_wait(situation: Situation, now: datetime) -> bool:
    """Return whether pods with a requested termination get the rest of their own grace although the drain's time is
    over: the time-out is for pods that do not leave, not for pods that are terminating. False if the instance is taken
    or ended without waiting for Leeward.
    """
    release = deadlines.release_at(situation.record, now)
    if release is not None and now >= release:
        return False
    return (situation.lifecycle in {None, IN_SERVICE} or situation.held) and situation.state in ALIVE


def waits_for_no_kubelet(record: TerminationRecord, node: Node, policy: NodePolicy, now: datetime) -> bool:
    """Return whether the drain's time bounds the wait for terminating pods as well: nothing runs down their grace on a
    node that has been NotReady for `repair.notReadyAfter`. Only where that is why it ends, or with `drain.force`.
    """
    if node.ready or now - (node.not_ready_since or node.created) < policy.repair.not_ready_after:
        return False
    return policy.drain.force or all(cause.kind is CauseKind.UNHEALTHY for cause in record.causes)


def after_time_out(situation: Situation, now: datetime, *, deletes: bool) -> Next:
    """Return the next step of an unfinished drain whose time is over.

    An instance that leaves anyway (its group, EC2 or its owner is ending it), or that its group reboots with another
    root volume, is released, so that its hooks are answered. Any other node returns to service with PodEvictionFailure.
    A forced drain goes on as long as it `deletes`: a pod that the policy keeps (localData, unmanagedPods) does not
    leave by force either. Drains of an upgrade that asked the group first go on as well: without force no pod of an
    upgrade is deleted. A group that retains instances ends none undrained: our hook holds it, and when the hook may not
    be heartbeaten any longer the group keeps the instance (docs/designs/which-hooks-are-ours.md).
    """
    if deletes:
        return Next.WAIT
    release = deadlines.release_at(situation.record, now)
    taken = release is not None and now >= release
    held = role_of(situation.lifecycle) in ENDING
    retains = situation.group is not None and situation.group.retains
    if held and (retains or held_for_upgrade(situation.record)) and not taken:
        return Next.WAIT
    leaving = held or situation.in_work or situation.state not in ALIVE
    return Next.DRAINED if taken or leaving else Next.FAILED


def left_its_group(situation: Situation, now: datetime) -> bool:
    """Return whether the instance was detached and nothing else ends it. A drain would then move its pods, or delete
    them at a deadline, for an instance that stays.
    """
    return is_detached(situation, now) and not situation.record.has(*ENDS_OUTSIDE)


def is_back(situation: Situation) -> bool:
    """Return whether only the replacement of its root volume asked for the drain, and its group has gone on: a node
    that is in service again, or about to be, is not drained any more.
    """
    wanted = situation.record.reboot
    return wanted is not None and wanted.by is RebootBy.GROUP and role_of(situation.lifecycle) in PRESENT


def is_detached(situation: Situation, now: datetime) -> bool:
    """Return whether a person has detached the instance, according to both Auto Scaling and EC2's tag, and EC2 does not
    take it.
    """
    record, instance = situation.record, situation.instance
    listed = situation.lifecycle is not None or (instance is not None and bool(instance.group))
    detached = record.subject.group is not None and instance is not None and not listed
    return detached and deadlines.release_at(record, now) is None


def without_deletions(policy: NodePolicy) -> NodePolicy:
    """Return the policy for a detached instance that is drained on request: no termination follows, so neither `force`
    nor `terminationGracePeriod` deletes a pod past its budgets. The `--deadline` of a manual drain still does.
    """
    return replace(policy, drain=replace(policy.drain, force=False, termination_grace_period=None))


def may_join_late(record: TerminationRecord, state: str) -> bool:
    """Return whether a Node may still join for an instance that runs on while its end is awaited: no drain has found a
    Node that it could empty. Pods would start there and end with the instance without an eviction.
    """
    return "drained" not in record.times and state in ALIVE


def is_cancelled(record: TerminationRecord) -> bool:
    """Return whether no cause requests the termination any more: AWS or an operator has taken back what did. Once the
    group was asked to terminate the instance there is no way back.
    """
    return not record.causes and "terminating" not in record.times


def why_cancelled(record: TerminationRecord) -> str:
    """Return who has taken back the termination, by the last of the causes that were."""
    withdrawn = [cause for cause in record.earlier_causes if cause.withdrawn]
    last = max(withdrawn, key=lambda cause: cause.at, default=None)
    return CALLED_OFF if last is not None and last.kind is CauseKind.MANUAL else CANCELLED


def comes_again(record: TerminationRecord, now: datetime) -> bool:
    """Return whether an instance whose pods did not leave in time still has to terminate: maintenance lies ahead, of
    whatever event, its Node was deleted, which cannot be undone, or it is broken. The termination is retried later, and
    the record stays open until then.
    """
    return bool(maintenance(record, now)) or record.has(CauseKind.NODE_DELETED) or is_broken(record)


def is_broken(record: TerminationRecord) -> bool:
    """Return whether the node is to be replaced because it is unhealthy: the scheduler must not use it any more, and
    its replacement serves already. A node that is to be rebooted is not.
    """
    return any(cause.kind is CauseKind.UNHEALTHY and cause.reboot is None for cause in record.causes)


def pause_seconds(
    *, waited: timedelta, hint: float | None = None, limits: Iterable[datetime] = (), now: datetime
) -> int:
    """Return how long, in seconds, to pause before the next read: longer the longer it has taken, shorter if something
    is due. A cause that joins wakes the run whatever its pause.

    `hint`: seconds until the next expected change; after a long wait it is trusted for a pause twice as long. `limits`:
    moments that the pause must not exceed.
    """
    grown = waited.total_seconds() / 4 if hint is None else hint
    known_to_last = hint is not None and waited > LONG_WAIT
    grown_to = min(waited.total_seconds() / GROWTH, LONGEST_PAUSE)
    longest = max(2 * LONG_PAUSE if known_to_last else LONG_PAUSE, grown_to)
    pause = min(max(grown, SHORTEST_PAUSE), longest)
    for limit in limits:
        pause = min(pause, max((limit - now).total_seconds(), 1))
    return ceil(pause)


RESTS = timedelta(minutes=8)  # from the return to service until the retry, for a node that still has to terminate


def retry_after(attempt: int) -> timedelta:
    """Return the pause before an execution that failed is started again: 1, 2, 4 ... at most 15 minutes."""
    return timedelta(minutes=min(2 ** max(attempt - 1, 0), 15))
