"""Inputs of pre-flight, joined once; each check then reads what it needs.

Decides the plan of an upgrade: the old nodes, how many drain together, the waves, the sizes. A running upgrade joins
each observation in the same way. The checks are in `*_checks.py`, by their subject."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from leeward.budgets.disruption_budgets import allowance_among, upgrade_budgets
from leeward.budgets.pdb import PdbIndex, refusal
from leeward.budgets.usage import CountedNode, counted
from leeward.cluster.joins import nodes_by_instance
from leeward.model.alarm import AlarmReading
from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance_type import InstanceType
from leeward.model.load_balancing import Service
from leeward.model.nodegroup import Nodegroup
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.policy.document import Canary, DisruptionReason, NodePolicy, UpdatePolicy
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable, UnreadLaunch
from leeward.termination.drain_plan import lone_pods
from leeward.time_budget import SearchTime
from leeward.upgrade.control import canary_of
from leeward.upgrade.members import Absence, Age, LeftOut, Member, UpgradeTarget, left_out, members
from leeward.upgrade.surge.sizes import Strategy, max_surge, most_extra, parallelism, rolled_by, surge
from leeward.upgrade.waves.model import (
    ClusterConstraints,
    Limits,
    WaveNode,
    cluster_constraints,
    has_to_leave,
    wave_node,
)
from leeward.upgrade.waves.planner import DrainOrder, plan_waves

FOR_SEARCH = 0.5  # of an invocation's time that is left: its result has to be written, too
FOR_WAVES = 0.5  # of the time; the rest is for trying the pods on the new template


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedLabels:
    """Labels of a target's nodes."""

    required: Mapping[str, str] = field(default_factory=dict)  # the gate waits for them
    # named by a script or a tag, without an old node to show that a node gets them
    unproven: Mapping[str, str] = field(default_factory=dict)
    unclear: bool = False  # the user data gives labels that cannot be known


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightInputs:
    """Inputs that the cluster's snapshot does not hold; a missing one is not checked."""

    force: bool = False
    image: str = ""  # that is asked for by name
    image_by_eks: bool = False  # a managed node group without a launch template of its own
    version_requested: bool = False  # `version` is asked for by name
    version: str = ""  # Kubernetes version that new nodes would have
    control_plane: str = ""  # the cluster's version
    architecture: str = ""  # of the new image, in Kubernetes' term
    refreshes: tuple[str, ...] = ()  # ids of running instance refreshes
    scheduled: tuple[str, ...] = ()  # names of scheduled actions that change sizes
    quota: int | None = None  # vCPUs that the account may still start
    cni: Mapping[str, Any] = field(default_factory=dict)  # the VPC CNI's settings
    types: Mapping[str, InstanceType] = field(default_factory=dict)  # of the group, by name
    selected: bool = True  # a policy selects the group
    no_policies: str = ""  # the reason why there is none at all
    nodegroup: Nodegroup | None = None  # as EKS describes a managed one
    unread: tuple[str, ...] = ()  # inputs that could not be read, a sentence each
    surged: frozenset[str] = frozenset()  # pods that get a second replica before they leave, `namespace/name`
    images: tuple[Image, ...] = ()  # what new nodes would be launched from
    absent_images: tuple[str, ...] = ()  # that EC2 does not return
    accounts: frozenset[str] = frozenset()  # this account
    alarms: AlarmReading = field(default_factory=AlarmReading)  # of the policy's `update.alarms`
    labels: ExpectedLabels = field(default_factory=ExpectedLabels)  # of a self-managed group's new nodes
    services: tuple[Service, ...] | None = None  # of the cluster, read for drain.settle: auto alone
    launch: UnreadLaunch | None = None  # a part of what new nodes would be launched from that cannot be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """One upgrade before it starts."""

    snapshot: ClusterSnapshot
    group: Group
    policy: NodePolicy
    target: UpgradeTarget
    inputs: PreflightInputs
    update: UpdatePolicy  # by which it is rolled: the policy's, for a managed node group EKS'
    members: tuple[Member, ...]
    parallel: int
    max_surge: int
    surge: int
    limits: Limits  # on how many drain together
    constraints: ClusterConstraints
    wave_nodes: tuple[WaveNode, ...]  # old nodes that have joined
    pods: Mapping[str, tuple[Pod, ...]]  # that would have to leave, by node
    index: PdbIndex
    left_out: tuple[LeftOut, ...] = ()  # old instances that stay as they are
    time: SearchTime = field(default_factory=SearchTime, compare=False)  # for the waves and for trying the pods

    @classmethod
    def of(
        cls,
        snapshot: ClusterSnapshot,
        group: Group,
        policy: NodePolicy,
        target: UpgradeTarget,
        inputs: PreflightInputs,
        *,
        only_ready: bool = False,
    ) -> Self:
        """Join the inputs. `only_ready`: as in `cluster_constraints`. Raises InvalidInputError (maxUnavailable)."""
        nodes = nodes_by_instance(snapshot.nodes, snapshot.instances)
        present = members(group, nodes, target)
        old = [member.node for member in present if member.age is Age.OLD and member.node is not None]
        index = PdbIndex(snapshot.budgets)
        pods = {node.name: tuple(pod for pod in snapshot.pods_on(node.name) if has_to_leave(pod)) for node in old}
        update = rolled_by(policy.update, inputs.nodegroup)
        parallel = parallelism(update, max(len(present), group.desired))
        zones = {zone_of(snapshot, member) for member in present} - {""}
        most = max_surge(update, max(len(present), group.desired))
        return cls(
            snapshot=snapshot,
            group=group,
            policy=policy,
            target=target,
            inputs=inputs,
            members=present,
            parallel=parallel,
            update=update,
            max_surge=most,
            surge=surge(Strategy(update.strategy), len(zones), parallel, most),
            limits=_limits(snapshot, group, present, policy, parallel, one_zone=update.order == DrainOrder.ZONE),
            constraints=cluster_constraints(snapshot.budgets, snapshot.pods, only_ready=only_ready),
            wave_nodes=tuple(
                wave_node(node.name, snapshot.zone_of(node), node.created, pods[node.name], index) for node in old
            ),
            pods=pods,
            index=index,
            left_out=left_out(group, nodes, target),
        )

    @property
    def serving_left_out(self) -> int:
        """Number of instances left out that the group's desired size counts."""
        return sum(one.absence is Absence.PROTECTED for one in self.left_out)

    @property
    def canary(self) -> Canary:
        """Nodes that go first and are watched; none of a managed node group, which EKS rolls in one update."""
        return Canary() if self.inputs.nodegroup is not None else canary_of(self.policy.update, self.parallel)

    @property
    def old(self) -> tuple[Member, ...]:
        """Members that the upgrade has to replace, also those that have not joined."""
        return tuple(member for member in self.members if member.age is Age.OLD)

    @property
    def strategy(self) -> Strategy:
        """Strategy of `update`."""
        return Strategy(self.update.strategy)

    @property
    def extra(self) -> int:
        """Number of new nodes beside old ones, at the most: never more than there are old ones."""
        return min(self.surge, len(self.old))

    @property
    def most_extra(self) -> int:
        """Number by which desired and maximum size may grow during the upgrade. A managed node group grows as EKS
        documents.
        """
        if self.group.nodegroup is not None:
            return self.surge if self.old else 0
        return most_extra(self.strategy, self.surge, self.parallel, len(self.old), self.max_surge)

    @property
    def launchable(self) -> Launchable | None:
        """Description of what the group would launch, None where it is unknown."""
        return self.snapshot.launchables.get(self.group.name)

    @property
    def forced(self) -> bool:
        """True if pods that do not leave in time are deleted: what holds them then delays the upgrade and does not end
        it.
        """
        return self.inputs.force or self.policy.drain.force or self.policy.drain.termination_grace_period is not None

    def waves(self, seed: int = 0) -> tuple[tuple[str, ...], ...]:
        """Return the plan; old instances that never joined hold no pods and are in no wave."""
        order = DrainOrder(self.update.order)
        time = self.time.part(FOR_WAVES)
        return plan_waves(self.wave_nodes, self.limits, self.constraints, order=order, seed=seed, time=time)

    def limits_with(self, going: frozenset[str]) -> Limits:
        """Return the limits, when these instances of the policy's other groups are being disrupted."""
        snapshot = replace(self.snapshot, terminating=going)
        one_zone = self.limits.one_zone
        return _limits(snapshot, self.group, self.members, self.policy, self.parallel, one_zone=one_zone)

    def budgets_of(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select the pod."""
        return self.index.selecting(pod)


def held_lone_pods(snapshot: ClusterSnapshot, group: Group, policy: NodePolicy) -> tuple[Pod, ...]:
    """Return pods of the group's nodes that a budget holds and that would get a second replica first, as far as pods
    show it. Empty where EKS drains, which starts no second replica.
    """
    if group.nodegroup is not None or not policy.drain.surge_single_replicas:
        return ()
    ours = {one.id for one in group.instances}
    pods = [pod for node in snapshot.nodes if node.instance_id in ours for pod in snapshot.pods_on(node.name)]
    return tuple(pod for pod in lone_pods(pods, snapshot.pods) if refusal(pod, snapshot.budgets))


def zone_of(snapshot: ClusterSnapshot, member: Member) -> str:
    """Return the node's zone, else the one that the group reports."""
    return (snapshot.zone_of(member.node) if member.node is not None else "") or member.instance.zone


def in_shifted_zone(snapshot: ClusterSnapshot, member: Member) -> bool:
    """Return whether the member is in a zone that a zonal shift keeps as it is: no wave takes it, no gate waits."""
    return zone_of(snapshot, member) in snapshot.shifted_zones


def why_zones_wait(snapshot: ClusterSnapshot, group: Group) -> str:
    """Return the zonal shift away from a zone of the group, empty if there is none."""
    reasons = (snapshot.why_shifted(zone) for zone in group.zones)
    return next((reason for reason in reasons if reason), "")


def policy_zones(snapshot: ClusterSnapshot, group: Group, members: Sequence[Member], policy: NodePolicy) -> list[str]:
    """Return the zone of each node that the policy's budgets count: the group's members, and nodes
    of its other groups.
    """
    return [zone_of(snapshot, member) for member in members] + [one.zone for one in _others(snapshot, group, policy)]


def others_disrupting(preflight: Preflight) -> tuple[str, ...]:
    """Return nodes of the policy's other groups that are being disrupted: they hold its budgets too."""
    others = _others(preflight.snapshot, preflight.group, preflight.policy)
    return tuple(sorted(one.node for one in others if one.disrupting))


def _limits(
    snapshot: ClusterSnapshot,
    group: Group,
    members: tuple[Member, ...],
    policy: NodePolicy,
    parallel: int,
    *,
    one_zone: bool,
) -> Limits:
    """Return maxUnavailable and what every matching budget that is active now leaves, over all and by zone: budgets are
    the policy's, with all its groups.
    """
    budgets = upgrade_budgets(policy)
    if not budgets:
        return Limits(together=parallel, one_zone=one_zone)
    nodes = policy_zones(snapshot, group, members, policy)
    disrupting = [one.zone for one in _others(snapshot, group, policy) if one.disrupting]

    def allowed(zone: str | None) -> int | None:
        return allowance_among(budgets, nodes, disrupting, reason=DisruptionReason.UPGRADE, zone=zone, now=snapshot.now)

    overall, zones = allowed(None), dict.fromkeys(budget.zone for budget in budgets if budget.zone is not None)
    per_zone = {zone: most for zone in zones if (most := allowed(zone)) is not None}
    together = parallel if overall is None else min(parallel, overall)
    return Limits(together=together, per_zone=per_zone, one_zone=one_zone)


def _others(snapshot: ClusterSnapshot, group: Group, policy: NodePolicy) -> list[CountedNode]:
    """Return nodes of the policy's other groups, as far as the snapshot has these."""
    mine = {one.id for one in group.instances}
    nodes = {node.name: node.instance_id for node in snapshot.nodes}
    return [one for one in counted(snapshot, policy) if nodes[one.node] not in mine]
