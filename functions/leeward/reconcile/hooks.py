"""Lifecycle hooks of ours that hold members of a cluster's groups, and what lasts so long that an operator is to know.

Terminate hooks of an open record are heartbeaten if its execution did not. Those without an open record are adopted or
answered: their event was lost, or the execution that was to answer them has died. A launch is completed once its node
is Ready, or at once where interruption handling is off. Hooks of others are never touched
(docs/designs/which-hooks-are-ours.md).

Nothing is done about blocked drains, hooks near their end and forgotten pauses: each is a name in the result of the
pass, and a metric; those that need an operator have an alarm (docs/runbooks.md)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from leeward.blockers.inputs import LONGEST_HOOK_WAIT, LONGEST_HOOK_WAIT_TIME_OUTS
from leeward.cluster.facets import Known, Unavailable, known_or, required
from leeward.cluster.state import ClusterState
from leeward.errors import RetryableError
from leeward.model.blocked import BlockedCause, BlockedLine
from leeward.model.group import LAUNCHING, TERMINATING, Group, GroupInstance, HookResult, LifecycleHook
from leeward.model.instance import ALIVE, Instance
from leeward.model.lifecycle import IN_WORK, is_held, is_held_at_launch, role_of
from leeward.model.pause import Pause
from leeward.model.termination import Cause, CauseKind, Outcome, Reboot, RebootBy, TerminationRecord, execution_name
from leeward.model.times import format_instant
from leeward.policy.document import Heartbeat
from leeward.policy.hooks import is_ours, is_put_by_sync
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances
from leeward.reconcile.executions import is_open, read_records
from leeward.reconcile.result import AttentionNotice, ReconcileResult
from leeward.retry import retry
from leeward.termination import heartbeats
from leeward.termination.drain_reports import BLOCKED_AFTER, moved_last
from leeward.termination.heartbeats import AT_EVERY_CHANCE, TWO_PASSES, keep_waiting
from leeward.termination.requests import read_apart, start, subject_of
from leeward.termination.situation import UNSELECTED, named_until_lately, of_ours

BLOCKED_LONG = timedelta(hours=1)  # without a pod that moved; a drain that nothing holds gives up after drain.timeout
HOOK_ENDS_WITHIN = timedelta(hours=2)  # or within a tenth of its time, if that is less
PAUSE_FORGOTTEN = timedelta(days=3)  # a pause without an end; its event is repeated each day
AGAIN_AFTER = 2.0  # seconds
BOOTS_WITHIN = timedelta(minutes=15)  # as in termination.replacing and upgrades: a later boot is not expected
REPLACED_WITHIN = timedelta(minutes=30)  # a boot, and before it the new root volume, which EC2 makes from an image
LOST_PASSES = timedelta(minutes=3)  # two passes that fail, and the one that is due: the hook outlasts them


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedGroup:
    """Group with hooks of ours, in one pass over the cluster's state."""

    group: Group
    hooks: Sequence[LifecycleHook]  # ours, of one transition
    state: ClusterState
    ports: Ports
    result: ReconcileResult

    def answer(self, member: GroupInstance) -> None:
        """Complete the hooks for a member. Repeated, it finds nothing waiting."""
        for hook in self.hooks:
            group, result = self.group.name, HookResult.CONTINUE
            self.ports.groups.complete(group=group, hook=hook.name, instance=member.id, result=result)
            self.result.answered.append(member.id)

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        """Heartbeat one of the hooks for a member."""
        self.ports.groups.heartbeat(group=self.group.name, hook=hook.name, instance=instance)


def hooked(transition: str, group: Group, state: ClusterState, ports: Ports, result: ReconcileResult) -> HookedGroup:
    """Return the group with its hooks of ours for a transition."""
    ours = our_hooks(transition, state, group, ports)
    return HookedGroup(group=group, hooks=ours, state=state, ports=ports, result=result)


