"""One cluster as one sweep sees it: what is looked up once, and every part of the sweep works on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.termination import TerminationRecord
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.policy.selection import policy_for
from leeward.ports import Ports


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """`nodes` by instance; None where the API server did not answer: nobody may take that for a cluster without nodes.
    `groups`: all that are tagged for the cluster. `records`: the open ones of all clusters, by instance.
    """

    cluster: str
    policies: ClusterPolicies
    groups: tuple[Group, ...]
    nodes: Mapping[str, Node] | None
    records: Mapping[str, TerminationRecord]
    _group_of: dict[str, Group] = field(init=False, repr=False, compare=False)
    _policy_of: dict[str, NodePolicy | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Indices, once: the group of each instance, the policy of each group."""
        object.__setattr__(self, "_group_of", {one.id: group for group in self.groups for one in group.instances})
        chain = self.policies.policies
        policies = {group.name: policy_for(chain, group.name, group.tags) for group in self.groups}
        object.__setattr__(self, "_policy_of", policies)

    @property
    def selected(self) -> tuple[Group, ...]:
        """Those that a policy selects."""
        return tuple(group for group in self.groups if self.policy_of(group) is not None)

    def policy_of(self, group: Group | None) -> NodePolicy | None:
        """The policy that selects the group."""
        return self._policy_of.get(group.name) if group else None

    def group_of(self, instance: str) -> Group | None:
        """The group that lists the instance."""
        return self._group_of.get(instance)

    def node_of(self, instance: str) -> Node | None:
        """None also while the API server is away."""
        return (self.nodes or {}).get(instance)


def doubtful(nodes: Mapping[str, Node], ports: Ports) -> Mapping[str, Instance]:
    """What EC2 says of the instances of those nodes that may stand for nothing any more: NotReady, or being deleted. A
    node that is Ready has a kubelet, and needs no look.
    """
    suspects = [name for name, node in nodes.items() if name and (not node.ready or node.deleting)]
    return ports.instances.describe(suspects) if suspects else {}
