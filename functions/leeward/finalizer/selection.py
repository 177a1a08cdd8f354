"""Which Nodes get our finalizer, and which lose it. Pure.

It is wanted on nodes of groups whose policy says `finalizer: true`, and on no other. It never keeps a Node whose
instance is gone, and it stays on a deleted Node for as long as the termination that was begun for it is under way."""

from collections.abc import Mapping

from leeward.model import well_known
from leeward.model.group import RETAINED
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.termination.cluster_view import ClusterView


def gone(node: Node, instances: Mapping[str, Instance]) -> bool:
    """Whether nothing stands behind the Node any more: EC2 has ended its instance, or knows it no more. `instances`:
    what EC2 says of every node that is NotReady or being deleted.
    """
    if node.ready and not node.deleting:
        return False
    instance = instances.get(node.instance_id)
    return instance is None or instance.ended


def carries(node: Node) -> bool:
    """Whether our finalizer is on it."""
    return well_known.FINALIZER in node.finalizers


def wanted(node: Node, sight: ClusterView) -> bool:
    """Whether its group's policy asks for the finalizer."""
    policy = sight.policy_of(sight.group_of(node.instance_id)) if node.instance_id else None
    return policy is not None and policy.finalizer


def to_hold(sight: ClusterView) -> tuple[Node, ...]:
    """Nodes that are to get it; none in a paused cluster, none that is being deleted, or on its way out already."""
    if sight.policies.settings.paused:
        return ()
    candidates = (sight.nodes or {}).values()
    return tuple(n for n in candidates if not (carries(n) or n.deleting or n.marked) and wanted(n, sight))


def to_release(sight: ClusterView) -> tuple[Node, ...]:
    """Nodes that carry it although no policy asks for it (any more), but for those whose deletion we have begun to
    carry out.
    """
    carrying = (node for node in (sight.nodes or {}).values() if carries(node) and not wanted(node, sight))
    return tuple(node for node in carrying if not (node.deleting and node.instance_id in sight.records))


def to_carry_out(sight: ClusterView) -> tuple[Node, ...]:
    """Nodes that somebody has deleted and that our finalizer keeps: they are drained and their instances ended. Not
    those whose group retains the instance: another team may need it, and `leeward drain` ends it.
    """
    if sight.policies.settings.paused:
        return ()
    deleted = (node for node in (sight.nodes or {}).values() if node.deleting and carries(node))
    ours = (node for node in deleted if node.instance_id not in sight.records and wanted(node, sight))
    return tuple(node for node in ours if not _retained(node, sight))


def _retained(node: Node, sight: ClusterView) -> bool:
    group = sight.group_of(node.instance_id)
    return group is not None and group.lifecycle_of(node.instance_id) == RETAINED
