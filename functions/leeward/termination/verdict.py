"""The pure decisions of node-termination: whether to ask for a replacement, whether to terminate first, how a drain
that has run out of time ends, how long to settle and to pause, when a hook wants a heartbeat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from leeward.model.group import Group, LifecycleHook
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.policy.document import DrainPolicy, Heartbeat, NodePolicy, Rebalance
from leeward.termination.ledger import debts
from leeward.termination.run import Next

ABRUPT = (CauseKind.SPOT_INTERRUPTION, CauseKind.CAPACITY_RESERVATION)  # EC2 takes the instance at the deadline
REPLACED_FIRST = (*ABRUPT, CauseKind.SCHEDULED_CHANGE)
FAR_AHEAD = timedelta(days=1)  # a scheduled change further away is paced by the budgets
DEADLINE_MARGIN = timedelta(seconds=5)  # what terminating and answering need before EC2 takes the instance
SHORTEST_PAUSE, LONGEST_PAUSE = 2, 30  # seconds
LONG_WAIT = timedelta(minutes=5)
DETACHED_AFTER = timedelta(minutes=5)  # running, and in no group for so long: somebody detached it
GIVE_UP_AFTER = timedelta(hours=49)  # an hour past the longest time a lifecycle hook can wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision and its sentence."""

    act: bool
    why: str


def wants_replacement(
    record: TerminationRecord, group: Group | None, policy: NodePolicy, lifecycle: str | None
) -> Verdict:
    """Whether we launch another instance before this one drains (docs/features.md, K12, X10).

    Not where the group itself is ending the instance (it replaces it, or means to shrink), nor for an operator's
    drain: terminated without decrement, the group replaces it.
    """
    unwanted = _why_no_replacement(record, group, lifecycle)
    if unwanted:
        return Verdict(act=False, why=unwanted)
    if record.has(*REPLACED_FIRST):
        return Verdict(act=True, why="the instance will be taken: another is asked for before the drain")
    if record.has(CauseKind.UNHEALTHY):
        return Verdict(act=True, why="the node is unhealthy: another is asked for before the drain")
    if record.has(CauseKind.REBALANCE_RECOMMENDATION):
        if group is not None and group.capacity_rebalance:
            return Verdict(act=False, why="the group has CapacityRebalance on and launches by itself")
        if policy.interruption.rebalance is Rebalance.REPLACE:
            return Verdict(act=True, why="rebalance recommendation: replace first, then drain")
    return Verdict(act=False, why="the group replaces it when it is terminated")


def _why_no_replacement(record: TerminationRecord, group: Group | None, lifecycle: str | None) -> str | None:
    if group is None or lifecycle is None:
        return "no Auto Scaling group holds the instance any more"
    if record.has(CauseKind.SURPLUS) and debts(record):
        return "the group is one too large: it shrinks by this instance"
    if record.has(CauseKind.ASG_TERMINATE) or lifecycle.startswith("Terminating"):
        return "the group itself is ending the instance"
    return None


def terminates_first(
    record: TerminationRecord, policy: NodePolicy, lifecycle: str | None, *, hook_guards: bool
) -> bool:
    """Where EC2 takes the instance soon and a terminate hook of ours guards the group, the group is told at once:
    the hook then holds the instance while it drains, and the group's answer no longer depends on our deadline. So it is
    for an upgrade whose policy wants that order (docs/features.md, V3).
    """
    wanted = record.has(*ABRUPT) or asks_first(record, policy)
    return hook_guards and wanted and lifecycle is not None and not lifecycle.startswith("Terminating")


def back_to_replacement(
    record: TerminationRecord,
    group: Group | None,
    policy: NodePolicy,
    lifecycle: str | None,
    *,
    hook_guards: bool,
) -> str | None:
    """Why a drain that is under way returns to the step that asks for a replacement, None while it does not: a cause
    that has joined calls for a launch that was not tried, or for the group to be asked before the drain.
    """
    if record.replacement is None:
        wanted = wants_replacement(record, group, policy, lifecycle)
        if wanted.act:
            return wanted.why
    first = terminates_first(record, policy, lifecycle, hook_guards=hook_guards)
    if first and "terminating" not in record.times:
        return "a cause has joined: the group is asked to terminate the instance before it drains"
    return None


