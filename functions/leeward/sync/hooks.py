"""Which groups need our terminate hook put on them. Pure."""

from collections.abc import Sequence

from leeward.model import keys
from leeward.model.group import TERMINATING, Group, LifecycleHook
from leeward.policy.document import ClusterPolicies
from leeward.policy.selection import is_ours, policy_for

HEARTBEAT_TIMEOUT = 300  # seconds: the drain heartbeats at half of it; a lost event costs one sweep, not the pods


def missing_hook(
    group: Group, hooks: Sequence[LifecycleHook], policies: ClusterPolicies, queue_arns: frozenset[str]
) -> LifecycleHook | None:
    """The hook to put on the group, None when nothing is to be done.

    A group that no policy selects is left alone, one with interruption handling off as well; one whose policy names
    an existing terminate hook, or whose hook notifies our queue, has what it needs. A hook of our name that is not
    marked as ours belongs to somebody else and is not overwritten.
    """
    policy = policy_for(policies.policies, group.name, group.tags)
    if policy is None or not policy.interruption.enabled or not policies.settings.interruption:
        return None
    terminating = [hook for hook in hooks if hook.transition == TERMINATING]
    wanted = _wanted(group.name)
    if any(is_ours(hook, policy, queue_arns) and not _outdated(hook, wanted) for hook in terminating):
        return None
    taken = any(hook.name == wanted.name and hook.metadata != keys.HOOK_MARK for hook in hooks)
    return None if taken else wanted


def _wanted(group: str) -> LifecycleHook:
    return LifecycleHook(
        name=keys.TERMINATE_HOOK,
        group=group,
        transition=TERMINATING,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        metadata=keys.HOOK_MARK,
    )


def _outdated(hook: LifecycleHook, wanted: LifecycleHook) -> bool:
    return hook.name == wanted.name and hook.heartbeat_timeout != wanted.heartbeat_timeout
