"""State looked up for a batch of messages, and the place of an instance in it. Contains no rules of action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leeward.cluster.joins import group_name, listed_groups
from leeward.model import well_known
from leeward.model.group import Group, LifecycleHook
from leeward.model.instance import CapacityType, Instance, cluster_of
from leeward.model.node import Node
from leeward.model.termination import Subject
from leeward.policy.document import ClusterPolicies, NodePolicy

if TYPE_CHECKING:
    from leeward.model.instance_status import ScheduledEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageWorld:
    """State that EC2, Auto Scaling, the clusters and their policies report about the instances of messages. Facts from
    an open termination's record are not read from AWS: `tags`, and instances that are not `confirmed`.
    """

    clusters: tuple[str, ...] = ()
    policies: Mapping[str, ClusterPolicies] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    hooks: Mapping[str, tuple[LifecycleHook, ...]] = field(default_factory=dict)
    named: frozenset[tuple[str, str]] = frozenset()  # (group, hook) that policies of groups named until lately
    nodes: Mapping[str, Node] = field(default_factory=dict)  # by instance id
    unseen: frozenset[str] = frozenset()  # clusters whose API did not answer: a missing Node there proves nothing
    queue_arns: frozenset[str] = frozenset()
    origins: frozenset[tuple[str, str]] = frozenset()  # (account, Region) of our clusters, "" for any; none: unchecked
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of groups that were not described, by name
    confirmed: frozenset[str] = frozenset()  # instances that EC2 was asked about now
    unread: frozenset[str] = frozenset()  # groups not asked for; any other that is not in `groups` does not exist
    open: frozenset[str] = frozenset()  # instances with an open termination
    # (group, lifecycle state) of instances that their group does not list, by id
    members: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    scheduled: Mapping[str, tuple[ScheduledEvent, ...]] | None = None  # by instance, None if EC2 was not asked
    unchecked: str = ""  # why EC2 could not be asked for scheduled events
    complete: bool = True  # False: nothing was looked up, so instances are taken as selected and ours
    tagged: bool = True  # False: offline, a group is the cluster's if a policy selects it; else cluster tags decide
    _listed: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the index of the groups that list instances: a batch locates each instance several times."""
        object.__setattr__(self, "_listed", listed_groups(self.groups.values()))

    def serves(self, account: str, region: str) -> bool:
        """Return whether an event of this account and region can be about our nodes. A lifecycle notification
        that a hook sends directly names no Region.
        """
        return not self.origins or any(_agrees(account, ours) and _agrees(region, here) for ours, here in self.origins)

    def locate(self, instance: str, group: str | None = None) -> InstancePlace:
        """Return the place of the instance. A lifecycle action is its group's own message: the `group` that it names
        comes before every read.
        """
        known = self.instances.get(instance)
        name = group or group_name(self._listed.get(instance), known)
        cluster = self._cluster(name, known)
        policies = self.policies.get(cluster) if cluster else None
        return InstancePlace(
            id=instance,
            instance=known,
            node=self.nodes.get(instance),
            group_name=name,
            group=self.groups.get(name) if name else None,
            cluster=cluster,
            policies=policies,
            policy=policies.selecting(name, self._tags(name)) if policies and name else None,
            nodes_seen=cluster not in self.unseen,
            confirmed=instance in self.confirmed,
            open=instance in self.open,
            group_read=name is not None and name not in self.unread,
            member=self.members.get(instance),
            scheduled=None if self.scheduled is None else self.scheduled.get(instance, ()),
        )

    def _tags(self, group: str) -> Mapping[str, str]:
        return self.groups[group].tags if group in self.groups else self.tags.get(group, {})

    def _cluster(self, group: str | None, instance: Instance | None) -> str | None:
        if not self.tagged:
            return next((name for name in self.clusters if group and self._selects(name, group)), None)
        if (
            group is not None and group in self.groups
        ):  # an instance's own tag, which others may write, says nothing against its group's
            return cluster_of(self.groups[group].tags, self.clusters)
        by_group = cluster_of(self._tags(group), self.clusters) if group else None
        return by_group or (cluster_of(instance.tags, self.clusters) if instance else None)

    def _selects(self, cluster: str, group: str) -> bool:
        policies = self.policies.get(cluster)
        return policies is not None and policies.selecting(group, self._tags(group)) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePlace:
    """Place of one instance in the world."""

    id: str
    instance: Instance | None
    node: Node | None
    group_name: str | None
    group: Group | None
    cluster: str | None
    policies: ClusterPolicies | None
    policy: NodePolicy | None  # None: none selects its group
    nodes_seen: bool
    confirmed: bool = False  # EC2 was asked now
    open: bool = False  # its termination is under way
    group_read: bool = False  # Auto Scaling was asked for the group
    member: tuple[str, str] | None = None  # (group, lifecycle state) by the instance's id, None if not asked
    scheduled: tuple[ScheduledEvent, ...] | None = None  # EC2's events, None if it was not asked

    @property
    def known(self) -> bool:
        """True if EC2 knows it, its group lists it, or it has a Node: the three agree only after some seconds."""
        return self.instance is not None or self.node is not None or self.lifecycle is not None

    @property
    def lifecycle(self) -> str | None:
        """Lifecycle state that the group reports for it."""
        listed = self.group.lifecycle_of(self.id) if self.group else None
        pooled = self.member[1] if self.member is not None and self.member[0] == self.group_name else None
        return listed or pooled

    @property
    def type(self) -> str:
        """Instance type by EC2, empty where EC2 does not know the instance."""
        return self.instance.type if self.instance else ""

    @property
    def gone(self) -> bool:
        """True if EC2 has begun to end it, or neither EC2, its group nor a Node knows it."""
        return self.instance.ended if self.instance else not self.known

    def subject(self) -> Subject:
        """Return the instance as a termination record keeps it; values missing from EC2 are read from its Node."""
        instance, labels = self.instance, self.node.labels if self.node else {}
        return Subject(
            instance=self.id,
            cluster=self.cluster or "",
            group=self.group_name,
            zone=instance.zone if instance else labels.get(well_known.ZONE_LABEL, ""),
            subnet=instance.subnet if instance else "",
            instance_type=instance.type if instance else labels.get(well_known.INSTANCE_TYPE_LABEL, ""),
            capacity_type=instance.capacity_type if instance else CapacityType.ON_DEMAND,
            node=self.node.name if self.node else None,
            policy=self.policy.name if self.policy else "",
            state=instance.state if instance and self.confirmed else "",
            networks=instance.networks if instance else (),
        )


def _agrees(named: str, wanted: str) -> bool:
    return not named or not wanted or named == wanted