def settle_hooks(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Settle terminate hooks, the most urgent first: those whose time is known to run out, then those without an open
    record. Needs no nodes, so that no heartbeat waits for an API server.

    Calls are batched where possible: a whole zone may end in one minute, and each call is one that can fail.
    """
    records = required(state.records, "the open records")
    for group, members in members_in(is_held, state.groups.values()):
        with result.isolate(group.name):
            _keep_waiting(
                state, group, [records[member.id] for member in members if member.id in records], ports, result
            )
    ending = {
        group.name: [member for member in members if member.id not in records]
        for group, members in members_in(is_held, state.groups.values())
    }
    with result.isolate(f"{state.cluster}: orphaned hooks"):
        _settle_endings(ending, state, ports, result)


def members_in(state: Callable[[str], bool], groups: Iterable[Group]) -> Iterator[tuple[Group, list[GroupInstance]]]:
    """Yield each group that has members in such a lifecycle state, with these members."""
    for group in groups:
        members = [member for member in group.instances if state(member.lifecycle)]
        if members:
            yield group, members


def our_hooks(transition: str, state: ClusterState, group: Group, ports: Ports) -> list[LifecycleHook]:
    """Return the hooks of the group for a transition that are Leeward's. On a group that no policy selects any more it
    is the one that this deployment put there: no other controller ever answers it, and fn sync leaves it for as long as
    the group ends an instance. There a launch hook that its policy named until lately is ours too: unanswered, it would
    abandon each new instance, and the group would launch without end.
    """
    policy = state.policy_of(group)
    hooks = [hook for hook in _hooks(group, ports.clock, ports.groups) if hook.transition == transition]
    ours = {
        hook.name
        for hook in hooks
        if is_ours(hook, policy, ports.queue_arns) or (is_put_by_sync(hook) and hook.metadata == ports.hook_mark)
    }
    if policy is None and transition == LAUNCHING and any(hook.name not in ours for hook in hooks):
        ours |= named_until_lately(hooks, state.cluster, ports.catalog)
    return [hook for hook in hooks if hook.name in ours]


def handling_is_off(state: ClusterState, group: Group) -> bool:
    """Return whether interruption handling is off: hooks of ours are answered at once there."""
    return state.interruption_policy_of(group) is None


def _hooks(group: Group, clock: Clock, groups: Groups) -> Sequence[LifecycleHook]:
    return retry(lambda: groups.hooks(group.name), clock)


def _keep_waiting(
    state: ClusterState, group: Group, records: Sequence[TerminationRecord], ports: Ports, result: ReconcileResult
) -> None:
    """Heartbeat for runs under way too: a run heartbeats by itself, but its retries may delay it, and its step may hang
    while this pass or the next one fails. A hook of four minutes or more needs no more heartbeats for that.
    """
    hooks, policy = _hooks(group, ports.clock, ports.groups) if records else (), state.policy_of(group)
    running = known_or(state.executions, frozenset())
    for record in records:
        ahead = timedelta() if execution_name(record.instance, record.attempt) in running else AT_EVERY_CHANCE
        with result.isolate(record.instance):
            ours, heartbeat = of_ours(hooks, record, policy, ports), (policy or UNSELECTED).interruption.heartbeat
            note_hook_ends(ours, record, heartbeat, ports.clock.now(), result)
            keep_waiting(record, ours, policy, ports, ahead, TWO_PASSES)


def _settle_endings(
    ending: Mapping[str, Sequence[GroupInstance]], state: ClusterState, ports: Ports, result: ReconcileResult
) -> None:
    """Settle members, by group, that had no open record when the pass began: one may have been opened since. Where only
    a newer version can read the record, during an update, the hooks are heartbeaten until it does.
    """
    names = [member.id for members in ending.values() for member in members]
    if not names:
        return
    records = read_records(names, ports.clock, ports.claims, result)
    instances = retry(lambda: ports.instances.describe(names), ports.clock)
    for group in state.groups.values():
        orphans = [member for member in ending.get(group.name, ()) if member.id not in records.unreadable]
        orphans = [member for member in orphans if not is_open(records.read.get(member.id))]
        newer = [member for member in ending.get(group.name, ()) if member.id in records.newer]
        if orphans or newer:
            with result.isolate(group.name):
                held = hooked(TERMINATING, group, state, ports, result)
                _settle_group(held, orphans, instances, records.read)
                for hook in held.hooks:
                    for member in newer:
                        held.heartbeat(hook, member.id)


def _settle_group(
    held: HookedGroup,
    orphans: Sequence[GroupInstance],
    instances: Mapping[str, Instance],
    records: Mapping[str, TerminationRecord],
) -> None:
    for member in orphans if held.hooks else ():
        with held.result.isolate(member.id):
            instance = instances.get(member.id)
            known = records.get(member.id)
            done = instance is None or handling_is_off(held.state, held.group) or _is_over(known, instance)
            record = None if instance is None or done else _adopted(held, member, instance, known)
            if record is not None and is_open(record):
                start(record, held.ports)
                held.result.claimed.append(member.id)
            else:
                held.answer(member)


def _adopted(
    held: HookedGroup, member: GroupInstance, instance: Instance, known: TerminationRecord | None
) -> TerminationRecord:
    """Claim an instance whose event was lost. The record is closed if another pass has finished its termination in
    between. The cause is named by the attempt before, because an instance that returns from its warm pool waits in the
    same hook again. The time that the hook has waited is unknown: it is heartbeaten first, so that its time runs from
    now on, as the claim says.
    """
    for hook in held.hooks:
        held.heartbeat(hook, instance.id)
    now, node = held.ports.clock.now(), held.state.node_of(instance.id)
    subject = subject_of(instance, held.state.cluster, group=held.group.name, node=node.name if node else None)
    cause = _cause(held.hooks[0], member, known.attempt if known else 0, now)
    return held.ports.claims.claim(subject, cause, now)


def _is_over(record: TerminationRecord | None, instance: Instance) -> bool:
    """Return whether its last termination ended the instance, and it does not run again: only the answer was lost."""
    return record is not None and record.outcome is Outcome.TERMINATED and instance.state not in ALIVE


def _cause(hook: LifecycleHook, member: GroupInstance, attempt: int, now: datetime) -> Cause:
    """Build the cause of the message that was lost. An instance that its group keeps is drained and stays."""
    kept = role_of(member.lifecycle) in IN_WORK
    return Cause(
        id=f"orphan#{hook.group}#{hook.name}#{member.id}#{attempt}",
        kind=CauseKind.REPLACE_ROOT_VOLUME if kept else CauseKind.ASG_TERMINATE,
        at=now,
        deadline=now + timedelta(seconds=hook.heartbeat_timeout),
        reason="found by the minute reconciler, waiting in a hook of ours",
        hook=hook.name,
        hook_ours=True,
        hook_default=hook.default,
        reboot=Reboot(by=RebootBy.GROUP) if kept else None,
    )


def settle_launches(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Complete launches whose nodes are Ready, and all of a cluster that EKS has deleted: its nodes cannot be read, and
    nothing is ended for it. The hooks of the other members are kept waiting for as long as a boot
    may take, and beyond that while the API server cannot say whether the node has joined. Throttled members are tried
    once more a moment later, all of a group after one pause: a short hook does not outlast two passes. An answer that
    is repeated finds nothing waiting; a heartbeat only extends.
    """
    for group, members in members_in(is_held_at_launch, state.selected):
        with result.isolate(group.name):
            held = None if handling_is_off(state, group) else hooked(LAUNCHING, group, state, ports, result)
            if held is not None and held.hooks:
                _settle_members(held, members)


def answer_switched_off_launches(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Complete launches at once where interruption handling is off or no policy selects the group any more; a drain
    that has begun is finished.
    """
    for group, members in members_in(is_held_at_launch, state.groups.values()):
        with result.isolate(group.name):
            held = hooked(LAUNCHING, group, state, ports, result) if handling_is_off(state, group) else None
            if held is None or not held.hooks:
                continue
            records = read_apart((member.id for member in members), ports.claims)
            for member in members:
                with result.isolate(member.id):
                    if member.id in records.unreadable:
                        continue  # a drain may have begun
                    record = records.read.get(member.id)
                    if not is_open(record) or _since(record) is not None:
                        held.answer(member)


def _settle_members(held: HookedGroup, members: Sequence[GroupInstance]) -> None:
    clock = held.ports.clock
    instances, again = _booting(held.state, members, clock, held.ports.instances), list[GroupInstance]()
    for member in members:
        with held.result.isolate(member.id):
            try:
                _settle_member(held, member, instances.get(member.id))
            except RetryableError:
                again.append(member)
    if again:
        clock.sleep(AGAIN_AFTER)
    for member in again:
        with held.result.isolate(member.id):
            _settle_member(held, member, instances.get(member.id))


def _settle_member(held: HookedGroup, member: GroupInstance, instance: Instance | None) -> None:
    node, nodes = held.state.node_of(member.id), held.state.node_list
    if (node is not None and node.ready) or (isinstance(nodes, Unavailable) and nodes.gone):
        held.answer(member)
        return
    for hook in held.hooks:
        if _may_boot(hook, instance, held.state, held.ports.clock.now()):
            held.heartbeat(hook, member.id)


def _booting(
    state: ClusterState, members: Sequence[GroupInstance], clock: Clock, instances: Instances
) -> Mapping[str, Instance]:
    """Describe members whose nodes are not Ready. Nothing is read while the API server does not answer."""
    if not isinstance(state.node_list, Known):
        return {}
    names = [member.id for member in members if (node := state.node_of(member.id)) is None or not node.ready]
    return retry(lambda: instances.describe(names), clock) if names else {}


def _may_boot(hook: LifecycleHook, instance: Instance | None, state: ClusterState, now: datetime) -> bool:
    """Return whether the hook may run out within the time that a boot may take, should the next two passes fail. A hook
    with a longer time-out of its own is not heartbeaten at all: its owner has set how long a boot may take. An API
    server that does not answer says nothing about the node, and must not end it.
    """
    if not isinstance(state.node_list, Known) or instance is None:
        return True
    waits = timedelta(seconds=hook.heartbeat_timeout)
    replaced = _since(known_or(state.records, {}).get(instance.id))
    boots_by = instance.launched + BOOTS_WITHIN if replaced is None else replaced + REPLACED_WITHIN
    return waits < BOOTS_WITHIN and now + waits < boots_by + LOST_PASSES


def _since(record: TerminationRecord | None) -> datetime | None:
    """Return when its group began to replace the root volume of an instance that is drained for that: when its hook was
    answered. None for any other instance: a launch is its first boot.
    """
    wanted = record.reboot if record is not None and is_open(record) else None
    return record.times.get("answered") if record and wanted and wanted.by is RebootBy.GROUP else None


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
            notice = AttentionNotice(cluster=state.cluster, group=pause.group, what=_described(pause))
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


def notice_of(record: TerminationRecord, causes: tuple[BlockedCause, ...] = ()) -> AttentionNotice:
    """Return the notice with the node, its instance and its group, as far as they are known."""
    subject = record.subject
    name = f"{subject.node} ({record.instance})" if subject.node else record.instance
    what = f"{name}, group {subject.group}" if subject.group else name
    return AttentionNotice(cluster=subject.cluster, group=subject.group or "", what=what, causes=causes)


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
