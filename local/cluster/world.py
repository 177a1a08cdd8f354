"""World of the controllers: objects, present, randomness, records.

It decides how an object is created, replaced and deleted (uid, finalizers, grace periods); `model` (the API verbs) and
the controllers decide permissions and consequences.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from local.cluster.validating.admitter import Admitter
from local.cluster.validating.attributes import Attributes, Operation

from . import admission, validation
from .deletion import DeleteOptions, as_duration, check_preconditions, grace_period
from .errors import already_exists, bad_request, not_found
from .history import Cause, History
from .namespaces import is_held
from .objects import Obj, annotations_of, copied, is_deleting, name_of, namespace_of
from .resources import Resource, resource_named
from .settings import DEFAULT_CLASS, ClusterSettings
from .store import Key, Store, key_of
from .timers import ModelTime, Timers
from .timestamps import parsed, rfc3339
from .update_rules import check_identity, keep_other_half, keep_system_fields

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # apimachinery's rand.String: no vowels, no look-alikes


_DEFAULTED_AGAIN = frozenset(
    {"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"}
    | {"ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"}
)  # kinds whose lists a patch replaces as a whole, defaults included


class World:
    """State shared by the API verbs and the controllers."""

    def __init__(self, *, clock: Callable[[], float], seed: int, settings: ClusterSettings) -> None:
        self.settings = settings
        self.store = Store(log_length=settings.watch_log)
        self.time = ModelTime(clock)
        self.timers = Timers()
        self.random = random.Random(seed)
        self.history = History(self.time, limit=settings.history)
        self.cause: Cause | None = None
        self.admitter = Admitter(self.store)

    def now(self) -> float:
        return self.time.now()

    def timestamp(self) -> str:
        return rfc3339(self.time.now())

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        return "".join(self.random.choices(_NAME_LETTERS, k=length))

    @contextmanager
    def because(self, cause: Cause) -> Iterator[None]:
        """Attribute changes inside the block to this cause, for the record of budget violations."""
        before, self.cause = self.cause, cause
        try:
            yield
        finally:
            self.cause = before

    def find(self, resource: str, name: str, namespace: str | None = None) -> Obj:
        """Return the stored object, not to be changed. Raises 404."""
        found = self.store.find(resource, name, namespace)
        if found is None:
            raise not_found(resource_named(resource), name)
        return found

    def prepared(self, resource: str, obj: Obj, namespace: str | None = None) -> Obj:
        """Return a new object as it would be stored: named, dated, with defaults, valid. Raises 422."""
        kind = resource_named(resource)
        new: Obj = copied(obj)
        metadata = new.setdefault("metadata", {})
        self._place(kind, metadata, namespace)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._generated(resource, metadata)
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "managedFields"):
            metadata.pop(key, None)
        metadata["uid"], metadata["creationTimestamp"] = self.new_uid(), self.timestamp()
        if admission.counts_generations(kind):
            metadata["generation"] = 1
        admission.defaulted(kind, new, self._priority_classes())
        if resource == "persistentvolumeclaims":
            new["spec"].setdefault("storageClassName", self._default_storage_class())
        admission.fresh_status(kind, new)
        validation.check(kind, new, None)
        return new

    def check_absent(self, resource: str, new: Obj) -> None:
        """Raise 409 AlreadyExists if the object exists."""
        if self.store.at(resource, key_of(new)) is not None:
            raise already_exists(resource_named(resource), name_of(new))

    def admit(
        self,
        operation: Operation,
        resource: str,
        *,
        obj: Obj | None = None,
        old: Obj | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Raise the ApiError of the first policy or webhook that refuses."""
        if self.admitter.idle:
            return
        about = old or obj or {}
        self.admitter.check(
            Attributes(
                operation=operation,
                resource=resource_named(resource),
                name=name_of(about),
                namespace=namespace_of(about),
                subresource=subresource or "",
                obj=obj,
                old=old,
                dry_run=dry_run,
            )
        )

    def _generated(self, resource: str, metadata: Obj) -> str:
        """Return a free name: five letters are few where thousands of pods are created, so a taken one is drawn
        again.
        """
        while True:
            name = f"{metadata['generateName']}{self.suffix()}"
            if self.store.find(resource, name, metadata.get("namespace")) is None:
                return name

    def create(self, resource: str, obj: Obj, namespace: str | None = None) -> Obj:
        """Store a new object for a controller. Raises 409, 422."""
        new = self.prepared(resource, obj, namespace)
        self.check_absent(resource, new)
        return self.store.put(resource, new)

    def _place(self, kind: Resource, metadata: Obj, namespace: str | None) -> None:
        if not kind.namespaced:
            metadata.pop("namespace", None)
            return
        if namespace and metadata.get("namespace") not in (None, "", namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace or metadata.get("namespace") or "default"

    def _priority_classes(self) -> dict[str, int]:
        return {name_of(entry): int(entry.get("value", 0)) for entry in self.store.each("priorityclasses")}

    def _default_storage_class(self) -> str:
        """Return the name of the class for claims that name none; empty without one (admission DefaultStorageClass)."""
        classes = self.store.each("storageclasses")
        marked = (name_of(entry) for entry in classes if annotations_of(entry).get(DEFAULT_CLASS) == "true")
        return next(marked, "")

    def merged(
        self,
        resource: str,
        old: Obj,
        new: Obj,
        *,
        subresource: str | None = None,
        endpoint: str | None = None,
        dry_run: bool = False,
    ) -> Obj:
        """Return the object that a write of `new` over `old` would store; `old` itself when nothing changes. Raises
        409, 422, refusals.

        `endpoint`: the requested subresource, where it is not the written part of the object (scale).
        """
        kind = resource_named(resource)
        result: Obj = copied(new)
        metadata = result.setdefault("metadata", {})
        check_identity(kind, metadata, old)
        keep_system_fields(metadata, old)
        result["apiVersion"], result["kind"] = kind.api_version, kind.kind
        keep_other_half(kind, result, old, subresource)
        if kind.kind in _DEFAULTED_AGAIN:
            admission.defaulted(kind, result, {})
        if admission.counts_generations(kind) and result.get("spec") != old.get("spec"):
            metadata["generation"] = old["metadata"].get("generation", 1) + 1
        if result != old:
            validation.check(kind, result, old, subresource)
        about = endpoint or subresource
        self.admit(Operation.UPDATE, resource, obj=result, old=old, subresource=about, dry_run=dry_run)
        return old if result == old else result

    def replace(self, resource: str, old: Obj, new: Obj) -> Obj:
        """Store `new`; an object that is being deleted is removed with its last finalizer."""
        if new is old:
            return old
        stored = self.store.put(resource, new)
        if self._may_vanish(stored):
            self.store.remove(resource, key_of(stored))
        return stored

    def write(self, resource: str, new: Obj) -> bool:
        """Store the changed copy of an existing object for a controller, unless nothing changed."""
        old = self.store.at(resource, key_of(new))
        if old is None or new == old:
            return False
        self.replace(resource, old, new)
        return True

    def change(self, resource: str, key: Key, edit: Callable[[Obj], None]) -> bool:
        """Apply `edit` to a copy and store it for a controller; return False when the object is gone or nothing
        changed.
        """
        old = self.store.at(resource, key)
        if old is None:
            return False
        new: Obj = copied(old)
        edit(new)
        return self.write(resource, new)

    def write_status(self, resource: str, key: Key, status: Obj) -> bool:
        """Store a whole new status for a controller, like `change` but without copying the rest."""
        old = self.store.at(resource, key)
        if old is None or old.get("status") == status:
            return False
        self.replace(resource, old, {**old, "status": status})
        return True

    def delete(self, resource: str, obj: Obj, options: DeleteOptions | None = None) -> Obj:
        """Delete, gracefully where that applies. Idempotent: a second delete can only shorten the grace period.

        Rules: apiserver `rest.BeforeDelete` and the pod strategy's `CheckGracefulDelete`. Raises 409 for a
        precondition that does not hold.
        """
        options = options or DeleteOptions()
        check_preconditions(resource, obj, options)
        grace = grace_period(resource, obj, options)
        finalizers = obj["metadata"].get("finalizers") or []
        if grace == 0 and not finalizers and not is_held(obj):
            return self.store.remove(resource, key_of(obj)) or obj
        if is_deleting(obj) and grace >= int(obj["metadata"].get("deletionGracePeriodSeconds") or 0):
            return obj
        new: Obj = copied(obj)
        new["metadata"]["deletionTimestamp"] = rfc3339(self._deletion_start(obj) + as_duration(grace))
        new["metadata"]["deletionGracePeriodSeconds"] = grace
        if resource == "namespaces":
            new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
        if admission.counts_generations(resource_named(resource)):
            new["metadata"]["generation"] = obj["metadata"].get("generation", 1) + 1
        return self.store.put(resource, new)

    def _deletion_start(self, obj: Obj) -> float:
        if not is_deleting(obj):
            return self.now()
        metadata = obj["metadata"]
        grace = int(metadata.get("deletionGracePeriodSeconds") or 0)
        return parsed(metadata["deletionTimestamp"]) - as_duration(grace)

    def _may_vanish(self, obj: Obj) -> bool:
        metadata = obj["metadata"]
        if not is_deleting(obj) or metadata.get("finalizers") or is_held(obj):
            return False
        return int(metadata.get("deletionGracePeriodSeconds") or 0) == 0