def asks_first(record: TerminationRecord, policy: NodePolicy) -> bool:
    """An upgrade brings the instance to its end, with `update.terminate: first`."""
    return record.has(CauseKind.UPGRADE) and policy.update.terminate == "first"


def held_for_upgrade(record: TerminationRecord) -> bool:
    """We have told the group for an upgrade before the pods had left: our hook holds the instance, heartbeaten until
    `interruption.heartbeat.until`. It cannot be given back, and nobody but us has asked for its end.
    """
    return record.has(CauseKind.UPGRADE) and "terminating" in record.times and "drained" not in record.times


def out_of_time(record: TerminationRecord, policy: DrainPolicy, started: datetime, now: datetime) -> str | None:
    """Why the drain's time is over, None while it is not: its own time-out, or the moment the instance is taken. What
    EC2 takes is not given back before: it would get pods again, for a minute.
    """
    let_go = let_go_at(record)
    if let_go is not None and now >= let_go:
        return "the instance is being taken now"
    if let_go is not None and not policy.force:
        return None
    if now >= started + policy.timeout:
        return f"drain.timeout of {int(policy.timeout.total_seconds())} s has passed"
    return None


def node_deadline(record: TerminationRecord, policy: DrainPolicy, started: datetime) -> datetime | None:
    """When the node goes whatever happens: the earliest of the policy's terminationGracePeriod, counted from the start
    of the drain, and of the deadlines of its causes. A cause that joins can only tighten it. The time-out of a hook of
    ours is none: it is heartbeaten as long as the drain lasts.
    """
    taken = [cause.deadline for cause in record.causes if not (cause.hook and cause.hook_ours)]
    grace = policy.termination_grace_period
    return min((moment for moment in (*taken, started + grace if grace else None) if moment), default=None)


def deregistered_by(record: TerminationRecord, policy: DrainPolicy, started: datetime) -> datetime | None:
    """Until when the first eviction waits for load balancers: drain.deregistrationTimeout, and never longer than half
    of what the drain has, so that the pods have as much. None: not at all, the instance is taken too soon, or the
    policy says so.
    """
    if not policy.deregistration_timeout or record.has(*ABRUPT):
        return None
    return min(started + policy.deregistration_timeout, _halfway(record, policy, started, started))


def surged_by(record: TerminationRecord, policy: DrainPolicy, started: datetime) -> datetime:
    """Until when a pod waits for a second replica: half of what is left once evictions have begun."""
    return _halfway(record, policy, started, max(record.times.get("evicting", started), started))


def held_by(
    record: TerminationRecord, policy: DrainPolicy, span: timedelta, started: datetime, now: datetime
) -> datetime:
    """Until when an empty node is held back for what is still under way at it: `span` from its last pod's end, and not
    past a deadline.
    """
    ends = (record.times.get("drained", now) + span, let_go_at(record), node_deadline(record, policy, started))
    return min(moment for moment in ends if moment is not None)


def _halfway(record: TerminationRecord, policy: DrainPolicy, started: datetime, since: datetime) -> datetime:
    """Between `since` and the end of the drain's time."""
    deadline = node_deadline(record, policy, started)
    over = min(moment for moment in (started + policy.timeout, deadline) if moment is not None)
    return since + (over - since) / 2


def let_go_at(record: TerminationRecord) -> datetime | None:
    """When an instance that EC2 takes is let go, drained or not, so that its hooks are answered before. None: it is not
    taken. No pause and no work inside a step goes past it.
    """
    if record.deadline is None or not record.has(*ABRUPT):
        return None
    return record.deadline - DEADLINE_MARGIN


def may_wait(record: TerminationRecord, lifecycle: str | None, state: str, now: datetime) -> bool:
    """Whether pods that have been told to end get the rest of their own grace although the drain's time is over: the
    time-out is for pods that do not go, not for those that are going. Not where the instance is taken or ended without
    waiting for us.
    """
    let_go = let_go_at(record)
    if let_go is not None and now >= let_go:
        return False
    held = lifecycle in {None, "InService"} or (lifecycle or "").endswith(":Wait")
    return held and state in {"pending", "running"}


