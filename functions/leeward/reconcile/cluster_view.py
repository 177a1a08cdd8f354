"""State of one cluster in one pass of the minute reconciler: read once, used by every part of the pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.termination import TerminationRecord
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.policy.selection import policy_for
from leeward.ports.compute import Instances


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """State of one cluster. `nodes` by instance; None if the API server did not answer, which does not mean a cluster
    without nodes. `groups`: all groups tagged for the cluster. `records`: the open records of all clusters, by
    instance.
    """

    cluster: str
    policies: ClusterPolicies
    groups: tuple[Group, ...]
    nodes: Mapping[str, Node] | None
    records: Mapping[str, TerminationRecord]
    _group_of: dict[str, Group] = field(init=False, repr=False, compare=False)
    _policy_of: dict[str, NodePolicy | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the indices once: the group of each instance, the policy of each group."""
        object.__setattr__(self, "_group_of", {one.id: group for group in self.groups for one in group.instances})
        chain = self.policies.policies
        policies = {group.name: policy_for(chain, group.name, group.tags) for group in self.groups}
        object.__setattr__(self, "_policy_of", policies)

    @property
    def selected(self) -> tuple[Group, ...]:
        """Groups that a policy selects."""
        return tuple(group for group in self.groups if self.policy_of(group) is not None)

    def policy_of(self, group: Group | None) -> NodePolicy | None:
        """Return the policy that selects the group."""
        return self._policy_of.get(group.name) if group else None

    def group_of(self, instance: str) -> Group | None:
        """Return the group that lists the instance."""
        return self._group_of.get(instance)

    def node_of(self, instance: str) -> Node | None:
        """Return the Node of the instance, or None if there is none or the API server did not answer."""
        return (self.nodes or {}).get(instance)


def doubtful(nodes: Mapping[str, Node], instances: Instances) -> Mapping[str, Instance]:
    """Describe the EC2 instances of nodes that may have no instance any more: those NotReady or being deleted. A Ready
    node has a kubelet and is not looked up.
    """
    suspects = [name for name, node in nodes.items() if name and (not node.ready or node.deleting)]
    return instances.describe(suspects) if suspects else {}
