"""Stored objects of one resource as the product's own data, each parsed once."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from local.cluster.model import Cluster
from local.cluster.objects import Obj
from local.cluster.store import Change, ChangeType, Key, key_of

P = TypeVar("P")


class Parsed(Generic[P]):
    """Parser that parses each stored object once, and lists again only after a write: most have not changed since the
    last list.

    Stored objects are immutable, so the same object means the same content. `parse` is pure.
    """

    def __init__(self, cluster: Cluster, resource: str, parse: Callable[[Obj], P]) -> None:
        self.parse = parse
        self._store = cluster.store
        self._resource = resource
        self._version = -1
        self._known: dict[Key, tuple[Obj, P]] = {}
        self._listed: tuple[P, ...] = ()

    def each(self, raws: Iterable[Obj]) -> tuple[P, ...]:
        """Parse some stored objects; the caller reports those that are gone (`forget`)."""
        found = []
        for raw in raws:
            self._known[key_of(raw)] = one = self._one(raw)
            found.append(one[1])
        return tuple(found)

    def forget(self, change: Change) -> None:
        """Observe the store and drop deleted objects, which are not asked for again."""
        if change.resource == self._resource and change.type is ChangeType.DELETED:
            self._known.pop(change.key, None)

    def all(self) -> tuple[P, ...]:
        """Return all objects in the order in which the API lists; deleted ones are forgotten."""
        version = self._store.latest(self._resource)
        if version != self._version:
            self._known = {key_of(raw): self._one(raw) for raw in self._store.sorted(self._resource)}
            self._listed = tuple(parsed for _, parsed in self._known.values())
            self._version = version
        return self._listed

    def _one(self, raw: Obj) -> tuple[Obj, P]:
        known = self._known.get(key_of(raw))
        return known if known is not None and known[0] is raw else (raw, self.parse(raw))
