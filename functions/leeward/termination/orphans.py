"""Hooks of ours that nobody holds: their event was lost, or what was to answer them has died.

Hooks of others are never looked at (docs/designs/which-hooks-are-ours.md)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from leeward.model.group import LAUNCHING, TERMINATING, Group, GroupInstance, HookResult, LifecycleHook
from leeward.model.termination import Cause, CauseKind, Status
from leeward.policy.selection import is_ours
from leeward.ports import Ports
from leeward.termination.found import Found
from leeward.termination.sight import Sight
from leeward.termination.starting import start
from leeward.termination.subject import subject_of

LAUNCH_WAIT = "Pending:Wait"
TERMINATE_WAIT = "Terminating:Wait"


def settle_hooks(sight: Sight, group: Group, member: GroupInstance, ports: Ports, found: Found) -> None:
    """Answer, keep waiting or adopt what holds one member of a selected group."""
    policy = sight.policy_of(group)
    ours = [hook for hook in ports.groups.hooks(group.name) if is_ours(hook, policy, ports.queue_arns)]
    if _off(sight, group):
        transition = LAUNCHING if member.lifecycle == LAUNCH_WAIT else TERMINATING
        record = ports.claims.read(member.id)
        if record is None or record.status is not Status.OPEN:  # a drain that has begun is brought to its end
            _answer([hook for hook in ours if hook.transition == transition], group, member, ports, found)
        return
    if member.lifecycle == LAUNCH_WAIT:
        settle_launch(sight, [hook for hook in ours if hook.transition == LAUNCHING], group, member, ports, found)
    if member.lifecycle == TERMINATE_WAIT:
        adopt(sight, [hook for hook in ours if hook.transition == TERMINATING], group, member, ports, found)


def settle_launch(
    sight: Sight, hooks: Sequence[LifecycleHook], group: Group, member: GroupInstance, ports: Ports, found: Found
) -> None:
    """A launch hook is answered once the node is Ready, and kept waiting until then."""
    node = sight.node_of(member.id)
    for hook in hooks:
        if node is not None and node.ready:
            ports.groups.complete(group=group.name, hook=hook.name, instance=member.id, result=HookResult.CONTINUE)
            found.answered.append(member.id)
        else:
            ports.groups.heartbeat(group=group.name, hook=hook.name, instance=member.id)


def adopt(
    sight: Sight, hooks: Sequence[LifecycleHook], group: Group, member: GroupInstance, ports: Ports, found: Found
) -> None:
    """An instance held by a hook of ours without an open record: its event was lost. Claim and start, or answer where
    its termination was already brought to an end. Nobody knows how long the hook has waited: it is heartbeaten first,
    so that its time runs from now on, as the claim says.
    """
    record = ports.claims.read(member.id)
    if not hooks or (record is not None and record.status is Status.OPEN):
        return
    instance = ports.instances.describe([member.id]).get(member.id)
    if instance is not None:
        for hook in hooks:
            ports.groups.heartbeat(group=group.name, hook=hook.name, instance=member.id)
        now = ports.clock.now()
        subject = subject_of(instance, sight.cluster, group=group.name, node=sight.node_of(member.id))
        record = ports.claims.claim(subject, _cause(hooks[0], member.id, now), now)
    if record is not None and record.status is Status.OPEN:
        start(record, ports)
        found.claimed.append(member.id)
        return
    _answer(hooks, group, member, ports, found)


def _off(sight: Sight, group: Group) -> bool:
    """Interruption handling is off (docs/features.md, K16): hooks of ours are answered at once there."""
    settings, policy = sight.policies.settings, sight.policy_of(group)
    return settings.paused or not settings.interruption or policy is None or not policy.interruption.enabled


def _answer(hooks: Sequence[LifecycleHook], group: Group, member: GroupInstance, ports: Ports, found: Found) -> None:
    for hook in hooks:
        ports.groups.complete(group=group.name, hook=hook.name, instance=member.id, result=HookResult.CONTINUE)
        found.answered.append(member.id)


def _cause(hook: LifecycleHook, instance: str, now: datetime) -> Cause:
    return Cause(
        id=f"orphan#{hook.group}#{hook.name}#{instance}",
        kind=CauseKind.ASG_TERMINATE,
        at=now,
        deadline=now + timedelta(seconds=hook.heartbeat_timeout),
        reason="found by the sweeper waiting in a hook of ours",
        hook=hook.name,
        hook_ours=True,
    )
