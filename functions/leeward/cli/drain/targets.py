"""Inputs from which a drain is planned: one node, its pods and every object that affects them.

Decides what is read; `leeward.termination.drain_plan` decides what happens to the pods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from leeward.cli.context import ClusterContext
from leeward.cluster.membership import holding
from leeward.errors import InvalidInputError, NotDeployedError
from leeward.model.attachment import claims_of
from leeward.model.counts import count_of
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import Status, TerminationRecord
from leeward.policy.document import DrainPolicy, NodePolicy
from leeward.ports.kubernetes import Kubernetes
from leeward.ports.records import Claims
from leeward.termination.drain_plan import lone_pods
from leeward.termination.replica_surge import surged
from leeward.termination.settling import HeldVolume, held_volumes


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTarget:
    """One node to drain. `selected` None: no policy selects its group, so planning uses the defaults. `record`: its
    open termination, if any. `gone`: EC2 has ended the instance. `volumes`: volumes attached to the node. `surged`:
    pods that get a second replica before they leave, `namespace/name`.
    """

    node: Node
    pods: tuple[Pod, ...]
    budgets: tuple[PodDisruptionBudget, ...]
    daemon_sets: frozenset[str]
    group: str | None = None
    selected: NodePolicy | None = None
    instance: Instance | None = None
    gone: bool = False
    record: TerminationRecord | None = None
    volumes: tuple[HeldVolume, ...] = ()
    surged: frozenset[str] = frozenset()

    @property
    def policy(self) -> DrainPolicy:
        """Drain policy of its pods."""
        return self.selected.drain if self.selected else DrainPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Nodes that one call names: each by itself, or those of a group, with labels, or both."""

    names: Sequence[str] = ()
    group: str | None = None
    labels: Sequence[Callable[[Mapping[str, str]], bool]] = ()


def targets_of(context: ClusterContext, selection: Selection, *, planned: bool) -> list[DrainTarget]:
    """Return what a drain of each selected node needs; `planned`: it is shown alone. Raises InvalidInputError as
    `nodes_of` does.
    """
    kubernetes = context.ports.clusters.kubernetes(context.cluster)
    return [_target(context, kubernetes, node, planned=planned) for node in nodes_of(context, selection)]


def nodes_of(context: ClusterContext, selection: Selection) -> list[Node]:
    """Return the selected nodes: named ones as they are named, each once, others by name. Raises InvalidInputError for
    an unknown node or group, and for labels that no node has.
    """
    if selection.names:
        named = [context.node(name) for name in selection.names]
        return list({node.name: node for node in named}.values())
    nodes = context.ports.clusters.kubernetes(context.cluster).nodes()
    members = nodes if selection.group is None else _members(context, nodes, selection.group)
    chosen = [node for node in members if all(has(node.labels) for has in selection.labels)]
    if selection.labels and not chosen:
        among = f"group {selection.group}" if selection.group is not None else "the cluster"
        raise InvalidInputError(
            f"drain -l: found no node with these labels among the {count_of(len(members), 'node')} of {among}, "
            "expected one at least"
        )
    return sorted(chosen, key=lambda node: node.name)


def _members(context: ClusterContext, nodes: Sequence[Node], name: str) -> Sequence[Node]:
    """Return the nodes whose instances the group lists; where it is not described, those whose instances it has tagged.
    Raises InvalidInputError where there are none either.
    """
    group = context.ports.groups.describe([name]).get(name)
    if group is not None:
        listed = {member.id for member in group.instances}
        return [node for node in nodes if node.instance_id in listed]
    by_id = {node.instance_id: node for node in nodes if node.instance_id.startswith("i-")}
    tagged = [one.id for one in context.ports.instances.describe(sorted(by_id)).values() if one.group == name]
    if not tagged:
        raise context.unknown_group(name)
    return [by_id[instance] for instance in tagged]


def _target(context: ClusterContext, kubernetes: Kubernetes, node: Node, *, planned: bool) -> DrainTarget:
    ports, on_ec2 = context.ports, node.instance_id.startswith("i-")
    instance = ports.instances.describe([node.instance_id]).get(node.instance_id) if on_ec2 else None
    group, known = holding(node.instance_id, instance, ports.groups) if on_ec2 else (None, None)
    policies = ports.clusters.policies(context.cluster)
    selected = policies.selecting(group, known.tags if known else {}) if group else None
    record = _record(node.instance_id, ports.claims, planned=planned) if on_ec2 else None
    pods = tuple(kubernetes.pods_on(node.name))
    attachments = [one for one in kubernetes.attachments() if one.node == node.name]
    claims = claims_of(kubernetes.volumes()) if attachments else {}
    surges = selected is not None and selected.drain.surge_single_replicas
    return DrainTarget(
        node=node,
        pods=pods,
        budgets=tuple(kubernetes.budgets()),
        daemon_sets=kubernetes.daemon_sets(),
        group=group,
        selected=selected,
        instance=instance,
        gone=instance.ended if instance else on_ec2 and context.knows_instances,
        record=record if record and record.status is Status.OPEN else None,
        volumes=held_volumes(node.name, pods, attachments, claims),
        surged=surged(lone_pods(pods, pods), kubernetes) if surges else frozenset(),
    )


def _record(instance: str, claims: Claims, *, planned: bool) -> TerminationRecord | None:
    """Return the instance's record. A plan needs no deployment: without one nothing terminates the instance."""
    try:
        return claims.read(instance)
    except NotDeployedError:
        if planned:
            return None
        raise
