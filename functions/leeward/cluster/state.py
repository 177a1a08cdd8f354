"""State of one cluster: node, instance, group, policy and open terminations, joined once for every reader.

Facets that the reader did not load, or that could not be read, are `Unavailable` (`leeward.cluster.facets`). The joins
follow `leeward.cluster.joins`; which policy selects a group is a rule of `leeward.policy.document`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.cluster.facets import NOT_LOADED, Facet, Known, known_or, required
from leeward.cluster.joins import group_name, listed_groups, nodes_by_instance
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.instance_status import Impairment
from leeward.model.node import Node
from leeward.model.nodegroup import NodeRepair
from leeward.model.termination import TerminationRecord
from leeward.model.zonal_shift import NOT_SHIFTED, ZonalShifts
from leeward.policy.document import ClusterPolicies, NodePolicy

NO_SHIFTS: Facet[ZonalShifts] = Known(NOT_SHIFTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """State of a cluster, in facets that were loaded or not."""

    cluster: str
    policies: ClusterPolicies
    groups: Mapping[str, Group] = field(default_factory=dict)  # all of the cluster, by name
    # by id, as far as EC2 was asked and knows them: the tag of any other instance is unknown
    instances: Mapping[str, Instance] = field(default_factory=dict)
    node_list: Facet[tuple[Node, ...]] = NOT_LOADED
    claims: Facet[frozenset[str]] = NOT_LOADED  # instances with an open termination
    records: Facet[Mapping[str, TerminationRecord]] = NOT_LOADED  # the open records of all clusters, by instance
    executions: Facet[frozenset[str]] = NOT_LOADED  # names of the open executions of terminations
    disrupted: Facet[frozenset[str]] = NOT_LOADED  # instances of the open disruption run
    impaired: Facet[Mapping[str, Impairment]] = NOT_LOADED  # failing status checks, by instance
    shifts: Facet[ZonalShifts] = NO_SHIFTS  # none unless they were loaded
    node_repair: Facet[Mapping[str, NodeRepair]] = NOT_LOADED  # EKS' node auto repair, by managed group
    _group_of: Mapping[str, Group] = field(init=False, repr=False, compare=False)
    _node_of: Mapping[str, Node] = field(init=False, repr=False, compare=False)
    _policy_of: Mapping[str, NodePolicy | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the indices once: the group and the Node of each instance, the policy of each group."""
        listed = listed_groups(self.groups.values())
        names = {id_: group_name(listed.get(id_), self.instances.get(id_)) for id_ in {**listed, **self.instances}}
        groups = {id_: self.groups[name] for id_, name in names.items() if name and name in self.groups}
        object.__setattr__(self, "_group_of", groups)
        listing = known_or(self.node_list, ())
        object.__setattr__(self, "_node_of", nodes_by_instance(listing, self.instances))
        policies = {name: self.policies.policy_of(group) for name, group in self.groups.items()}
        object.__setattr__(self, "_policy_of", policies)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Nodes. Raises FacetUnavailableError if they were not read."""
        return required(self.node_list, f"the nodes of {self.cluster}")

    @property
    def claimed(self) -> frozenset[str]:
        """Instances with an open termination. Raises FacetUnavailableError if they were not read."""
        return required(self.claims, f"the open terminations of {self.cluster}")

    @property
    def shifted_zones(self) -> frozenset[str]:
        """Zones of a zonal shift. Raises FacetUnavailableError if the shifts were not read."""
        return required(self.shifts, f"the zonal shifts of {self.cluster}").zones

    @property
    def selected(self) -> tuple[Group, ...]:
        """Groups that a policy selects."""
        return tuple(group for group in self.groups.values() if self.policy_of(group) is not None)

    def node_of(self, instance: str) -> Node | None:
        """Return the Node of the instance, or None if there is none or the nodes were not read. Of two Nodes
        with the same instance one stands for it (`cluster.joins`).
        """
        return self._node_of.get(instance)

    def is_superseded(self, node: Node) -> bool:
        """Return whether another Node stands for its instance: nothing of this one says anything about that."""
        other = self.node_of(node.instance_id)
        return other is not None and other.uid != node.uid

    def instance_of(self, node: Node) -> Instance | None:
        """Return the node's instance, as far as EC2 was asked and knows it."""
        return self.instances.get(node.instance_id)

    def group_of_instance(self, instance: str) -> Group | None:
        """Return the group of the instance: the one that lists it, else the one that its tag names. None for a lone
        instance, and for one of another cluster's group.
        """
        return self._group_of.get(instance)

    def group_of(self, node: Node) -> Group | None:
        """Return the group of the node's instance, None for a node without one."""
        return self._group_of.get(node.instance_id)

    def policy_of(self, group: Group | None) -> NodePolicy | None:
        """Return the policy that selects the group; None: Leeward leaves it alone."""
        return self._policy_of.get(group.name) if group is not None else None

    def policy_of_node(self, node: Node) -> NodePolicy | None:
        """Return the policy of the node's group, None for a node of no selected group."""
        return self.policy_of(self.group_of(node))

    def interruption_policy_of(self, group: Group | None) -> NodePolicy | None:
        """Return the policy by which interruptions of the group are handled now; None where they are not: no policy
        selects it, or the handling is switched off or paused (docs/features.md, K16).
        """
        policy = self.policy_of(group)
        if group is None or policy is None or self.policies.pauses.everything(group.name):
            return None
        return policy if policy.interruption.enabled and self.policies.settings.interruption else None

    def zone_of(self, node: Node) -> str:
        """Return the node's zone from its label, else from its instance; empty if neither has one."""
        instance = self.instance_of(node)
        return node.labels.get(well_known.ZONE_LABEL) or (instance.zone if instance else "")

    def why_shifted(self, zone: str) -> str:
        """Return why no node in the zone is removed voluntarily now: a zonal shift, or shifts that could not be read.
        Empty if neither holds.
        """
        if isinstance(self.shifts, Known):
            return self.shifts.value.reason(zone)
        return f"the zonal shifts cannot be read: {self.shifts.reason}"

    def has_ended(self, node: Node) -> bool:
        """Return whether EC2 has ended the node's instance. An instance that EC2 was not asked for, or does not know,
        does not count as ended.
        """
        instance = self.instance_of(node)
        return instance is not None and instance.ended
