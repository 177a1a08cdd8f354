"""Selection that every reader of a cluster shares: the policy that selects a group, and the lifecycle hooks that are
Leeward's (docs/designs/cluster-state.md)."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from leeward.model import well_known
from leeward.model.group import LifecycleHook
from leeward.model.well_known import is_hook_mark
from leeward.policy.document import GroupSelector, NodePolicy


def selects(selector: GroupSelector, group: str, tags: Mapping[str, str]) -> bool:
    """Return whether the selector matches: group globs are OR'ed, tags AND'ed (an empty value matches the key alone),
    both AND'ed (docs/policy.md).
    """
    return named_by(selector, group) and all(
        key in tags and value in {"", tags[key]} for key, value in selector.tags.items()
    )


def named_by(selector: GroupSelector, group: str) -> bool:
    """Return whether its group globs match, or it has none."""
    return not selector.groups or any(group == pattern or fnmatchcase(group, pattern) for pattern in selector.groups)


def policy_for(policies: Sequence[NodePolicy], group: str, tags: Mapping[str, str]) -> NodePolicy | None:
    """Return the first policy whose selector matches; None: the group is not selected, Leeward leaves it alone."""
    return next((policy for policy in policies if selects(policy.selector, group, tags)), None)


def is_ours(hook: LifecycleHook, policy: NodePolicy | None, queue_arns: frozenset[str]) -> bool:
    """Return whether a hook is Leeward's: fn sync created it, it notifies Leeward's queue or topic directly, or the
    policy of its (selected) group names it. Any other is another team's, or EKS's: never heartbeaten, never completed.
    """
    if hook.target_arn and hook.target_arn in queue_arns:
        return True
    return policy is not None and (is_put_by_sync(hook) or hook.name in policy.interruption.hooks)


def is_put_by_sync(hook: LifecycleHook) -> bool:
    """Return whether fn sync created the hook: its name, and our mark. Where a termination is open it is ours to answer
    whatever the policies say by now: no other controller ever will.
    """
    return hook.name == well_known.TERMINATE_HOOK and is_hook_mark(hook.metadata)
