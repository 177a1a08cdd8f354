"""Cluster at one moment, with everything joined: the input of pure decisions.

Decides how nodes, instances, groups, policies and pods belong together. `leeward.snapshot.gather` reads them from the
ports, of a live cluster or of a snapshot folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.group import Group, LifecycleHook
from leeward.model.instance import CapacityType, Instance
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.subnet import Subnet
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.policy.selection import policy_for
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodSpec
from leeward.snapshot.launchable import Launchable, price_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """State of a cluster. `groups`, `hooks` and `launchables` by group name, `instances`, `subnets` and `types` by id
    or name; `daemon_sets` as namespace/name.

    `node_specs`, `pod_specs` and `daemon_specs` are the input of `leeward.scheduling.World`: all nodes, all pods that
    have not finished, and the pod of each DaemonSet. `launchables` has only the selected groups. `launched_from`:
    launch settings by instance, where they can still be read. `claimed`: instances with a termination of ours;
    `last_disruptions`: when the last run of a group ended; `blocked_groups`: group -> why no other run may disrupt its
    nodes now; `terminating`: instances whose termination is requested and that may not carry a taint yet. `warnings`:
    missing or assumed inputs, a sentence each.
    """

    cluster: str
    now: datetime
    policies: ClusterPolicies
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    daemon_sets: frozenset[str] = frozenset()
    groups: Mapping[str, Group] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    hooks: Mapping[str, Sequence[LifecycleHook]] = field(default_factory=dict)
    subnets: Mapping[str, Subnet] = field(default_factory=dict)
    types: Mapping[str, InstanceType] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    node_specs: tuple[NodeSpec, ...] = ()
    pod_specs: tuple[PodSpec, ...] = ()
    daemon_specs: tuple[PodSpec, ...] = ()
    launchables: Mapping[str, Launchable] = field(default_factory=dict)
    launched_from: Mapping[str, LaunchSettings] = field(default_factory=dict)
    claimed: frozenset[str] = frozenset()
    last_disruptions: Mapping[str, datetime] = field(default_factory=dict)
    blocked_groups: Mapping[str, str] = field(default_factory=dict)
    terminating: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    _pods_on: dict[str, list[Pod]] = field(init=False, repr=False, compare=False)
    _group_of: dict[str, str] = field(init=False, repr=False, compare=False)
    _node_named: dict[str, Node] = field(init=False, repr=False, compare=False)
    _policy_of: dict[str, NodePolicy | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the indices once: pods by node, the group of each instance, nodes by name, the policy of each group."""
        pods_on: dict[str, list[Pod]] = {}
        for pod in self.pods:
            pods_on.setdefault(pod.node, []).append(pod)
        group_of = {one.id: one.group for one in self.instances.values() if one.group}
        group_of |= {member.id: group.name for group in self.groups.values() for member in group.instances}
        object.__setattr__(self, "_pods_on", pods_on)
        object.__setattr__(self, "_group_of", group_of)
        object.__setattr__(self, "_node_named", {node.name: node for node in self.nodes})
        chain = self.policies.policies
        policy_of = {name: policy_for(chain, name, group.tags) for name, group in self.groups.items()}
        object.__setattr__(self, "_policy_of", policy_of)

    def node(self, name: str) -> Node | None:
        """Return the node of that name."""
        return self._node_named.get(name)

    def pods_on(self, node: str) -> Sequence[Pod]:
        """Return the pods bound to the node, finished ones too."""
        return self._pods_on.get(node, ())

    def instance_of(self, node: Node) -> Instance | None:
        """Return the EC2 instance behind the node, None where it is not known."""
        return self.instances.get(node.instance_id)

    def group_of(self, node: Node) -> Group | None:
        """Return the group that lists the node's instance, else the one that its tag names; None for an instance
        without a group.
        """
        return self.groups.get(self._group_of.get(node.instance_id, "")) if node.instance_id else None

    def policy_of(self, group: Group | None) -> NodePolicy | None:
        """Return the policy that selects the group; None: Leeward leaves it alone."""
        return self._policy_of.get(group.name) if group is not None else None

    def policy_of_node(self, node: Node) -> NodePolicy | None:
        """Return the policy of the node's group, None for a node of no selected group."""
        return self.policy_of(self.group_of(node))

    def zone_of(self, node: Node) -> str:
        """Return the zone from the node's label, else its instance; empty where neither has it."""
        instance = self.instance_of(node)
        return node.labels.get(well_known.ZONE_LABEL) or (instance.zone if instance else "")

    def type_of(self, node: Node) -> str:
        """Return the instance type, from EC2 or the node's label; empty where neither has it."""
        instance = self.instance_of(node)
        return (instance.type if instance else "") or node.labels.get(well_known.INSTANCE_TYPE_LABEL, "")

    def capacity_of(self, node: Node) -> CapacityType | None:
        """Return the node's capacity type, from EC2, else from Karpenter's or EKS' label; None where none has it."""
        instance = self.instance_of(node)
        if instance is not None:
            return instance.capacity_type
        label = node.labels.get("karpenter.sh/capacity-type") or node.labels.get("eks.amazonaws.com/capacityType", "")
        known = {"spot": CapacityType.SPOT, "on-demand": CapacityType.ON_DEMAND}
        return known.get(label.lower().replace("_", "-"))

    def price_of(self, node: Node) -> float | None:
        """Return the dollars an hour of the node for its type, zone and capacity type. None where it is not known."""
        capacity = self.capacity_of(node)
        if capacity is None:
            return None
        return price_of(self.type_of(node), self.zone_of(node), capacity, self.prices)
