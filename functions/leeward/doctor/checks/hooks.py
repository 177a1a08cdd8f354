"""Checks of Leeward's terminate hook on each selected group: the rule by which fn sync creates it decides what is
missing.

Hooks of the group's owner that Leeward answers have to outlast failed runs of the minute reconciler."""

from collections.abc import Iterator
from dataclasses import dataclass

from leeward.doctor.checks.groups import selected, tagged
from leeward.doctor.facts import InspectedCluster
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Read, UnreadFact
from leeward.model import well_known
from leeward.model.group import LAUNCHING, TERMINATING, Group, LifecycleHook
from leeward.model.times import format_instant
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.policy.hooks import is_ours
from leeward.sync.facts import HOOKS_REMEMBERED
from leeward.sync.hooks import left_over_hook, missing_hook

SHORTEST = 300  # seconds: the reconciler runs once a minute, and some runs fail (docs/designs/which-hooks-are-ours.md)
_SHORT = {
    True: ("launch", "an instance that boots longer ends where a reconciliation fails"),
    False: ("terminate", "an instance ends with its pods where its event is lost and a reconciliation fails"),
}
_NOW = "aws lambda invoke --function-name leeward-sync /dev/stdout"
_PUT = f"fn sync puts it there within five minutes; if it does not, {_NOW} says why"


def hooks(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that Leeward's terminate hook is as fn sync creates it: without it a scale-in ends nodes undrained. No
    other hook of Leeward may be too short.
    """
    policies = cluster.policies
    if isinstance(policies, UnreadFact):
        return
    chosen = {group.name: policy for group, policy in selected(cluster)}
    for group in tagged(cluster):
        about, found = About(Check.HOOK, f"group {group.name}"), cluster.hooks.get(group.name, ())
        policy = chosen.get(group.name)
        if policy is None:
            yield from _left_over(about, cluster, group, found)
        elif isinstance(found, UnreadFact):
            yield about.unknown(found)
        else:
            yield _hook(about, cluster, _Case(group=group, policy=policy, policies=policies, hooks=found))
            yield from _short_hooks(about, cluster, policy, found)


def _short_hooks(
    about: About, cluster: InspectedCluster, policy: NodePolicy, found: tuple[LifecycleHook, ...]
) -> Iterator[Finding]:
    for hook in found:
        ours = hook.name != well_known.TERMINATE_HOOK and is_ours(hook, policy, cluster.queue_arns)
        if ours and hook.heartbeat_timeout < SHORTEST:
            kind, ends = _SHORT[hook.transition == LAUNCHING]
            put = f"--auto-scaling-group-name {hook.group} --lifecycle-hook-name {hook.name}"
            yield about.warning(
                f"{kind} hook {hook.name} waits {hook.heartbeat_timeout} s: {ends}, expected at least {SHORTEST} s",
                f"aws autoscaling put-lifecycle-hook {put} --heartbeat-timeout {SHORTEST}",
            )


def _left_over(
    about: About, cluster: InspectedCluster, group: Group, found: Read[tuple[LifecycleHook, ...]]
) -> Iterator[Finding]:
    if isinstance(found, UnreadFact) or isinstance(cluster.policies, UnreadFact):
        return
    if left_over_hook(group, found, cluster.policies) is not None:
        yield about.warning(
            "our hook is on it and no policy selects it: every scale-in waits for its time-out",
            f"fn sync takes it off within five minutes; if it does not, {_NOW} says why",
        )
    named = {} if isinstance(cluster.named_hooks, UnreadFact) else cluster.named_hooks
    for hook in found:
        if hook.transition == LAUNCHING and group.name in named and hook.name in named[group.name].names:
            until = format_instant(named[group.name].at + HOOKS_REMEMBERED)
            hooked = f"--auto-scaling-group-name {group.name} --lifecycle-hook-name {hook.name}"
            yield about.warning(
                f"launch hook {hook.name} is on it and no policy selects it any more: Leeward answers it until {until},"
                " afterwards each launch waits for its time-out",
                f"if no other controller answers it: aws autoscaling delete-lifecycle-hook {hooked}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Selected group with its hooks."""

    group: Group
    policy: NodePolicy
    policies: ClusterPolicies
    hooks: tuple[LifecycleHook, ...]

    @property
    def there(self) -> LifecycleHook | None:
        """Hook with Leeward's name, created by any writer."""
        return next((hook for hook in self.hooks if hook.name == well_known.TERMINATE_HOOK), None)

    @property
    def switched_off(self) -> bool:
        """True if fn sync creates none on purpose."""
        paused = self.policies.pauses.everything(self.group.name)
        return bool(paused) or not self.policies.settings.interruption or not self.policy.interruption.enabled


def _hook(about: About, cluster: InspectedCluster, case: _Case) -> Finding:
    missing, there = missing_hook(case.group, case.hooks, case.policies, cluster.queue_arns), case.there
    if missing is not None and there is None:
        return about.failed("it has no terminate hook of ours: a scale-in ends its nodes undrained", _PUT)
    if missing is not None and there is not None:
        said = f"{there.name} waits {there.heartbeat_timeout} s and then answers {there.default.value}"
        return about.failed(f"{said}, expected {missing.heartbeat_timeout} s and {missing.default.value}", _PUT)
    ours = [h for h in case.hooks if h.transition == TERMINATING and is_ours(h, case.policy, cluster.queue_arns)]
    if ours:
        return about.ok(", ".join(f"{hook.name}, {hook.heartbeat_timeout} s" for hook in ours))
    return (
        about.ok("none is put there: interruption is off, or the cluster paused")
        if case.switched_off
        else _taken(about, case)
    )


def _taken(about: About, case: _Case) -> Finding:
    delete = f"--auto-scaling-group-name {case.group.name} --lifecycle-hook-name {well_known.TERMINATE_HOOK}"
    return about.failed(
        f"its hook {well_known.TERMINATE_HOOK} is not marked as ours ({well_known.HOOK_MARK}): it is left alone "
        "and never answered",
        f"if no other controller uses it: aws autoscaling delete-lifecycle-hook {delete}; fn sync puts ours there",
    )
