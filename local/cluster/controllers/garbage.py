"""Garbage collection: dependents of deleted owners, pods of vanished nodes, the contents of deleted namespaces."""

from __future__ import annotations

import math

from local.cluster.deletion import DeleteOptions
from local.cluster.history import Cause
from local.cluster.namespaces import is_held
from local.cluster.objects import Obj, copied, is_deleting, name_of, node_of, uid_of
from local.cluster.resources import BY_PLURAL
from local.cluster.store import Change, ChangeType
from local.cluster.world import World

from .kubelet import is_out_of_service
from .worklist import Worklist


class Garbage:
    def __init__(self, world: World) -> None:
        self._world = world
        self._owners: Worklist[str] = Worklist()
        self._nodes: Worklist[str] = Worklist()
        self._namespaces: Worklist[str] = Worklist()
        self._shut_down: Worklist[str] = Worklist()
        self._terminating: set[str] = set()

    def observe(self, change: Change) -> None:
        if change.key[0] in self._terminating:
            self._namespaces.add(change.key[0])
        if change.type is ChangeType.DELETED:
            self._owners.add(uid_of(change.obj))
            if change.resource == "nodes":
                self._collect_later(name_of(change.obj))
            elif change.resource == "namespaces":
                self._terminating.discard(name_of(change.obj))
        elif change.resource == "namespaces" and is_deleting(change.obj):
            self._terminating.add(name_of(change.obj))
            self._namespaces.add(name_of(change.obj))
        elif change.resource == "pods":
            self._watch_for_orphan(change)
            if is_deleting(change.obj):
                self._shut_down.add(node_of(change.obj) or "")
        elif change.resource == "nodes" and is_out_of_service(change.obj):
            self._shut_down.add(name_of(change.obj))

    def _watch_for_orphan(self, change: Change) -> None:
        node = node_of(change.obj)
        newly_bound = change.old is None or node_of(change.old) is None
        if node is not None and newly_bound and self._world.store.find("nodes", node) is None:
            self._collect_later(node)

    def _collect_later(self, node: str) -> None:
        """Queue the node for the first pass of the pod garbage collector that finds it missing for its whole
        quarantine.
        """
        settings = self._world.settings
        due = self._world.now() + settings.pod_gc_quarantine
        if settings.pod_gc_period:
            due = math.ceil(due / settings.pod_gc_period) * settings.pod_gc_period
        self._world.timers.at(due, lambda: self._nodes.add(node))

    def run(self) -> bool:
        acted = self._owners.work(self._collect_dependents)
        acted = self._nodes.work(self._collect_pods) or acted
        acted = self._shut_down.work(self._collect_terminating) or acted
        return self._namespaces.work(self._empty) or acted

    def _collect_dependents(self, uid: str) -> bool:
        acted = False
        for resource, obj in self._world.store.dependents_of(uid):
            if is_deleting(obj) or self._has_living_owner(obj, uid):
                continue
            self._world.delete(resource, obj)
            acted = True
        return acted

    def _has_living_owner(self, obj: Obj, gone: str) -> bool:
        for reference in obj["metadata"].get("ownerReferences") or []:
            resource = next((r.plural for r in BY_PLURAL.values() if r.kind == reference.get("kind")), None)
            if resource is None or reference.get("uid") == gone:
                continue
            owner = self._world.store.find(resource, reference["name"], obj["metadata"].get("namespace"))
            owner = owner or self._world.store.find(resource, reference["name"])
            if owner is not None and uid_of(owner) == reference.get("uid"):
                return True
        return False

    def _collect_pods(self, node: str) -> bool:
        """Delete pods of a node that does not exist, without any grace, as the pod garbage collector does."""
        if self._world.store.find("nodes", node) is not None:
            return False
        pods = self._world.store.pods_on(node)
        with self._world.because(Cause.NODE_LOSS):
            for pod in pods:
                self._world.delete("pods", pod, DeleteOptions(grace=0))
        return bool(pods)

    def _collect_terminating(self, node: str) -> bool:
        """End deleted pods on a node out of service at once: no kubelet is there to confirm their end."""
        if not is_out_of_service(self._world.store.find("nodes", node)):
            return False
        pods = [pod for pod in self._world.store.pods_on(node) if is_deleting(pod)]
        with self._world.because(Cause.NODE_LOSS):
            for pod in pods:
                self._world.delete("pods", pod, DeleteOptions(grace=0))
        return bool(pods)

    def _empty(self, name: str) -> bool:
        """Delete everything in a namespace that is being deleted; remove the namespace when nothing is left in it."""
        namespace = self._world.store.find("namespaces", name)
        if namespace is None or not is_held(namespace):
            return False
        left = [
            (resource.plural, obj)
            for resource in BY_PLURAL.values()
            if resource.namespaced
            for obj in self._world.store.all(resource.plural)
            if obj["metadata"]["namespace"] == name
        ]
        going = [(resource, obj) for resource, obj in left if not is_deleting(obj)]
        for resource, obj in going:
            self._world.delete(resource, obj)
        if not left:
            self._world.replace("namespaces", namespace, {**namespace, "spec": {}})
        return bool(going) or not left


def orphan(world: World, uid: str) -> None:
    """Orphan the dependents before the owner is deleted, as `--cascade=orphan` requests."""
    for resource, obj in world.store.dependents_of(uid):
        new: Obj = copied(obj)
        references = [entry for entry in new["metadata"]["ownerReferences"] if entry.get("uid") != uid]
        new["metadata"]["ownerReferences"] = references
        world.write(resource, new)
