"""Groups of a cluster that Leeward manages."""

from leeward.doctor.facts import Facts, InspectedCluster
from leeward.doctor.reading import Unavailable
from leeward.model.group import Group
from leeward.model.instance import cluster_of
from leeward.policy.document import NodePolicy
from leeward.policy.selection import policy_for


def tagged(facts: Facts, cluster: InspectedCluster) -> list[Group]:
    """Return the cluster's groups, an empty list where they could not be read."""
    groups = () if isinstance(facts.groups, Unavailable) else facts.groups
    return [group for group in groups if cluster_of(group.tags, [cluster.name])]


def selected(facts: Facts, cluster: InspectedCluster) -> list[tuple[Group, NodePolicy]]:
    """Return the cluster's groups that a policy selects, with it; an empty list where the policies are not known."""
    policies = cluster.policies
    if isinstance(policies, Unavailable):
        return []
    found = [(group, policy_for(policies.policies, group.name, group.tags)) for group in tagged(facts, cluster)]
    return [(group, policy) for group, policy in found if policy is not None]
