"""Terminate hooks of ours that hold members of a cluster's groups. Those of an open record are heartbeaten if its
execution did not. Those without an open record are adopted or answered: their event was lost, or the execution that was
to answer them has died.

Hooks of others are never touched (docs/designs/which-hooks-are-ours.md)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from leeward.cluster.facets import known_or, required
from leeward.cluster.state import ClusterState
from leeward.model.group import TERMINATING, Group, GroupInstance, HookResult, LifecycleHook
from leeward.model.instance import ALIVE, Instance
from leeward.model.lifecycle import IN_WORK, is_held, role_of
from leeward.model.termination import Cause, CauseKind, Outcome, Reboot, RebootBy, TerminationRecord, execution_name
from leeward.policy.selection import is_ours, is_put_by_sync
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.reconcile.attention import note_hook_ends
from leeward.reconcile.records import is_open, read_records
from leeward.reconcile.result import ReconcileResult
from leeward.retry import retry
from leeward.termination.heartbeats import AT_EVERY_CHANCE, TWO_PASSES, keep_waiting
from leeward.termination.requests import start, subject_of
from leeward.termination.situation import UNSELECTED, of_ours


def settle_hooks(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Settle terminate hooks, the most urgent first: those whose time is known to run out, then those without an open
    record. Needs no nodes, so that no heartbeat waits for an API server.

    Calls are batched where possible: a whole zone may end in one minute, and each call is one that can fail.
    """
    records = required(state.records, "the open records")
    for group, members in members_in(is_held, state.groups.values()):
        with result.isolate(group.name):
            _keep_waiting(state, group, [records[one.id] for one in members if one.id in records], ports, result)
    ending = {
        group.name: [one for one in members if one.id not in records]
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
    the group ends an instance.
    """
    policy = state.policy_of(group)
    return [
        hook
        for hook in _hooks(group, ports.clock, ports.groups)
        if hook.transition == transition
        and (is_ours(hook, policy, ports.queue_arns) or (is_put_by_sync(hook) and hook.metadata == ports.hook_mark))
    ]


def handling_is_off(state: ClusterState, group: Group) -> bool:
    """Return whether interruption handling is off: hooks of ours are answered at once there."""
    return state.interruption_policy_of(group) is None


def answer(
    hooks: Iterable[LifecycleHook], group: Group, member: GroupInstance, groups: Groups, result: ReconcileResult
) -> None:
    """Complete the hooks for a member. Repeated, it finds nothing waiting."""
    for hook in hooks:
        groups.complete(group=group.name, hook=hook.name, instance=member.id, result=HookResult.CONTINUE)
        result.answered.append(member.id)


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
        orphans = [one for one in ending.get(group.name, ()) if one.id not in records.unreadable]
        orphans = [one for one in orphans if not is_open(records.read.get(one.id))]
        newer = [one for one in ending.get(group.name, ()) if one.id in records.newer]
        if orphans or newer:
            with result.isolate(group.name):
                _settle_group(state, group, orphans, instances, records.read, ports, result)
                for hook in our_hooks(TERMINATING, state, group, ports) if newer else ():
                    for member in newer:
                        ports.groups.heartbeat(group=group.name, hook=hook.name, instance=member.id)


def _settle_group(
    state: ClusterState,
    group: Group,
    orphans: Sequence[GroupInstance],
    instances: Mapping[str, Instance],
    records: Mapping[str, TerminationRecord],
    ports: Ports,
    result: ReconcileResult,
) -> None:
    ours = our_hooks(TERMINATING, state, group, ports)
    for member in orphans if ours else ():
        with result.isolate(member.id):
            instance = instances.get(member.id)
            known = records.get(member.id)
            done = instance is None or handling_is_off(state, group) or _is_over(known, instance)
            record = None if instance is None or done else _adopted(instance, member, known, ours, state, group, ports)
            if record is not None and is_open(record):
                start(record, ports)
                result.claimed.append(member.id)
            else:
                answer(ours, group, member, ports.groups, result)


def _adopted(
    instance: Instance,
    member: GroupInstance,
    known: TerminationRecord | None,
    hooks: Sequence[LifecycleHook],
    state: ClusterState,
    group: Group,
    ports: Ports,
) -> TerminationRecord:
    """Claim an instance whose event was lost. The record is closed if another pass has finished its termination in
    between. The cause is named by the attempt before, because an instance that returns from its warm pool waits in the
    same hook again. The time that the hook has waited is unknown: it is heartbeaten first, so that its time runs from
    now on, as the claim says.
    """
    for hook in hooks:
        ports.groups.heartbeat(group=group.name, hook=hook.name, instance=instance.id)
    now = ports.clock.now()
    node = state.node_of(instance.id)
    subject = subject_of(instance, state.cluster, group=group.name, node=node.name if node else None)
    return ports.claims.claim(subject, _cause(hooks[0], member, known.attempt if known else 0, now), now)


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
