"""Cluster at one moment with everything that planning needs: the input of pure decisions.

Adds pods, launches and prices to the joins of `leeward.cluster.state`. `leeward.snapshot.gather` reads them from the
ports, of a live cluster or of a snapshot folder.

Nodes that take pods, and nodes that are terminating: the same rules for plans, validation and the pre-flight of an
upgrade.

Free capacity counts on every Ready, schedulable node that stays, whichever manager owns it: kube-scheduler ignores
policies. A cordon and taints are left to the scheduling rules, because some pods tolerate them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from leeward.cluster.facets import known_or
from leeward.cluster.state import ClusterState
from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.group import LifecycleHook
from leeward.model.instance import CapacityType
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.lifecycle import IN_WORK, OVER, role_of
from leeward.model.node import Node
from leeward.model.node_owners import disruption_taint_of, is_virtual
from leeward.model.planning_memory import FailedCommand, WantedLaunch
from leeward.model.pod import Pod, PodDisruptionBudget, pods_by_node
from leeward.model.subnet import Subnet
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodSpec
from leeward.snapshot.launchable import Launchable, price_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot(ClusterState):
    """State of a cluster with everything that planning needs. The nodes are always known. `node_specs`, `pod_specs` and
    `daemon_specs` are the input of `leeward.scheduling.world.World`.
    """

    now: datetime
    pods: tuple[Pod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    daemon_sets: frozenset[str] = frozenset()  # namespace/name
    hooks: Mapping[str, Sequence[LifecycleHook]] = field(default_factory=dict)  # by group
    subnets: Mapping[str, Subnet] = field(default_factory=dict)  # by id
    types: Mapping[str, InstanceType] = field(default_factory=dict)  # by name
    prices: Prices = field(default_factory=Prices)
    node_specs: tuple[NodeSpec, ...] = ()  # all nodes
    pod_specs: tuple[PodSpec, ...] = ()  # all pods that have not finished
    daemon_specs: tuple[PodSpec, ...] = ()  # the pod of each DaemonSet
    launchables: Mapping[str, Launchable] = field(default_factory=dict)  # by group, of the selected ones alone
    # launch settings by instance, where they can still be read
    launched_from: Mapping[str, LaunchSettings] = field(default_factory=dict)
    last_disruptions: Mapping[str, datetime] = field(default_factory=dict)  # group -> when its last run ended
    # group -> why no other run may disrupt its nodes now
    blocked_groups: Mapping[str, str] = field(default_factory=dict)
    # instances whose termination is requested and that may not carry a taint yet
    terminating: frozenset[str] = frozenset()
    # group -> image to which `update.auto` would upgrade it, read for fn disruption-planner alone
    newest_images: Mapping[str, str] = field(default_factory=dict)
    wanted_launches: Mapping[str, WantedLaunch] = field(default_factory=dict)  # by group: what earlier runs remember
    # by their inputs: what earlier runs remember
    failed_commands: Mapping[str, FailedCommand] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # missing or assumed inputs, a sentence each
    _pods_on: dict[str, list[Pod]] = field(init=False, repr=False, compare=False)
    _node_named: dict[str, Node] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the indices once, pods by node and nodes by name beside those of the cluster's state."""
        ClusterState.__post_init__(self)  # super() without arguments fails in a class with slots
        object.__setattr__(self, "_pods_on", pods_by_node(self.pods))
        object.__setattr__(self, "_node_named", {node.name: node for node in self.nodes})

    @property
    def claimed(self) -> frozenset[str]:
        """Instances with an open termination; none if they could not be read, which `warnings` says."""
        return known_or(self.claims, frozenset())

    def node(self, name: str) -> Node | None:
        """Return the node of that name."""
        return self._node_named.get(name)

    def pods_on(self, node: str) -> Sequence[Pod]:
        """Return the pods bound to the node, finished ones too."""
        return self._pods_on.get(node, ())

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


def is_leaving(snapshot: ClusterSnapshot, node: Node) -> bool:
    """Return whether a termination of the node is requested or under way, by this deployment or by others."""
    requested = node.instance_id in snapshot.claimed or node.instance_id in snapshot.terminating
    if disruption_taint_of(node, snapshot.now) or node.deleting or requested:
        return True
    instance, group = snapshot.instance_of(node), snapshot.group_of(node)
    role = role_of(group.lifecycle_of(node.instance_id)) if group else None
    return (instance is not None and instance.ended) or role in OVER | IN_WORK


def why_closed(node: Node) -> str:
    """Return why the node takes no pods whatever they tolerate, in kube-scheduler's style; empty: it takes pods."""
    if is_virtual(node):
        return "node(s) were virtual"
    return "" if node.ready else "node(s) were NotReady"


def specs_by_free_capacity(snapshot: ClusterSnapshot) -> list[NodeSpec]:
    """Return all nodes as a scheduler sees them; NotReady and virtual ones, and those in a zone with a zonal shift,
    are closed and keep their pods.
    """
    shifted = snapshot.shifted_zones
    closed = {node.name: why for node in snapshot.nodes if (why := why_closed(node))}
    if shifted:
        in_zones = (node for node in snapshot.nodes if snapshot.zone_of(node) in shifted)
        closed |= {node.name: "node(s) were in a zone with a zonal shift" for node in in_zones}
    return [replace(spec, closed=closed[spec.name]) if spec.name in closed else spec for spec in snapshot.node_specs]