def after_time_out(
    record: TerminationRecord,
    policy: DrainPolicy,
    lifecycle: str | None,
    state: str,
    now: datetime,
    *,
    retains: bool = False,
) -> Next:
    """What an unfinished drain leads to when its time is over.

    An instance that leaves anyway (its group, EC2 or its owner is ending it) is let go, so that its hooks are
    answered; any other node goes back into service with PodEvictionFailure. Forced drains go on until empty, and so do
    those of an upgrade that had told the group first: without force no pod of an upgrade is deleted. A group that
    `retains` lets no instance end undrained: our hook holds it, and when that may not be heartbeaten any longer the
    group keeps the instance (docs/designs/which-hooks-are-ours.md).
    """
    if policy.force:
        return Next.WAIT
    let_go = let_go_at(record)
    taken = let_go is not None and now >= let_go
    held = (lifecycle or "").startswith("Terminating")
    if held and (retains or held_for_upgrade(record)) and not taken:
        return Next.WAIT
    leaving = held or state not in {"pending", "running"}
    return Next.DRAINED if taken or leaving else Next.FAILED


def comes_again(record: TerminationRecord, now: datetime) -> bool:
    """Whether an instance that was given back has to go all the same: its maintenance lies ahead, or somebody has
    deleted its Node, which cannot be undone. It is tried again later, and its record stays open until then.
    """
    ahead = record.deadline is not None and record.deadline > now and record.has(CauseKind.SCHEDULED_CHANGE)
    return ahead or record.has(CauseKind.NODE_DELETED)


def settle_seconds(record: TerminationRecord, policy: DrainPolicy, now: datetime) -> int:
    """How long the empty node stays, so that load balancers let go (docs/features.md, U11); not past a deadline."""
    drained = record.times.get("drained", now)
    left = drained + policy.settle - now
    if record.deadline is not None and record.has(*ABRUPT):
        left = min(left, record.deadline - DEADLINE_MARGIN - now)
    return max(0, ceil(left.total_seconds()))


def pause_seconds(
    *, waited: timedelta, hint: float | None = None, limits: Iterable[datetime] = (), now: datetime
) -> int:
    """How long to pause before looking again: longer the longer it has taken, shorter where something is due.

    `hint`: when the next thing is expected, in seconds; after a long wait it is trusted for twice as long a pause.
    `limits`: moments that must not be slept through.
    """
    grown = waited.total_seconds() / 4 if hint is None else hint
    known_to_last = hint is not None and waited > LONG_WAIT
    pause = min(max(grown, SHORTEST_PAUSE), 2 * LONGEST_PAUSE if known_to_last else LONGEST_PAUSE)
    for limit in limits:
        pause = min(pause, max((limit - now).total_seconds(), 1))
    return ceil(pause)


def heartbeat_interval(heartbeat: Heartbeat, hook: LifecycleHook) -> timedelta:
    """`auto`: half of the hook's own time-out, so that one lost heartbeat loses nothing."""
    return heartbeat.interval or timedelta(seconds=max(hook.heartbeat_timeout / 2, 1))


def heartbeats_due(
    hooks: Iterable[LifecycleHook], last: Mapping[str, datetime], heartbeat: Heartbeat, since: datetime, now: datetime
) -> tuple[LifecycleHook, ...]:
    """The waiting hooks of ours that want a heartbeat now; none once `until` has passed since the first cause."""
    if now >= since + heartbeat.until:
        return ()
    return tuple(hook for hook in hooks if now >= last.get(hook.name, since) + heartbeat_interval(heartbeat, hook))


def next_heartbeat(
    hooks: Iterable[LifecycleHook], last: Mapping[str, datetime], heartbeat: Heartbeat, now: datetime
) -> list[datetime]:
    """When each waiting hook of ours wants its next heartbeat."""
    return [last.get(hook.name, now) + heartbeat_interval(heartbeat, hook) for hook in hooks]


RESTS = timedelta(minutes=8)  # a node that was given back and has to go all the same, until it is tried again


def retry_after(attempt: int) -> timedelta:
    """Pause before an execution that failed is started again: 1, 2, 4 ... at most 15 minutes."""
    return timedelta(minutes=min(2 ** max(attempt - 1, 0), 15))
