"""Finalizer on Nodes: `kubectl delete node` drains first and ends the instance (docs/features.md, K4, K5).

It belongs on nodes of groups whose policy says `finalizer: true`, and on no other. It never keeps a Node whose instance
is gone, and it stays on a deleted Node for as long as the termination that was begun for it is under way. Every call is
idempotent, and a Node that is gone by then counts as done."""

from collections.abc import Iterable, Mapping

from leeward.cluster.state import ClusterState
from leeward.errors import ObjectGoneError
from leeward.model import well_known
from leeward.model.instance import Instance
from leeward.model.lifecycle import RETAINED
from leeward.model.node import Node
from leeward.model.termination import Cause, CauseKind, Status
from leeward.ports import Ports
from leeward.ports.compute import Instances
from leeward.reconcile.result import ReconcileResult
from leeward.termination.requests import start, subject_of


def release_nodes_without_instances(cluster: str, nodes: Iterable[Node], ports: Ports, result: ReconcileResult) -> None:
    """Remove our finalizer from Nodes whose instances are gone; a Node that is being deleted then disappears. Calls EC2
    only if a node that carries it is NotReady or being deleted.
    """
    carrying = [node for node in nodes if carries(node)]
    instances = _doubtful_instances(carrying, ports.instances)
    kubernetes = ports.clusters.kubernetes(cluster)
    for node in carrying:
        if is_gone(node, instances):
            with result.isolate(node.name):
                kubernetes.remove_finalizer(node, well_known.FINALIZER)
                result.finalizers_removed.append(node.name)


def keep_finalizers(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Carry out deletions, then remove and add finalizers. Deleted nodes come first: a user waits for them."""
    kubernetes = ports.clusters.kubernetes(state.cluster)
    for node in deletions(state):
        with result.isolate(node.name):
            result.deleted += _carry_out(node, state, ports)
    for node in nodes_to_release(state):
        with result.isolate(node.name):
            kubernetes.remove_finalizer(node, well_known.FINALIZER)
            result.finalizers_removed.append(node.name)
    for node in nodes_to_protect(state):
        with result.isolate(node.name):
            try:
                kubernetes.add_finalizer(node, well_known.FINALIZER)
            except ObjectGoneError:
                continue
            result.finalizers_added.append(node.name)


def carries(node: Node) -> bool:
    """Return whether the Node has our finalizer."""
    return well_known.FINALIZER in node.finalizers


def is_gone(node: Node, instances: Mapping[str, Instance]) -> bool:
    """Return whether the Node has no instance any more: EC2 has ended it, or does not know it. `instances`: EC2's
    description of every node that is NotReady or being deleted.
    """
    if node.ready and not node.deleting:
        return False
    instance = instances.get(node.instance_id)
    return instance is None or instance.ended


def is_wanted(node: Node, state: ClusterState) -> bool:
    """Return whether its group's policy asks for the finalizer. The group has to list the instance, because a Node in a
    warm pool is deleted without a termination, and no other Node may stand for the instance: it would end with this
    one.
    """
    group = state.group_of(node)
    policy = state.policy_of(group)
    listed = group is not None and group.lifecycle_of(node.instance_id) is not None
    return policy is not None and policy.finalizer and listed and not state.is_superseded(node)


def nodes_to_protect(state: ClusterState) -> tuple[Node, ...]:
    """Return the Nodes that are to get it; none while interruption handling is paused, none that is being deleted or is
    already tainted for termination.
    """
    free = (node for node in state.nodes if not (carries(node) or node.deleting or node.tainted))
    return tuple(node for node in free if is_wanted(node, state) and not _is_paused(node, state))


def nodes_to_release(state: ClusterState) -> tuple[Node, ...]:
    """Return the Nodes that carry it although no policy asks for it (any more), except deletions being carried out."""
    carrying = (node for node in state.nodes if carries(node) and not is_wanted(node, state))
    return tuple(node for node in carrying if not (node.deleting and node.instance_id in state.claimed))


def deletions(state: ClusterState) -> tuple[Node, ...]:
    """Return the Nodes that were deleted and that our finalizer keeps: they are drained and their instances ended.
    Nodes whose group retains the instance are left out: another team may need it, and `leeward drain` ends it.
    """
    deleted = (n for n in state.nodes if n.deleting and carries(n) and not _is_paused(n, state))
    ours = (node for node in deleted if node.instance_id not in state.claimed and is_wanted(node, state))
    return tuple(node for node in ours if not _is_retained(node, state))


def _is_paused(node: Node, state: ClusterState) -> bool:
    group = state.group_of(node)
    return bool(state.policies.pauses.everything(group.name if group is not None else ""))


def _is_retained(node: Node, state: ClusterState) -> bool:
    group = state.group_of(node)
    return group is not None and group.lifecycle_of(node.instance_id) == RETAINED


def _doubtful_instances(nodes: Iterable[Node], instances: Instances) -> Mapping[str, Instance]:
    """Describe the EC2 instances of nodes that may have no instance any more: those NotReady or being deleted. A Ready
    node has a kubelet and is not looked up.
    """
    suspects = [node.instance_id for node in nodes if node.instance_id and (not node.ready or node.deleting)]
    return instances.describe(suspects) if suspects else {}


def _carry_out(node: Node, state: ClusterState, ports: Ports) -> list[str]:
    """Claim the instance and start its termination; return it. The group replaces it, unless another actor has scaled
    it down in between: a deleted Node requests the end of this machine, not a smaller group.

    The cause names the Node and the attempt before, so that the pass after a lost answer adds nothing, and a Node that
    was returned to service once is claimed again.
    """
    instance = ports.instances.describe([node.instance_id]).get(node.instance_id)
    if instance is None or instance.ended:
        return []
    group, now, record = state.group_of(node), ports.clock.now(), ports.claims.read(instance.id)
    cause = Cause(
        id=f"deleted#{node.uid}#{record.attempt if record else 0}",
        kind=CauseKind.NODE_DELETED,
        at=now,
        reason=f"Node {node.name} was deleted: it is drained, then its instance is terminated",
    )
    subject = subject_of(instance, state.cluster, group=group.name if group else None, node=node.name)
    record = ports.claims.claim(subject, cause, now)
    if record.status is Status.CLOSED:
        return []
    start(record, ports)
    return [instance.id]
