"""Our terminate hook on each selected group, as fn sync puts it there: the same rule decides here what is missing."""

from collections.abc import Iterator

from leeward.doctor.checks.chosen import selected, tagged
from leeward.doctor.facts import Facts, Inside, Refused, Unread
from leeward.doctor.finding import About, Check, Finding
from leeward.model import keys
from leeward.model.group import TERMINATING, Group, LifecycleHook
from leeward.policy.document import NodePolicy
from leeward.policy.selection import is_ours
from leeward.sync.hooks import HEARTBEAT_TIMEOUT, left_over_hook, missing_hook

_NOW = "aws lambda invoke --function-name leeward-sync /dev/stdout"
_PUT = f"fn sync puts it there within five minutes; if it does not, {_NOW} says why"


def hooks(facts: Facts, inside: Inside) -> Iterator[Finding]:
    """Our terminate hook is there as fn sync puts it: without it a scale-in ends nodes undrained."""
    chosen = {group.name for group, _ in selected(facts, inside)}
    for group, policy in selected(facts, inside):
        about = About(Check.HOOK, f"group {group.name}")
        found = inside.hooks.get(group.name, ())
        yield about.unknown(found) if isinstance(found, Unread) else _hook(about, inside, group, policy, found)
    policies = inside.policies
    if isinstance(policies, (Unread, Refused)):
        return
    for group in tagged(facts, inside):
        found = inside.hooks.get(group.name, ())
        if group.name in chosen or isinstance(found, Unread) or left_over_hook(group, found, policies) is None:
            continue
        yield About(Check.HOOK, f"group {group.name}").warning(
            "our hook is on it and no policy selects it: every scale-in waits for nobody",
            f"fn sync takes it off within five minutes; if it does not, {_NOW} says why",
        )


def _hook(about: About, inside: Inside, group: Group, policy: NodePolicy, found: tuple[LifecycleHook, ...]) -> Finding:
    policies = inside.policies
    if isinstance(policies, (Unread, Refused)):
        return about.ok("")
    ours = [hook for hook in found if hook.transition == TERMINATING and is_ours(hook, policy, inside.queue_arns)]
    missing = missing_hook(group, found, policies, inside.queue_arns)
    there = next((hook for hook in found if hook.name == keys.TERMINATE_HOOK), None)
    if missing is not None and there is None:
        return about.failed("it has no terminate hook of ours: a scale-in ends its nodes undrained", _PUT)
    if missing is not None and there is not None:
        said = f"{there.name} waits {there.heartbeat_timeout} s and then answers {there.default.value}"
        return about.failed(f"{said}, expected {HEARTBEAT_TIMEOUT} s and {missing.default.value}", _PUT)
    if ours:
        return about.ok(", ".join(f"{hook.name}, {hook.heartbeat_timeout} s" for hook in ours))
    if policies.settings.paused or not policies.settings.interruption or not policy.interruption.enabled:
        return about.ok("none is put there: interruption is off or the cluster is paused")
    return about.failed(
        f"its hook {keys.TERMINATE_HOOK} is not marked as ours ({keys.HOOK_MARK}): it is left alone, nobody answers it",
        f"take it off if nobody else uses it: aws autoscaling delete-lifecycle-hook --auto-scaling-group-name "
        f"{group.name} --lifecycle-hook-name {keys.TERMINATE_HOOK}; fn sync puts ours there",
    )
