"""Registration of nodes: a Lease, renewed while the kubelet reports Ready, and the Event RegisteredNode."""

from __future__ import annotations

from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import Obj, is_ready, name_of, uid_of
from local.cluster.store import Change, ChangeType
from local.cluster.timestamps import rfc3339_micro
from local.cluster.world import World

from .worklist import Worklist

_NAMESPACE = "kube-node-lease"
_DURATION = 40  # nodeLeaseDurationSeconds; the kubelet renews at a quarter of it


class Registration:
    """Controller of node leases. A lease belongs to its node, so it is garbage-collected with it."""

    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._registered: Worklist[str] = Worklist()
        self._due: Worklist[str] = Worklist()

    def observe(self, change: Change) -> None:
        if change.resource == "nodes" and change.type is ChangeType.ADDED:
            self._registered.add(name_of(change.obj))
            self._due.add(name_of(change.obj))

    def run(self) -> bool:
        acted = self._registered.work(self._announce)
        return self._due.work(self._renew) or acted

    def _announce(self, name: str) -> bool:
        node = self._world.store.find("nodes", name)
        if node is None:
            return False
        message = f"Node {name} event: Registered Node {name} in Controller"
        self._events.record(node, "RegisteredNode", message, source="node-controller")
        return True

    def _renew(self, name: str) -> bool:
        node = self._world.store.find("nodes", name)
        if node is None:
            return False
        self._world.timers.at(self._world.now() + _DURATION / 4, lambda: self._due.add(name))
        if not is_ready(node):
            return False
        present = self._world.store.find("leases", name, _NAMESPACE)
        if present is not None:
            return self._world.write("leases", {**present, "spec": self._spec(name)})
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(node)}
        metadata = {"name": name, "ownerReferences": [owner]}
        self._world.create("leases", {"metadata": metadata, "spec": self._spec(name)}, _NAMESPACE)
        return True

    def _spec(self, name: str) -> Obj:
        renewed = rfc3339_micro(self._world.now())
        return {"holderIdentity": name, "leaseDurationSeconds": _DURATION, "renewTime": renewed}
