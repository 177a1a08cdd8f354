"""Inputs from which the blockers of nodes are found.

Decides what is read and how it is joined, of upgrades and runs that keep nodes from being scaled down only where a
node names one as the owner of its protection; `leeward.blockers` decides what blocks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from leeward.blockers.inputs import NodeInputs, ProtectionOwner, drain_ends_at, waiting_hooks
from leeward.budgets.pdb import PdbIndex, refusal
from leeward.cli.upgrade.status import group_status
from leeward.cluster.membership import holdings
from leeward.errors import InvalidInputError
from leeward.model.attachment import VolumeAttachment, claims_of
from leeward.model.group import Group, LifecycleHook
from leeward.model.instance import Instance
from leeward.model.lifecycle import ENDING, IN_WORK, role_of
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import BY_POLICY, Status, TerminationRecord
from leeward.model.well_known import KEPT_FOR, OF_DISRUPTION
from leeward.policy.document import ClusterPolicies
from leeward.policy.hooks import is_ours
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes
from leeward.ports.records import Claims, Disruptions
from leeward.termination import deadlines
from leeward.termination.drain_plan import lone_pods
from leeward.termination.replica_surge import surged
from leeward.termination.settling import held_volumes
from leeward.termination.situation import UNSELECTED
from leeward.upgrade.status import UpgradePhase

K = TypeVar("K")
V = TypeVar("V")
_MOVES = {
    UpgradePhase.SCALING_UP,
    UpgradePhase.CORDONING,
    UpgradePhase.UPGRADING,
    UpgradePhase.SCALING_DOWN,
    UpgradePhase.ABORTING,
    UpgradePhase.ROLLING_BACK,
}  # the other phases wait for a window, a canary or an operator, or have ended
RECONCILER = timedelta(
    minutes=1
)  # between two runs of the minute reconciler, which releases nodes without an execution


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInputs:
    """Data that all nodes of a cluster share. `claims`: PersistentVolume -> claim; `group_names` by instance; `records`
    of open terminations by instance; `protection_owners` by the value of the nodes' `leeward.dev/kept-for`.
    """

    pods: tuple[Pod, ...]
    budgets: tuple[PodDisruptionBudget, ...]
    daemon_sets: frozenset[str]
    attachments: tuple[VolumeAttachment, ...]
    claims: Mapping[str, str]
    instances: Mapping[str, Instance]
    groups: Mapping[str, Group]
    group_names: Mapping[str, str]
    hooks: Mapping[str, Sequence[LifecycleHook]]
    policies: ClusterPolicies
    queues: frozenset[str] = frozenset()
    records: Mapping[str, TerminationRecord] = field(default_factory=dict)
    protection_owners: Mapping[str, ProtectionOwner] = field(default_factory=dict)

    def of_nodes(self, nodes: Iterable[Node], now: datetime) -> list[NodeInputs]:
        """Return the inputs of these nodes, ordered by node name."""
        pods_on = _grouped((pod.node, pod) for pod in self.pods)
        attached = _grouped((one.node, one) for one in self.attachments)
        budgets = PdbIndex(self.budgets)
        claiming = tuple(pod for pod in self.pods if pod.claims and not pod.finished)
        found = []
        for node in sorted(nodes, key=lambda node: node.name):
            pods = tuple(pods_on.get(node.name, ()))
            known = self.instances.get(node.instance_id)
            group = self.group_names.get(node.instance_id)
            volumes = held_volumes(node.name, pods, attached.get(node.name, ()), self.claims)
            selecting = {budget.key: budget for pod in pods for budget in budgets.selecting(pod)}
            node_inputs = NodeInputs(
                node=node,
                pods=pods,
                budgets=tuple(selecting[key] for key in sorted(selecting)),
                daemon_sets=self.daemon_sets,
                volumes=volumes,
                instance_ended=known.ended if known else False,
                pods_elsewhere=tuple(pod for pod in claiming if pod.node != node.name) if volumes else (),
                group=group,
                protection_owner=self.protection_owners.get(node.annotations.get(KEPT_FOR, "")),
            )
            found.append(self._timed(node_inputs, self.groups.get(group or ""), now))
        return found

    def _timed(self, node_inputs: NodeInputs, group: Group | None, now: datetime) -> NodeInputs:
        """Add the policy, the hooks and every deadline to the inputs of a node."""
        policy = self.policies.selecting(node_inputs.group, group.tags if group else {}) if node_inputs.group else None
        chosen = policy or UNSELECTED
        record = self.records.get(node_inputs.node.instance_id)
        listed = self.hooks.get(node_inputs.group or "", ())
        announced = {cause.hook for cause in record.causes if cause.hook and cause.hook_ours} if record else set()
        ours = frozenset(hook.name for hook in listed if hook.name in announced or is_ours(hook, policy, self.queues))
        started = (record.times.get("draining") if record else None) or now
        grace = chosen.drain.termination_grace_period
        hooks = waiting_hooks(listed, group, node_inputs.node.instance_id, record, ours, now)
        ours_hold = any(hook.ours for hook in hooks)
        deadline = started + grace if grace else None
        if record is not None:
            deadline = deadlines.node_deadline(record, chosen.drain, started, now, ours_hold=ours_hold)
        return replace(
            node_inputs,
            policy=policy,
            hooks=hooks,
            deadline=deadline,
            options=(record.options if record else None) or BY_POLICY,
            drain_ends=drain_ends_at(record, chosen, now),
            detaching_since=record.times.get("drained") if record else None,
            blocked_by=record.blocked_by if record else (),
        )


def node_inputs_of(ports: Ports, cluster: str, name: str | None, now: datetime) -> list[NodeInputs]:
    """Return the inputs of the node of this name, or of all nodes where `name` is None; empty where no such node
    exists.
    """
    kubernetes = ports.clusters.kubernetes(cluster)
    named = kubernetes.node(name) if name is not None else None
    nodes = list(kubernetes.nodes()) if name is None else [named] if named is not None else []
    there = {node.name for node in nodes}
    on_ec2 = {node.instance_id for node in nodes if node.instance_id.startswith("i-")}
    instances = ports.instances.describe(sorted(on_ec2))
    known = {name: instances.get(name) for name in on_ec2}
    grouped = {name: one for name, one in known.items() if one is None or one.group}
    group_names, groups = holdings(grouped, ports.groups)
    leaving = {
        member.id: group.name
        for group in groups.values()
        for member in group.instances
        if role_of(member.lifecycle) in ENDING | IN_WORK
    }
    attachments = tuple(one for one in kubernetes.attachments() if one.node in there)
    cluster_inputs = ClusterInputs(
        pods=tuple(kubernetes.pods()),
        budgets=tuple(kubernetes.budgets()),
        daemon_sets=kubernetes.daemon_sets(),
        attachments=attachments,
        claims=claims_of(kubernetes.volumes()) if attachments else {},
        instances=instances,
        groups=groups,
        group_names=group_names,
        hooks={name: ports.groups.hooks(name) for name in sorted({leaving[i] for i in leaving if i in on_ec2})},
        policies=ports.clusters.policies(cluster),
        queues=ports.queue_arns,
        records=_open_records(ports.claims, [node for node in nodes if node.tainted or node.instance_id in leaving]),
        protection_owners=protection_owners_of(nodes, cluster, ports),
    )
    return [
        _surging(node_inputs, cluster_inputs.pods, kubernetes) for node_inputs in cluster_inputs.of_nodes(nodes, now)
    ]


def _surging(node_inputs: NodeInputs, pods: tuple[Pod, ...], kubernetes: Kubernetes) -> NodeInputs:
    """Add the pods that get a second replica first: only those that a budget forbids evicting as they are."""
    if node_inputs.policy is None or not node_inputs.policy.drain.surge_single_replicas:
        return node_inputs
    lone = [pod for pod in lone_pods(node_inputs.pods, pods) if refusal(pod, node_inputs.budgets)]
    return replace(node_inputs, surged=surged(lone, kubernetes))


def _open_records(claims: Claims, nodes: Iterable[Node]) -> dict[str, TerminationRecord]:
    """Return the open records of nodes that are tainted or terminating: the others have no termination under way."""
    records = claims.read_all(node.instance_id for node in nodes if node.instance_id.startswith("i-"))
    return {instance: record for instance, record in records.items() if record.status is Status.OPEN}


def _grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def protection_owners_of(nodes: Iterable[Node], cluster: str, ports: Ports) -> Mapping[str, ProtectionOwner]:
    """Return the protection owners by name, each with its state: one read of the group of an upgrade, one read of the
    run. From a snapshot, which has no records, only the name is known.
    """
    return {name: _protection_owner(name, cluster, ports) for name in _names(nodes)}


def _protection_owner(name: str, cluster: str, ports: Ports) -> ProtectionOwner:
    if not ports.deployment:  # a snapshot folder
        return ProtectionOwner(name=name)
    if name.startswith(OF_DISRUPTION):
        return _disruption(name, cluster, ports.clock, ports.disruptions)
    return _upgrade(name, cluster, ports)


def _names(nodes: Iterable[Node]) -> list[str]:
    return sorted({node.annotations[KEPT_FOR] for node in nodes if KEPT_FOR in node.annotations})


def _upgrade(group: str, cluster: str, ports: Ports) -> ProtectionOwner:
    """Judge an upgrade as the minute reconciler does: one that has ended or has no execution keeps no node."""
    try:
        status = group_status(group, cluster, ports)
    except InvalidInputError:  # the group is gone
        return ProtectionOwner(name=group)
    if not status.execution or status.phase is UpgradePhase.STARTING:
        return _left_behind(group, ports.clock)
    until = status.eta if status.phase in _MOVES else None
    return ProtectionOwner(name=group, execution=status.execution, phase=status.phase.value, until=until)


def _disruption(name: str, cluster: str, clock: Clock, disruptions: Disruptions) -> ProtectionOwner:
    """Return the state of a run as the owner of a protection. The reconciler ends an open run whose execution is dead;
    until then the run protects its nodes.
    """
    record = disruptions.read(cluster)
    if record is None or not record.open or name != f"{OF_DISRUPTION}{record.number}":
        return _left_behind(name, clock)
    terminating = record.under_way if record.requested else ()
    names = tuple(sorted(node for node, instance in record.nodes.items() if instance in terminating))
    return ProtectionOwner(name=name, execution=record.execution or None, terminating=names)


def _left_behind(name: str, clock: Clock) -> ProtectionOwner:
    return ProtectionOwner(name=name, execution="", until=clock.now() + RECONCILER)
