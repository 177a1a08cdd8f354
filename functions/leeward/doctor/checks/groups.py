"""Checks for what works against Leeward in a selected group: suspended processes, instance refreshes, hooks that never
release an instance."""

from collections.abc import Iterator, Mapping, Sequence

from leeward.doctor.checks.chosen import selected
from leeward.doctor.facts import Facts, InspectedCluster
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Unavailable
from leeward.model.group import LAUNCHING, RETAINED, TERMINATING, Group, GroupInstance, LifecycleHook
from leeward.policy.document import NodePolicy
from leeward.policy.selection import is_ours

NEEDED = ("Launch", "Terminate")  # processes without which no node comes or goes
HELD: Mapping[str, str] = {"Terminating:Wait": TERMINATING, "Pending:Wait": LAUNCHING}  # state -> the hook's transition
_RECONCILER_LOG = "aws logs tail /aws/lambda/leeward-reconciler --since 30m"


def processes(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that no process that Leeward needs is suspended."""
    for group, _ in selected(facts, cluster):
        about = About(Check.PROCESSES, f"group {group.name}")
        stopped = [process for process in NEEDED if process in group.suspended]
        if stopped:
            named = " ".join(stopped)
            yield about.failed(
                f"suspended: {', '.join(stopped)}",
                f"aws autoscaling resume-processes --auto-scaling-group-name {group.name} --scaling-processes {named}",
            )
        else:
            yield about.ok(f"{' and '.join(NEEDED)} work")


def refreshes(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Report instance refreshes: another controller replaces the group's nodes by its own rules."""
    for group, _ in selected(facts, cluster):
        about = About(Check.INSTANCE_REFRESH, f"group {group.name}")
        found = cluster.refreshes.get(group.name, ())
        if isinstance(found, Unavailable):
            yield about.unknown(found)
        elif found:
            yield about.warning(
                f"instance refresh {found[0]} is running: its nodes are drained by our hook alone",
                f"wait, or aws autoscaling cancel-instance-refresh --auto-scaling-group-name {group.name}; "
                "leeward upgrade rolls a group by budgets",
            )
        else:
            yield about.ok("none")


def lifecycle(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Report instances that a hook holds, and that no open termination of Leeward completes."""
    if isinstance(facts.records, Unavailable):
        return
    known = {record.instance for record in facts.records}
    for group, policy in selected(facts, cluster):
        held = [
            one for member in group.instances if member.id not in known for one in _held(cluster, group, policy, member)
        ]
        yield from held
        if not held:
            yield About(Check.LIFECYCLE, f"group {group.name}").ok("no orphaned hook holds an instance")


def _held(cluster: InspectedCluster, group: Group, policy: NodePolicy, member: GroupInstance) -> Iterator[Finding]:
    about = About(Check.LIFECYCLE, f"instance {member.id}")
    if member.lifecycle == RETAINED:
        yield about.warning(
            f"{group.name} retained it when its hook was abandoned: it runs until it is terminated manually",
            f"aws autoscaling terminate-instance-in-auto-scaling-group --instance-id {member.id} "
            "--no-should-decrement-desired-capacity",
        )
    if member.lifecycle not in HELD:
        return
    listed = cluster.hooks.get(group.name, ())
    hooks = (
        [] if isinstance(listed, Unavailable) else [one for one in listed if one.transition == HELD[member.lifecycle]]
    )
    yield about.warning(
        f"it is {member.lifecycle} in {group.name}, by {_named(hooks)}", _answered(cluster, policy, hooks)
    )


def _named(hooks: Sequence[LifecycleHook]) -> str:
    return " or ".join(hook.name for hook in hooks) or "a hook that is not there any more"


def _answered(cluster: InspectedCluster, policy: NodePolicy, hooks: Sequence[LifecycleHook]) -> str:
    """Return the fix: the minute reconciler answers Leeward's hooks, the owner of any other hook answers that one."""
    if any(is_ours(hook, policy, cluster.queue_arns) for hook in hooks):
        return f"the reconciler resumes it within a minute, a launch when its node is Ready; if not, {_RECONCILER_LOG}"
    return (
        "none of these hooks is ours: check the controller that answers them, or name them in interruption.hooks of "
        "the policy"
    )
