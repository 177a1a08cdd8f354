"""Nodes by instance: which of several Nodes with the same provider id stands for the instance.

A kubelet that registers again under another name leaves its old Node behind for a while. A kubelet also writes the
provider id of its own Node, so that a compromised node can name another's instance: its Node must not take that one's
drain upon itself. It cannot choose its name, nor be older than the Node that it imitates."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from leeward.model.instance import Instance
from leeward.model.node import Node


def nodes_by_instance(nodes: Iterable[Node], instances: Mapping[str, Instance] | None = None) -> dict[str, Node]:
    """Return the Node of each instance. Of several the one whose name is the instance's private DNS name, as far as EC2
    was asked (`instances`); else the oldest that is Ready; else the newest.
    """
    known = instances or {}
    return {
        instance: _chosen(same, known.get(instance)) if len(same) > 1 else same[0]
        for instance, same in _same_instance(nodes).items()
    }


def duplicates(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Return the Nodes that share an instance, by instance, oldest first."""
    return {instance: same for instance, same in _same_instance(nodes).items() if len(same) > 1}


def _same_instance(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    ordered = sorted((node for node in nodes if node.instance_id), key=lambda n: (n.instance_id, n.created, n.name))
    return {instance: list(same) for instance, same in groupby(ordered, key=lambda node: node.instance_id)}


def _chosen(same: list[Node], instance: Instance | None) -> Node:
    if instance is not None and instance.dns:
        named = [node for node in same if node.name == instance.dns]
        if named:
            return named[0]
    return next((node for node in same if node.ready), same[-1])
