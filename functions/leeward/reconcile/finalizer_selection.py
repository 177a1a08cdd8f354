"""Selection of Nodes that get our finalizer, and of those that lose it. Pure.

It belongs on nodes of groups whose policy says `finalizer: true`, and on no other. It never keeps a Node whose instance
is gone, and it stays on a deleted Node for as long as the termination that was begun for it is under way."""

from collections.abc import Mapping

from leeward.model import well_known
from leeward.model.group import RETAINED
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.reconcile.cluster_view import ClusterView


def gone(node: Node, instances: Mapping[str, Instance]) -> bool:
    """Return whether the Node has no instance any more: EC2 has ended it, or does not know it. `instances`: EC2's
    description of every node that is NotReady or being deleted.
    """
    if node.ready and not node.deleting:
        return False
    instance = instances.get(node.instance_id)
    return instance is None or instance.ended


def carries(node: Node) -> bool:
    """Return whether the Node has our finalizer."""
    return well_known.FINALIZER in node.finalizers


def wanted(node: Node, view: ClusterView) -> bool:
    """Return whether its group's policy asks for the finalizer."""
    policy = view.policy_of(view.group_of(node.instance_id)) if node.instance_id else None
    return policy is not None and policy.finalizer


def to_hold(view: ClusterView) -> tuple[Node, ...]:
    """Return the Nodes that are to get it; none in a paused cluster, none that is being deleted or is already tainted
    for termination.
    """
    if view.policies.settings.paused:
        return ()
    candidates = (view.nodes or {}).values()
    return tuple(n for n in candidates if not (carries(n) or n.deleting or n.marked) and wanted(n, view))


def to_release(view: ClusterView) -> tuple[Node, ...]:
    """Return the Nodes that carry it although no policy asks for it (any more), except deletions being carried out."""
    carrying = (node for node in (view.nodes or {}).values() if carries(node) and not wanted(node, view))
    return tuple(node for node in carrying if not (node.deleting and node.instance_id in view.records))


def to_carry_out(view: ClusterView) -> tuple[Node, ...]:
    """Return the Nodes that were deleted and that our finalizer keeps: they are drained and their instances ended.
    Nodes whose group retains the instance are left out: another team may need it, and `leeward drain` ends it.
    """
    if view.policies.settings.paused:
        return ()
    deleted = (node for node in (view.nodes or {}).values() if node.deleting and carries(node))
    ours = (node for node in deleted if node.instance_id not in view.records and wanted(node, view))
    return tuple(node for node in ours if not _retained(node, view))


def _retained(node: Node, view: ClusterView) -> bool:
    group = view.group_of(node.instance_id)
    return group is not None and group.lifecycle_of(node.instance_id) == RETAINED
