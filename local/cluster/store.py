"""Object store: versions, watch log and two indexes. It knows no rules of any resource.

Objects are immutable once stored: `put` takes ownership, readers share the dictionaries. That is why a watch log and
a paged list are free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from .errors import expired
from .objects import Obj, name_of, namespace_of, node_of
from .resources import BY_PLURAL

T = TypeVar("T")
Key = tuple[str, str]  # namespace ("" for none), name


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Write to the store. `obj` is the object after it (for DELETED the last state, with the version of the
    deletion).
    """

    version: int
    type: ChangeType
    resource: str
    key: Key
    old: Obj | None
    obj: Obj


Observer = Callable[[Change], None]


def key_of(obj: Obj) -> Key:
    return (namespace_of(obj) or "", name_of(obj))


class Store:
    """Store of all objects of one cluster. Not thread-safe: the server holds a lock around the model."""

    def __init__(self, *, log_length: int = 10_000) -> None:
        self.version = 1000
        self._objects: dict[str, dict[Key, Obj]] = {plural: {} for plural in BY_PLURAL}
        self._log: dict[str, deque[Change]] = {plural: deque() for plural in BY_PLURAL}
        self._forgotten: dict[str, int] = dict.fromkeys(BY_PLURAL, 0)
        self._latest: dict[str, int] = dict.fromkeys(BY_PLURAL, 0)
        self._log_length = log_length
        self._on_node: dict[str, dict[Key, None]] = {}
        self._owned: dict[str, dict[tuple[str, Key], None]] = {}
        self._observers: list[Observer] = []

    def observe(self, observer: Observer) -> None:
        """Call `observer` synchronously after every write, in the order of the writes."""
        self._observers.append(observer)

    def find(self, resource: str, name: str, namespace: str | None = None) -> Obj | None:
        return self._objects[resource].get((namespace or "", name))

    def at(self, resource: str, key: Key) -> Obj | None:
        return self._objects[resource].get(key)

    def all(self, resource: str) -> list[Obj]:
        """Return every object, in the order of creation."""
        return list(self._objects[resource].values())

    def each(self, resource: str) -> Iterator[Obj]:
        """Iterate like `all`, without the copy of the list: do not write while iterating."""
        return iter(self._objects[resource].values())

    def count(self, resource: str) -> int:
        return len(self._objects[resource])

    def sorted(self, resource: str) -> list[Obj]:
        """Return the objects in the order in which etcd lists them: by namespace and name."""
        return [obj for _, obj in sorted(self._objects[resource].items(), key=lambda item: item[0])]

    def latest(self, resource: str) -> int:
        """Return the version of the last write to any object of a resource: the same number, the same objects."""
        return self._latest[resource]

    def pods_on(self, node: str) -> list[Obj]:
        """Return the pods bound to a node, deleting and finished ones too, in the order in which they were bound."""
        return [self._objects["pods"][key] for key in self._on_node.get(node, ())]

    def nodes_with_pods(self) -> list[str]:
        return list(self._on_node)

    def owned_by(self, uid: str, resource: str) -> list[Obj]:
        """Return objects with an owner reference (controller or not) to that uid."""
        return [self._objects[kind][key] for kind, key in self._owned.get(uid, ()) if kind == resource]

    def dependents_of(self, uid: str) -> list[tuple[str, Obj]]:
        return [(kind, self._objects[kind][key]) for kind, key in self._owned.get(uid, ())]

    def put(self, resource: str, obj: Obj) -> Obj:
        """Create or replace; return the stored object, which carries its new resourceVersion."""
        key = key_of(obj)
        old = self._objects[resource].get(key)
        self.version += 1
        # a new metadata map: the caller may share everything else with the version before
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self._index(resource, key, old, obj)
        self._objects[resource][key] = obj
        self._record(resource, key, ChangeType.MODIFIED if old else ChangeType.ADDED, old, obj)
        return obj

    def remove(self, resource: str, key: Key) -> Obj | None:
        """Remove the object and return it; None when it does not exist."""
        old = self._objects[resource].get(key)
        if old is None:
            return None
        self.version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self._index(resource, key, old, None)
        del self._objects[resource][key]
        self._record(resource, key, ChangeType.DELETED, old, last)
        return last

    def since(self, resource: str, version: int) -> list[Change]:
        """Return the changes after `version`. Raises 410 Expired when the log no longer reaches back so far."""
        if version < self._forgotten[resource]:
            raise expired(f"too old resource version: {version} ({self._forgotten[resource]})")
        found: list[Change] = []
        for change in reversed(self._log[resource]):
            if change.version <= version:
                break
            found.append(change)
        found.reverse()
        return found

    def forget(self, resource: str) -> None:
        """Drop the watch log of a resource, as a compaction of etcd does: older watches get 410."""
        self._log[resource].clear()
        self._forgotten[resource] = self.version

    def _record(self, resource: str, key: Key, kind: ChangeType, old: Obj | None, obj: Obj) -> None:
        change = Change(version=self.version, type=kind, resource=resource, key=key, old=old, obj=obj)
        self._latest[resource] = self.version
        log = self._log[resource]
        log.append(change)
        if len(log) > self._log_length:
            self._forgotten[resource] = log.popleft().version
        for observer in self._observers:
            observer(change)

    def _index(self, resource: str, key: Key, old: Obj | None, new: Obj | None) -> None:
        if resource == "pods":
            before, after = (node_of(obj) if obj else None for obj in (old, new))
            if before != after:
                self._move(key, before, after)
        owners_before, owners_after = _owners(old), _owners(new)
        for uid in owners_before:
            if uid not in owners_after:
                _discard(self._owned, uid, (resource, key))
        for uid in owners_after:
            self._owned.setdefault(uid, {})[(resource, key)] = None

    def _move(self, key: Key, before: str | None, after: str | None) -> None:
        if before is not None:
            _discard(self._on_node, before, key)
        if after is not None:
            self._on_node.setdefault(after, {})[key] = None


def _owners(obj: Obj | None) -> list[str]:
    if obj is None:
        return []
    return [reference.get("uid", "") for reference in obj["metadata"].get("ownerReferences") or []]


def _discard(index: dict[str, dict[T, None]], key: str, value: T) -> None:
    entries = index.get(key, {})
    entries.pop(value, None)
    if not entries:
        index.pop(key, None)
