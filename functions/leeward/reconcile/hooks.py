"""Hooks of ours that hold members of a cluster's groups, once a minute. Those of an open record are heartbeaten if its
execution did not. Those without an open record are adopted or answered: their event was lost, or the execution that was
to answer them has died.

Hooks of others are never touched (docs/designs/which-hooks-are-ours.md)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from leeward.errors import RetryableError
from leeward.model.group import LAUNCHING, TERMINATING, Group, GroupInstance, HookResult, LifecycleHook
from leeward.model.instance import ALIVE, Instance
from leeward.model.termination import Cause, CauseKind, Outcome, Status, TerminationRecord, execution_name
from leeward.policy.selection import is_ours
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances
from leeward.reconcile.cluster_view import ClusterView
from leeward.reconcile.records import read_records
from leeward.reconcile.result import ReconcileResult, apart
from leeward.retry import patiently
from leeward.termination.execution import start
from leeward.termination.heartbeats import AT_EVERY_CHANCE, keep_waiting
from leeward.termination.instance_state import of_ours
from leeward.termination.subject import subject_of

LAUNCH_WAIT = "Pending:Wait"
TERMINATE_WAIT = "Terminating:Wait"
AGAIN_AFTER = 2.0  # seconds
BOOTS_WITHIN = timedelta(minutes=15)  # as in termination.placement_inputs and upgrades: a later boot is not expected


def settle_hooks(view: ClusterView, running: frozenset[str], ports: Ports, found: ReconcileResult) -> None:
    """Settle hooks, the most urgent first: those whose time is known to run out, those without an open record, launches
    where interruption handling is off. `running`: names of open executions. Needs no nodes, so that no heartbeat waits
    for an API server.

    Calls are batched where possible: a whole zone may end in one minute, and each call is one that can fail.
    """
    for group, members in _in(TERMINATE_WAIT, view.groups):
        with apart(group.name, found):
            _keep_waiting(view, group, [one for one in members if one.id in view.records], running, ports, found)
    ending = {
        group.name: [one for one in members if one.id not in view.records]
        for group, members in _in(TERMINATE_WAIT, view.selected)
    }
    with apart(f"{view.cluster}: orphaned hooks", found):
        _settle_endings(ending, view, ports, found)
    for group, members in _in(LAUNCH_WAIT, view.selected):
        with apart(group.name, found):
            _answer_switched_off(view, group, members, ports, found)


def settle_launches(view: ClusterView, ports: Ports, found: ReconcileResult) -> None:
    """Complete launches whose nodes are Ready. The hooks of the other members are kept waiting for as long as a boot
    may take, and beyond that while the API server cannot say whether the node has joined. Throttled members are tried
    once more a moment later, all of a group after one pause: a short hook does not outlast two passes. An answer that
    is repeated finds nothing waiting; a heartbeat only extends.
    """
    for group, members in _in(LAUNCH_WAIT, view.selected):
        with apart(group.name, found):
            ours = () if _off(view, group) else _ours(LAUNCHING, view, group, ports)
            if ours:
                _settle_members(ours, view, group, members, ports, found)


def _settle_members(
    ours: Sequence[LifecycleHook],
    view: ClusterView,
    group: Group,
    members: Sequence[GroupInstance],
    ports: Ports,
    found: ReconcileResult,
) -> None:
    instances, again = _booting(view, members, ports.clock, ports.instances), list[GroupInstance]()
    for member in members:
        with apart(member.id, found):
            try:
                _settle_member(ours, view, group, member, instances.get(member.id), ports.clock, ports.groups, found)
            except RetryableError:
                again.append(member)
    if again:
        ports.clock.sleep(AGAIN_AFTER)
    for member in again:
        with apart(member.id, found):
            _settle_member(ours, view, group, member, instances.get(member.id), ports.clock, ports.groups, found)


def _settle_member(
    ours: Sequence[LifecycleHook],
    view: ClusterView,
    group: Group,
    member: GroupInstance,
    instance: Instance | None,
    clock: Clock,
    groups: Groups,
    found: ReconcileResult,
) -> None:
    node = view.node_of(member.id)
    if node is not None and node.ready:
        _answer(ours, group, member, groups, found)
        return
    for hook in ours:
        if _may_boot(hook, instance, view, clock.now()):
            groups.heartbeat(group=group.name, hook=hook.name, instance=member.id)


def _in(lifecycle: str, groups: Sequence[Group]) -> Iterator[tuple[Group, list[GroupInstance]]]:
    for group in groups:
        members = [member for member in group.instances if member.lifecycle == lifecycle]
        if members:
            yield group, members


def _keep_waiting(
    view: ClusterView,
    group: Group,
    members: Sequence[GroupInstance],
    running: frozenset[str],
    ports: Ports,
    found: ReconcileResult,
) -> None:
    """Heartbeat for runs under way too: a run heartbeats by itself, but its retries may delay it."""
    hooks, policy = _hooks(group, ports.clock, ports.groups) if members else (), view.policy_of(group)
    for member in members:
        record = view.records[member.id]
        ahead = timedelta() if execution_name(member.id, record.attempt) in running else AT_EVERY_CHANCE
        with apart(member.id, found):
            keep_waiting(record, group.name, of_ours(hooks, record, policy, ports), policy, ports, ahead)


def _settle_endings(
    ending: Mapping[str, Sequence[GroupInstance]], view: ClusterView, ports: Ports, found: ReconcileResult
) -> None:
    """Settle members, by group, that had no open record when the pass began: one may have been opened since."""
    names = [member.id for members in ending.values() for member in members]
    if not names:
        return
    records = read_records(names, ports.clock, ports.claims, found)
    instances = patiently(lambda: ports.instances.describe(names), ports.clock)
    for group in view.selected:
        orphans = [one for one in ending.get(group.name, ()) if one.id not in records.unreadable]
        orphans = [one for one in orphans if not _is_open(records.read.get(one.id))]
        if orphans:
            with apart(group.name, found):
                _settle_group(view, group, orphans, instances, records.read, ports, found)


def _settle_group(
    view: ClusterView,
    group: Group,
    orphans: Sequence[GroupInstance],
    instances: Mapping[str, Instance],
    records: Mapping[str, TerminationRecord],
    ports: Ports,
    found: ReconcileResult,
) -> None:
    ours = _ours(TERMINATING, view, group, ports)
    for member in orphans if ours else ():
        with apart(member.id, found):
            instance = instances.get(member.id)
            known = records.get(member.id)
            done = instance is None or _off(view, group) or _is_over(known, instance)
            record = None if instance is None or done else _adopted(instance, known, ours, view, group, ports)
            if record is not None and _is_open(record):
                start(record, ports)
                found.claimed.append(member.id)
            else:
                _answer(ours, group, member, ports.groups, found)


def _adopted(
    instance: Instance,
    known: TerminationRecord | None,
    hooks: Sequence[LifecycleHook],
    view: ClusterView,
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
    node = view.node_of(instance.id)
    subject = subject_of(instance, view.cluster, group=group.name, node=node.name if node else None)
    return ports.claims.claim(subject, _cause(hooks[0], instance.id, known.attempt if known else 0, now), now)


def _answer_switched_off(
    view: ClusterView, group: Group, members: Sequence[GroupInstance], ports: Ports, found: ReconcileResult
) -> None:
    """Complete launches at once where interruption handling is off; a drain that has begun is finished."""
    ours = _ours(LAUNCHING, view, group, ports) if _off(view, group) else []
    records = ports.claims.read_all([member.id for member in members]) if ours else {}
    for member in members if ours else ():
        with apart(member.id, found):
            if not _is_open(records.get(member.id)):
                _answer(ours, group, member, ports.groups, found)


def _booting(
    view: ClusterView, members: Sequence[GroupInstance], clock: Clock, instances: Instances
) -> Mapping[str, Instance]:
    """Describe members whose nodes are not Ready. Nothing is read while the API server does not answer."""
    names = [member.id for member in members if (node := view.node_of(member.id)) is None or not node.ready]
    return patiently(lambda: instances.describe(names), clock) if names and view.nodes is not None else {}


def _may_boot(hook: LifecycleHook, instance: Instance | None, view: ClusterView, now: datetime) -> bool:
    """Return whether one more heartbeat ends within the time that a boot may take. A hook with a longer time-out of its
    own is not heartbeaten at all: its owner has set how long a boot may take. An API server that does not answer says
    nothing about the node, and must not end it.
    """
    if view.nodes is None or instance is None:
        return True
    return now + timedelta(seconds=hook.heartbeat_timeout) < instance.launched + BOOTS_WITHIN


def _ours(transition: str, view: ClusterView, group: Group, ports: Ports) -> list[LifecycleHook]:
    policy = view.policy_of(group)
    return [
        hook
        for hook in _hooks(group, ports.clock, ports.groups)
        if hook.transition == transition and is_ours(hook, policy, ports.queue_arns)
    ]


def _hooks(group: Group, clock: Clock, groups: Groups) -> Sequence[LifecycleHook]:
    return patiently(lambda: groups.hooks(group.name), clock)


def _off(view: ClusterView, group: Group) -> bool:
    """Return whether interruption handling is off (docs/features.md, K16): hooks of ours are answered at once there."""
    settings, policy = view.policies.settings, view.policy_of(group)
    return settings.paused or not settings.interruption or policy is None or not policy.interruption.enabled


def _is_open(record: TerminationRecord | None) -> bool:
    return record is not None and record.status is Status.OPEN


def _is_over(record: TerminationRecord | None, instance: Instance) -> bool:
    """Return whether its last termination ended the instance, and it does not run again: only the answer was lost."""
    return record is not None and record.outcome is Outcome.TERMINATED and instance.state not in ALIVE


def _answer(
    hooks: Iterable[LifecycleHook], group: Group, member: GroupInstance, groups: Groups, found: ReconcileResult
) -> None:
    for hook in hooks:
        groups.complete(group=group.name, hook=hook.name, instance=member.id, result=HookResult.CONTINUE)
        found.answered.append(member.id)


def _cause(hook: LifecycleHook, instance: str, attempt: int, now: datetime) -> Cause:
    return Cause(
        id=f"orphan#{hook.group}#{hook.name}#{instance}#{attempt}",
        kind=CauseKind.ASG_TERMINATE,
        at=now,
        deadline=now + timedelta(seconds=hook.heartbeat_timeout),
        reason="found by the minute reconciler, waiting in a hook of ours",
        hook=hook.name,
        hook_ours=True,
        hook_default=hook.default,
    )
