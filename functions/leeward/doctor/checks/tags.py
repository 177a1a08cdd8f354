"""Checks of the tags that assign a group to a cluster: without them Leeward ignores it, and reports that only here."""

from collections.abc import Iterator

from leeward.doctor.checks.chosen import selected, tagged
from leeward.doctor.facts import Facts, InspectedCluster
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Unavailable
from leeward.model import well_known
from leeward.model.group import Group
from leeward.policy.document import ClusterPolicies
from leeward.policy.selection import selects


def tags(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Check the tags: they assign a group to the cluster, and by their values Leeward's roles may change it."""
    about, policies = About(Check.TAGS, f"cluster {cluster.name}"), cluster.policies
    if isinstance(facts.groups, Unavailable):
        yield about.unknown(facts.groups)
        return
    wrong = [found for group, _ in selected(facts, cluster) for found in _value(cluster.name, group)]
    if not isinstance(policies, Unavailable):
        nowhere = [group for group in facts.groups if not _names_a_cluster(group)]
        wrong += [found for group in nowhere for found in _missing(cluster, group, policies)]
    yield from wrong
    if not wrong:
        yield about.ok(f"{len(tagged(facts, cluster))} groups carry its tag")


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
    policy = next((one for one in policies.policies if selects(one.selector, group.name, group.tags)), None)
    if policy is None:
        return
    about = About(Check.TAGS, f"group {group.name}")
    said = f"it carries no tag of the cluster, so Leeward leaves it alone; policy {policy.name} would select it"
    fix = _tag(cluster.name, group)
    if not isinstance(cluster.members, Unavailable) and any(member.id in cluster.members for member in group.instances):
        yield about.failed(f"{said}, and its instances are nodes of {cluster.name}", fix)
    elif (isinstance(cluster.members, Unavailable) or not group.instances) and set(policy.selector.groups) - {"*"}:
        yield about.warning(said, fix)


def _tag(cluster: str, group: Group) -> str:
    what = f"ResourceId={group.name},ResourceType=auto-scaling-group,Key={well_known.CLUSTER_TAG_PREFIX}{cluster}"
    return f"aws autoscaling create-or-update-tags --tags {what},Value=owned,PropagateAtLaunch=true"
