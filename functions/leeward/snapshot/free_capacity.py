"""Nodes that take pods, and nodes that are terminating: the same rules for plans, validation and the pre-flight of an
upgrade.

Free capacity counts on every Ready, schedulable node that stays, whichever manager owns it: kube-scheduler ignores
policies. A cordon and taints are left to the scheduling rules, because some pods tolerate them."""

from dataclasses import replace

from leeward.model.lifecycle import IN_WORK, OVER, role_of
from leeward.model.node import Node
from leeward.model.node_owners import disruption_taint_of, is_virtual
from leeward.scheduling.nodes import NodeSpec
from leeward.snapshot.cluster import ClusterSnapshot


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
