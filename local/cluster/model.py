"""Cluster model: the verbs of the API server over the world, and `step`, which runs the controllers.

Synchronous, without HTTP or threads; clock and seed come from outside, so the same calls at the same times give the
same objects, names and versions. Threads that share a model hold a lock around each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.cluster.validating.admitter import Admitter
from local.cluster.validating.attributes import Operation

from .apply import applied
from .bootstrap import first_objects
from .budgets import Budgets
from .controllers import Controller, all_controllers
from .controllers.garbage import orphan
from .controllers.scheduler import bind
from .deletion import DeleteOptions, as_deleted, check_preconditions
from .errors import conflict, namespace_terminating, not_found
from .event_recorder import EventRecorder
from .eviction import admit_eviction, evict
from .facts import FactRecorder
from .history import Cause, History
from .namespaces import check_deletable
from .nodes import NodeSpec, node_object, ready_condition
from .objects import Obj, copied, is_deleting, name_of, namespace_of, node_of, set_condition, uid_of
from .patches import PatchType, patched
from .resources import BY_KIND, resource_named
from .scale import scale_of, scaled
from .selectors import matcher
from .settings import ClusterSettings
from .store import Change, Observer, Store
from .update_rules import check_patched_uid
from .world import World

_PASSES = 1000  # a pass writes at least one object, so this many at one moment means that two controllers fight


class ControllersDoNotSettle(RuntimeError):
    """Error: two controllers undo each other's writes endlessly: a fault of the emulator, not of its user."""


