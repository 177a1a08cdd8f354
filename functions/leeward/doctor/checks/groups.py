"""Checks of groups: the tags that assign them to a cluster, and what works against Leeward in a selected one: suspended
processes, instance refreshes, hooks that never release an instance, launches that Auto Scaling refuses."""

from collections.abc import Iterator, Mapping, Sequence

from leeward.doctor.facts import Facts, InspectedCluster
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact
from leeward.model import well_known
from leeward.model.counts import count_of
from leeward.model.group import LAUNCHING, TERMINATING, Group, GroupInstance, LifecycleHook
from leeward.model.instance import cluster_of
from leeward.model.launch_refusal import cause_in, fix_for
from leeward.model.lifecycle import LAUNCH_WAIT, REPLACE_WAIT, RETAINED, TERMINATE_WAIT, LifecycleRole, role_of
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.policy.hooks import is_ours

NEEDED = ("Launch", "Terminate")  # processes without which no node is launched or terminated
HELD: Mapping[str, str] = {
    TERMINATE_WAIT: TERMINATING,
    REPLACE_WAIT: TERMINATING,
    LAUNCH_WAIT: LAUNCHING,
}  # state -> the hook's transition
_RECONCILER_LOG = "aws logs tail /aws/lambda/leeward-reconciler --since 30m"
INSTEAD = "replacements come by the desired size, in zones that the group chooses"


def tagged(cluster: InspectedCluster) -> list[Group]:
    """Return the cluster's groups, an empty list where they could not be read."""
    groups = () if isinstance(cluster.groups, UnreadFact) else cluster.groups
    return [group for group in groups if cluster_of(group.tags, [cluster.name])]


def selected(cluster: InspectedCluster) -> list[tuple[Group, NodePolicy]]:
    """Return the cluster's groups that a policy selects, with it; an empty list where the policies are not known."""
    policies = cluster.policies
    if isinstance(policies, UnreadFact):
        return []
    found = [(group, policies.policy_of(group)) for group in tagged(cluster)]
    return [(group, policy) for group, policy in found if policy is not None]


