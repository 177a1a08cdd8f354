"""Nodes of one cluster, with their health as the API server, Auto Scaling and EC2 report it.

Smaller than a snapshot: the minute reconciler checks every cluster with a handful of calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.impairment import Impairment
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.policy.selection import policy_for


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHealth:
    """Inputs of a health check. `groups` by name, all of the cluster; `instances` by id, at least of the nodes that are
    NotReady or impaired, as far as EC2 knows them; `impaired` by id; `claimed`: instances that a termination of ours is
    about.
    """

    now: datetime
    policies: ClusterPolicies
    nodes: tuple[Node, ...]
    groups: Mapping[str, Group] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    impaired: Mapping[str, Impairment] = field(default_factory=dict)
    claimed: frozenset[str] = frozenset()
    _group_of: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the group of each instance: the one that lists it, else the one that its tag names."""
        tagged = {one.id: one.group for one in self.instances.values() if one.group}
        listed = {member.id: group.name for group in self.groups.values() for member in group.instances}
        object.__setattr__(self, "_group_of", {**tagged, **listed})

    def group_of(self, node: Node) -> Group | None:
        """Return the node's group, or None for a lone instance or one of another cluster's group."""
        return self.groups.get(self._group_of.get(node.instance_id, "")) if node.instance_id else None

    def policy_of(self, group: Group | None) -> NodePolicy | None:
        """Return the policy that selects the group; None: Leeward leaves it alone."""
        return policy_for(self.policies.policies, group.name, group.tags) if group else None

    def instance_of(self, node: Node) -> Instance | None:
        """Return the node's instance, as far as EC2 was asked and knows it."""
        return self.instances.get(node.instance_id)

    def zone_of(self, node: Node) -> str:
        """Return the node's zone from its label, else from its instance; empty if neither has one."""
        instance = self.instance_of(node)
        return node.labels.get(well_known.ZONE_LABEL) or (instance.zone if instance else "")

    def gone(self, node: Node) -> bool:
        """Return whether EC2 has ended its instance. An instance that EC2 was not asked for, or does not know, does not
        count as gone.
        """
        instance = self.instance_of(node)
        return instance is not None and instance.ended