class Cluster:
    """Emulated cluster. `clock` returns seconds since 1970; `seed` decides uids, name suffixes and pod addresses."""

    def __init__(self, *, clock: Callable[[], float], seed: int = 0, settings: ClusterSettings | None = None) -> None:
        self.world = World(clock=clock, seed=seed, settings=settings or ClusterSettings())
        self.events = EventRecorder(self.world)
        self._budgets = Budgets(self.world)
        self._controllers: list[Controller] = all_controllers(self.world, self.events)
        facts = FactRecorder(self.world.history)
        observers: list[Observer] = [facts.observe, self._budgets.observe, self.events.observe]
        for observer in [*observers, *(controller.observe for controller in self._controllers)]:
            self.store.observe(observer)
        for resource, obj in first_objects():
            self.create(resource, obj)

    @property
    def store(self) -> Store:
        """Object store for reading; its objects must not be changed."""
        return self.world.store

    @property
    def admitter(self) -> Admitter:
        """Policies and webhooks; a simulation adds refusals here."""
        return self.world.admitter

    @property
    def history(self) -> History:
        return self.world.history

    def now(self) -> float:
        """Return the model's present in seconds since 1970."""
        return self.world.now()

    def step(self, now: float) -> float | None:
        """Run everything that is due up to `now`, each at its own time; return when the next action is due.

        Call it after writes as well: controllers act only here. None means that no timer is set.
        """
        time, timers = self.world.time, self.world.timers
        time.pin_latest()
        try:
            self._settle()
            while (due := timers.next_due()) is not None and due <= now:
                time.pin(due)
                for action in timers.pop_due(due):
                    action()
                self._settle()
            time.pin(now)
            return timers.next_due()
        finally:
            time.release()

    def _settle(self) -> None:
        for _ in range(_PASSES):
            acted = False
            for controller in self._controllers:
                acted = controller.run() or acted
            if not self._budgets.run() and not acted:
                return
        raise ControllersDoNotSettle(f"controllers still write after {_PASSES} passes at {self.world.timestamp()}")

    def get(self, resource: str, name: str, namespace: str | None = None) -> Obj:
        """Return a copy of the object. Raises ApiError 404."""
        found: Obj = copied(self.world.find(resource, name, _place(resource, namespace)))
        return found

    def list(self, resource: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> list[Obj]:
        """Return copies of all matching objects, by namespace and name. Raises 400 for a selector that does not
        parse.
        """
        matches = matcher(resource, labels=labels, fields=fields, namespace=namespace)
        return [copied(obj) for obj in self.store.sorted(resource) if matches(obj)]

    def create(self, resource: str, obj: Obj, namespace: str | None = None, *, dry_run: bool = False) -> Obj:
        """Create an object. Raises ApiError 404 for a missing namespace, 403 for one that is being terminated or a
        refusal, 409 for a name that is taken, 422 for an invalid object."""
        new = self.world.prepared(resource, obj, namespace)
        space = namespace_of(new)
        if space is not None:
            self._check_namespace(resource, name_of(new), space)
        self.world.admit(Operation.CREATE, resource, obj=new, dry_run=dry_run)
        self.world.check_absent(resource, new)
        if not dry_run:
            new = self.store.put(resource, new)
            self._budgets.run()
            new = self.store.find(resource, name_of(new), space) or new
        result: Obj = copied(new)
        return result

    def _check_namespace(self, resource: str, name: str, space: str) -> None:
        """Raise 404 for a missing namespace, 403 for one that is being terminated."""
        namespace = self.store.find("namespaces", space)
        if namespace is None:
            raise not_found(resource_named("namespaces"), space)
        if is_deleting(namespace):
            raise namespace_terminating(resource_named(resource), name, space)

    def install(self, obj: Obj) -> Obj:
        """Put an object in as it is, status included, creating its namespace; not an API verb: for snapshots."""
        kind = BY_KIND[obj["kind"]]
        new: Obj = copied(obj)
        metadata = new["metadata"]
        if kind.namespaced:
            space = metadata.setdefault("namespace", "default")
            if self.store.find("namespaces", space) is None:
                self.create("namespaces", {"metadata": {"name": space}})
        metadata.setdefault("uid", self.world.new_uid())
        metadata.setdefault("creationTimestamp", self.world.timestamp())
        new["apiVersion"] = kind.api_version
        stored = self.store.put(kind.plural, new)
        self._budgets.run()
        result: Obj = copied(stored)
        return result

    def update(self, resource: str, obj: Obj, *, subresource: str | None = None, dry_run: bool = False) -> Obj:
        """Replace an object. Raises 409 when `metadata.resourceVersion` is given and is not the current one."""
        old = self.world.find(resource, name_of(obj), _place(resource, namespace_of(obj)))
        return self._store(resource, old, obj, subresource=subresource, dry_run=dry_run)

    def patch(
        self,
        resource: str,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        kind: PatchType = PatchType.STRATEGIC,
        subresource: str | None = None,
        dry_run: bool = False,
        decode: Callable[[Obj], Obj] = lambda obj: obj,
    ) -> Obj:
        """Patch an object. Raises 404, 409 (a resourceVersion inside the patch is checked), 422. `decode` reads the
        patched object.
        """
        old = self.world.find(resource, name, _place(resource, namespace))
        if subresource == "scale":
            return self.scale(resource, name, patched(scale_of(old), patch, kind), namespace, dry_run=dry_run)
        new = decode(patched(old, patch, kind))
        check_patched_uid(resource, old, new)
        return self._store(resource, old, new, subresource=subresource, dry_run=dry_run)

    def apply(
        self,
        resource: str,
        name: str,
        configuration: Obj,
        namespace: str | None = None,
        *,
        manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> tuple[Obj, bool]:
        """Apply server-side; return the object and whether it is new. Raises 409 for fields that another applier
        owns.
        """
        old = self.store.find(resource, name, _place(resource, namespace))
        wanted = applied(old, configuration, manager=manager, force=force, now=self.world.timestamp())
        if old is not None:
            return self._store(resource, old, wanted, subresource=subresource, dry_run=dry_run), False
        wanted["metadata"]["name"] = name
        fields = wanted["metadata"]["managedFields"]
        created = self.create(resource, wanted, namespace, dry_run=dry_run)
        created["metadata"]["managedFields"] = fields
        if not dry_run:
            stored = self.world.find(resource, name, namespace_of(created))
            created = copied(self.world.replace(resource, stored, {**stored, "metadata": created["metadata"]}))
        return created, True

    def _store(
        self, resource: str, old: Obj, new: Obj, *, subresource: str | None, dry_run: bool, endpoint: str | None = None
    ) -> Obj:
        merged = self.world.merged(resource, old, new, subresource=subresource, endpoint=endpoint, dry_run=dry_run)
        if not dry_run:
            merged = self.world.replace(resource, old, merged)
            self._budgets.run()
        result: Obj = copied(merged)
        return result

    def scale(
        self, resource: str, name: str, scale: Obj, namespace: str | None = None, *, dry_run: bool = False
    ) -> Obj:
        """Write spec.replicas through the scale subresource; return the Scale."""
        old = self.world.find(resource, name, _place(resource, namespace))
        new = scaled(resource, old, scale)
        return scale_of(self._store(resource, old, new, subresource=None, endpoint="scale", dry_run=dry_run))

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str | None = None,
        *,
        options: DeleteOptions | None = None,
        dry_run: bool = False,
    ) -> Obj:
        """Delete gracefully; return the object as it is now or was. Raises 404, 409 for a precondition. Idempotent."""
        options = options or DeleteOptions()
        obj = self.world.find(resource, name, _place(resource, namespace))
        check_preconditions(resource, obj, options)
        check_deletable(resource, name)
        self.world.admit(Operation.DELETE, resource, old=obj, dry_run=dry_run)
        if dry_run:
            return as_deleted(resource, obj, options, self.now())
        if options.propagation == "Orphan":
            orphan(self.world, uid_of(obj))
            obj = self.world.find(resource, name, _place(resource, namespace))
            options = DeleteOptions(grace=options.grace)
        with self.world.because(Cause.DELETE):
            result: Obj = copied(self.world.delete(resource, obj, options))
        self._budgets.run()
        gone = self.store.find(resource, name, namespace_of(obj)) is None
        return as_deleted(resource, result, DeleteOptions(grace=0), self.now()) if gone else result

    def evict(
        self, name: str, namespace: str = "default", *, options: DeleteOptions | None = None, dry_run: bool = False
    ) -> None:
        """Evict a pod by the eviction subresource. Raises 404, 429 when a budget forbids it, 500 when several select
        the pod.
        """
        admit_eviction(self.world, name, namespace, dry_run=dry_run)
        pod = self.world.find("pods", name, namespace)
        evict(self.world, self._budgets, pod, options or DeleteOptions(), dry_run=dry_run)

    def bind(self, name: str, node: str, namespace: str = "default") -> None:
        """Bind a pod by the binding subresource. Raises 404, 409 for a pod that has a node."""
        pod = self.world.find("pods", name, namespace)
        if node_of(pod) is not None:
            why = f'pod {name} is already assigned to node "{node_of(pod)}"'
            raise conflict(resource_named("pods"), name, why)
        bind(self.world, pod, node)

    def add_node(self, spec: NodeSpec) -> Obj:
        """Register a node as its kubelet does. Raises 409 for a name that is taken."""
        return self.create("nodes", node_object(spec, now=self.world.timestamp()))

    def set_node_ready(self, name: str, status: str = "True") -> Obj:
        """Write the Ready condition: True, False (the kubelet complains) or Unknown (no kubelet reports).
        Idempotent.
        """
        node = self.get("nodes", name)
        set_condition(node["status"], ready_condition(status=status, now=self.world.timestamp()))
        return self.update("nodes", node, subresource="status")

    def observe(self, observer: Callable[[Change], None]) -> None:
        """Call `observer` after every write, inside it: it must be quick and must not write."""
        self.store.observe(observer)


def _place(resource: str, namespace: str | None) -> str | None:
    """Return the namespace of the lookup: `default` when the caller omits the namespace of a namespaced resource."""
    return (namespace or "default") if resource_named(resource).namespaced else None
