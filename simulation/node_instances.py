"""Instances behind the Nodes of a cluster, by name, also of Nodes that have been deleted: a function that read its pods
before goes on with them."""

from leeward.model.instance import instance_id_of
from local.cluster.model import Cluster
from local.cluster.objects import Obj, name_of
from local.cluster.store import Change, ChangeType


class NodeInstances:
    """Name of a Node -> id of the instance behind it, the latest one where the name was used again."""

    def __init__(self, cluster: Cluster) -> None:
        self._of = {name_of(node): instance_behind(node) for node in cluster.store.each("nodes")}
        cluster.observe(self._watch)

    def of(self, node: str) -> str:
        """Return the instance's id, empty for a name that no Node ever had."""
        return self._of.get(node, "")

    def _watch(self, change: Change) -> None:
        if change.resource == "nodes" and change.type is not ChangeType.DELETED:
            self._of[name_of(change.obj)] = instance_behind(change.obj)


def instance_behind(node: Obj) -> str:
    """Return the id of the instance behind the Node, empty without one."""
    return instance_id_of((node.get("spec") or {}).get("providerID") or "")
