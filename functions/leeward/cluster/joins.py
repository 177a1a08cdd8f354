"""Joins of nodes, instances and groups: which group holds an instance, and which of several Nodes with the same
provider id stands for it (docs/designs/cluster-state.md). Readers without a `ClusterState` use them too.

A kubelet that registers again under another name leaves its old Node behind for a while. A kubelet also writes the
provider id of its own Node, so that a compromised node can name another's instance: its Node must not take that one's
drain upon itself. It cannot choose its name, nor be older than the Node that it imitates."""

from collections.abc import Iterable, Mapping

from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.node import Node


def listed_groups(groups: Iterable[Group]) -> dict[str, str]:
    """Return the name of the group that lists each instance. Of two groups that list it the later one counts: the
    groups are listed page by page, and an instance that moved in between is on an earlier page by what it was.
    """
    return {member.id: group.name for group in groups for member in group.instances}


def group_name(listed: str | None, instance: Instance | None) -> str | None:
    """Return the group that holds an instance: the one that lists it (`listed`), else the one that its tag names.

    The list comes first because Auto Scaling keeps it, and EC2 shows a tag that an attach or a detach has changed some
    seconds later. The tag decides for members that no list has: those of a warm pool, and those that have just ended.
    """
    return listed or (instance.group if instance is not None else None)


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
    """Return the Nodes of each instance, oldest first, in the order of the instances."""
    found = dict[str, list[Node]]()
    for node in nodes:
        if instance := node.instance_id:
            found.setdefault(instance, []).append(node)
    for same in found.values():
        if len(same) > 1:
            same.sort(key=lambda node: (node.created, node.name))
    return dict(sorted(found.items()))


def _chosen(same: list[Node], instance: Instance | None) -> Node:
    if instance is not None and instance.dns:
        named = [node for node in same if node.name == instance.dns]
        if named:
            return named[0]
    return next((node for node in same if node.ready), same[-1])