def processes(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check that no process that Leeward needs is suspended."""
    for group, _ in selected(cluster):
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


def refreshes(cluster: InspectedCluster) -> Iterator[Finding]:
    """Report instance refreshes: another controller replaces the group's nodes by its own rules."""
    for group, _ in selected(cluster):
        about = About(Check.INSTANCE_REFRESH, f"group {group.name}")
        found = cluster.refreshes.get(group.name, ())
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found:
            yield about.warning(
                f"instance refresh {found[0]} is running: its nodes are drained by our hook alone",
                f"wait, or aws autoscaling cancel-instance-refresh --auto-scaling-group-name {group.name}; "
                "leeward upgrade rolls a group by budgets",
            )
        else:
            yield about.ok("none")


def capacity_units(cluster: InspectedCluster) -> Iterator[Finding]:
    """Report groups whose sizes are no instance counts: upgrades and disruption refuse them."""
    for group, _ in selected(cluster):
        if group.capacity_units:
            yield About(Check.CAPACITY_UNITS, f"group {group.name}").warning(
                f"{group.capacity_units}: its interruptions are drained and it replaces the nodes by itself, but it "
                "is neither upgraded nor disrupted",
                "take the weights off and count instances, or leave both to another tool",
            )


def lifecycle(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Report instances that a hook holds, and that no open termination of Leeward completes."""
    if isinstance(facts.records, UnreadFact):
        return
    known = {record.instance for record in facts.records}
    for group, policy in selected(cluster):
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
    if role_of(member.lifecycle) is LifecycleRole.UNKNOWN:
        yield about.warning(
            f"{group.name} says {member.lifecycle}, which this version does not know: Leeward never ends it",
            "upgrade Leeward, or report the state",
        )
    if member.lifecycle not in HELD:
        return
    listed = cluster.hooks.get(group.name, ())
    hooks = (
        [] if isinstance(listed, UnreadFact) else [one for one in listed if one.transition == HELD[member.lifecycle]]
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


def tags(cluster: InspectedCluster) -> Iterator[Finding]:
    """Check the tags: they assign a group to the cluster, and by their values Leeward's roles may change it."""
    about, policies = About(Check.TAGS, f"cluster {cluster.name}"), cluster.policies
    if isinstance(cluster.groups, UnreadFact):
        yield about.unknown(cluster.groups)
        return
    wrong = [found for group, _ in selected(cluster) for found in _value(cluster.name, group)]
    if not isinstance(policies, UnreadFact):
        nowhere = [group for group in cluster.groups if not _names_a_cluster(group)]
        wrong += [found for group in nowhere for found in _missing(cluster, group, policies)]
    yield from wrong
    if not wrong:
        yield about.ok(f"{count_of(len(tagged(cluster)), 'group carries', 'groups carry')} its tag")


def _names_a_cluster(group: Group) -> bool:
    named = any(key.startswith(well_known.CLUSTER_TAG_PREFIX) for key in group.tags)
    return named or any(group.tags.get(key) for key in well_known.EKS_CLUSTER_TAGS)


def _value(cluster: str, group: Group) -> Iterator[Finding]:
    key = well_known.CLUSTER_TAG_PREFIX + cluster
    allowed = group.tags.get(key) in {"owned", "shared"} or group.tags.get(well_known.EKS_CLUSTER_TAGS[0]) == cluster
    if not allowed:
        yield About(Check.TAGS, f"group {group.name}").failed(
            f"its tag {key} is {group.tags.get(key, '')!r}, expected owned or shared: our roles may not change it",
            _tag(cluster, group),
        )


def _missing(cluster: InspectedCluster, group: Group, policies: ClusterPolicies) -> Iterator[Finding]:
    """Report untagged groups: Leeward ignores them, although a policy would select them. A group's members show its
    cluster; where they cannot, only a policy that spells (a part of) its name does.
    """
    policy = next((one for one in policies.policies if one.selector.selects(group.name, group.tags)), None)
    if policy is None:
        return
    about = About(Check.TAGS, f"group {group.name}")
    said = f"it carries no tag of the cluster, so Leeward leaves it alone; policy {policy.name} would select it"
    fix = _tag(cluster.name, group)
    if not isinstance(cluster.members, UnreadFact) and any(member.id in cluster.members for member in group.instances):
        yield about.failed(f"{said}, and its instances are nodes of {cluster.name}", fix)
    elif (isinstance(cluster.members, UnreadFact) or not group.instances) and set(policy.selector.groups) - {"*"}:
        yield about.warning(said, fix)


def _tag(cluster: str, group: Group) -> str:
    what = f"ResourceId={group.name},ResourceType=auto-scaling-group,Key={well_known.CLUSTER_TAG_PREFIX}{cluster}"
    return f"aws autoscaling create-or-update-tags --tags {what},Value=owned,PropagateAtLaunch=true"


def launches(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Warn with cause and fix: nodes are still replaced, but not ahead of a drain in a named subnet."""
    for group, _ in selected(cluster):
        about = About(Check.LAUNCHES, f"group {group.name}")
        reason = _refusal(facts, cluster, group)
        if not reason:
            yield about.ok("no launch was refused")
            continue
        cause = cause_in(reason)
        yield about.warning(f"LaunchInstances: {cause.value}; {INSTEAD}: {reason}", fix_for(cause))


def _refusal(facts: Facts, cluster: InspectedCluster, group: Group) -> str:
    """Return the last refusal, empty where every launch was served."""
    if not group.launch_template:
        return "ValidationError: the group has a launch configuration"
    records = () if isinstance(facts.records, UnreadFact) else facts.records
    for record in records:
        answer = record.replacement
        theirs = record.subject.cluster == cluster.name and record.subject.group == group.name
        if theirs and answer is not None and answer.refused:
            return answer.reason
    upgrade, run = cluster.upgrades.get(group.name), cluster.disruption
    if upgrade is not None and not isinstance(upgrade, UnreadFact) and upgrade.record.refusal:
        return upgrade.record.refusal
    if run is not None and not isinstance(run, UnreadFact):
        return run.record.refusals.get(group.name, "")
    return ""
