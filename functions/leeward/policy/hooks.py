"""Lifecycle hooks that are Leeward's (docs/designs/which-hooks-are-ours.md)."""

from leeward.model import well_known
from leeward.model.group import LifecycleHook
from leeward.model.well_known import is_hook_mark
from leeward.policy.document import NodePolicy


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
