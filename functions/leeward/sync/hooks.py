"""Selection of groups that need our terminate hook, and of those that still have it without need. Pure."""

from collections.abc import Sequence

from leeward.model import well_known
from leeward.model.group import TERMINATING, Group, HookResult, LifecycleHook
from leeward.model.lifecycle import ENDING, IN_WORK, role_of
from leeward.policy.document import ClusterPolicies, Heartbeat
from leeward.policy.hooks import is_ours


def missing_hook(
    group: Group,
    hooks: Sequence[LifecycleHook],
    policies: ClusterPolicies,
    queue_arns: frozenset[str],
    mark: str = well_known.HOOK_MARK,
) -> LifecycleHook | None:
    """Return the hook to put on the group, None if nothing is to be done.

    A group that no policy selects is left alone, and so is one with interruption handling off. A group whose policy
    names an existing terminate hook, or whose hook notifies our queue, needs no further hook. No hook is put while
    interruption handling is paused. A hook of our name without our `mark` belongs to another owner, perhaps another
    deployment, and is not overwritten.
    """
    policy = policies.policy_of(group)
    if policy is None or not policy.interruption.enabled or not policies.settings.interruption:
        return None
    if policies.pauses.everything(group.name):
        return None
    terminating = [hook for hook in hooks if hook.transition == TERMINATING]
    wanted = _wanted(group, policy.interruption.heartbeat, mark)
    if any(is_ours(hook, policy, queue_arns) and not _outdated(hook, wanted) for hook in terminating):
        return None
    taken = any(hook.name == wanted.name and hook.metadata != mark for hook in hooks)
    return None if taken else wanted


def left_over_hook(
    group: Group, hooks: Sequence[LifecycleHook], policies: ClusterPolicies, mark: str = well_known.HOOK_MARK
) -> LifecycleHook | None:
    """Return our hook on a group that no policy selects any more, None without one. No execution answers it there, so
    it would hold every instance for its time-out (docs/features.md, K5).

    It stays for as long as the group is ending an instance, or replacing its root volume: a run that has begun may be
    draining it.
    """
    ending = any(role_of(member.lifecycle) in ENDING | IN_WORK for member in group.instances)
    if ending or policies.policy_of(group) is not None:
        return None
    return next((hook for hook in hooks if hook.name == well_known.TERMINATE_HOOK and hook.metadata == mark), None)


def _wanted(group: Group, heartbeat: Heartbeat, mark: str) -> LifecycleHook:
    """Build the hook. A group that retains instances keeps one whose hook was not answered, instead of ending it with
    its pods: its owner has chosen so by its instance lifecycle policy, which only an abandoned hook triggers.
    """
    return LifecycleHook(
        name=well_known.TERMINATE_HOOK,
        group=group.name,
        transition=TERMINATING,
        heartbeat_timeout=int(heartbeat.timeout.total_seconds()),
        metadata=mark,
        default=HookResult.ABANDON if group.retains else HookResult.CONTINUE,
    )


def _outdated(hook: LifecycleHook, wanted: LifecycleHook) -> bool:
    settings = (hook.heartbeat_timeout, hook.default)
    return hook.name == wanted.name and settings != (wanted.heartbeat_timeout, wanted.default)
