"""A cluster's nodes in memory: every write goes through the model's own functions, and knows a node by name and uid."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import RLock

from leeward.errors import ClusterUnreachableError, ObjectGoneError
from leeward.model.node import (
    Node,
    Taint,
    annotated,
    cordoned,
    held,
    labelled,
    released,
    returned_to_service,
    stripped,
    tainted,
    uncordoned,
)
from tests.fakes.calls import Calls


class FakeNodes(Calls):
    """`down` cuts the API off."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        super().__init__()
        self.by_name = {node.name: node for node in nodes}
        self.down = False
        self._lock = RLock()

    def nodes(self) -> Sequence[Node]:
        """All of them."""
        self._reach("nodes")
        return tuple(self.by_name.values())

    def node(self, name: str) -> Node | None:
        """One, fresh."""
        self._reach("node")
        return self.by_name.get(name)

    def label(self, node: Node, labels: Mapping[str, str]) -> Node:
        """Only labels that are missing."""
        self._reach("label")
        with self._lock:
            return self._write(labelled(self._present(node), labels))

    def annotate(self, node: Node, annotations: Mapping[str, str | None]) -> Node:
        """Written over, or taken off."""
        self._reach("annotate")
        with self._lock:
            return self._write(annotated(self._present(node), annotations))

    def add_finalizer(self, node: Node, finalizer: str) -> Node:
        """The API takes none for a node that is being deleted."""
        self._reach("add_finalizer")
        with self._lock:
            return self._write(held(self._present(node), finalizer))

    def remove_finalizer(self, node: Node, finalizer: str) -> None:
        """A node that is being deleted goes with its last finalizer."""
        self._reach("remove_finalizer")
        with self._lock:
            now = self.by_name.get(node.name)
            if now is None or now.uid != node.uid:
                return
            left = self._write(released(now, finalizer))
            if left.deleting and not left.finalizers:
                self._remove(left.name)

    def strip(self, node: Node, deployment: str) -> None:
        """Everything of ours."""
        self._reach("strip")
        with self._lock:
            now = self.by_name.get(node.name)
            if now is not None and now.uid == node.uid:
                left = self._write(stripped(now, deployment))
                if left.deleting and not left.finalizers:
                    self._remove(left.name)

    def taint(self, node: Node, taint: Taint, *, unschedulable: bool = True, exclude: bool = False) -> Node:
        """Taint if absent (by key and effect), cordon, exclude."""
        self._reach("taint")
        with self._lock:
            now = self._present(node)
            return self._write(tainted(now, taint, cordon=unschedulable, exclude=exclude))

    def untaint(self, node: Node, taint: Taint) -> Node:
        """Take the taint off and uncordon, unless a drain has begun since the node was read."""
        self._reach("untaint")
        with self._lock:
            now = self._present(node)
            return self._write(returned_to_service(node, now, taint))

    def cordon(self, node: Node, by: str, *, exclude: bool = False) -> Node:
        """Without a taint."""
        self._reach("cordon")
        with self._lock:
            return self._write(cordoned(self._present(node), by, exclude=exclude))

    def uncordon(self, node: Node) -> Node:
        """Only what `cordon` did."""
        self._reach("uncordon")
        with self._lock:
            return self._write(uncordoned(self._present(node)))

    def delete_node(self, node: Node) -> None:
        """Gone or replaced by another of the same name counts as done; one with finalizers stays until they are off."""
        self._reach("delete_node")
        with self._lock:
            now = self.by_name.get(node.name)
            if now is None or now.uid != node.uid:
                return
            if now.finalizers:
                self._write(replace(now, deleting=True))
            else:
                self._remove(node.name)

    def put_node(self, node: Node) -> None:
        """A node joins or changes."""
        self.by_name[node.name] = node

    def _reach(self, method: str) -> None:
        with self._lock:
            self._call(method)
        if self.down:
            raise ClusterUnreachableError("the fake API is down")

    def _remove(self, node: str) -> None:
        """A workload that has pods takes them along."""
        del self.by_name[node]

    def _present(self, node: Node) -> Node:
        now = self.by_name.get(node.name)
        if now is None or now.uid != node.uid:
            raise ObjectGoneError(f"node {node.name} is not there any more")
        return now

    def _write(self, node: Node) -> Node:
        if node != self.by_name[node.name]:
            node = replace(node, resource_version=str(int(node.resource_version or "0") + 1))
        self.by_name[node.name] = node
        return node
