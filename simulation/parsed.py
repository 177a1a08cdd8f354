"""The stored objects of one resource as the product's own data, each parsed once."""

from collections.abc import Iterable
from typing import Generic, Protocol, Self, TypeVar

from local.cluster.model import Cluster
from local.cluster.objects import Obj
from local.cluster.store import Change, ChangeType


class _Kind(Protocol):
    @classmethod
    def from_json(cls, raw: Obj, /) -> Self: ...


P = TypeVar("P", bound=_Kind)


class Parsed(Generic[P]):
    """Parses each stored object once, and lists again only after a write: most have not changed since the last list.

    Stored objects are immutable, so the same object means the same content.
    """

    def __init__(self, cluster: Cluster, resource: str, kind: type[P]) -> None:
        self._store = cluster.store
        self._resource = resource
        self._kind = kind
        self._version = -1
        self._known: dict[str, tuple[Obj, P]] = {}
        self._listed: tuple[P, ...] = ()

    def each(self, raws: Iterable[Obj]) -> tuple[P, ...]:
        """Of some stored objects; whoever asks so tells of those that are gone (`forget`)."""
        found = []
        for raw in raws:
            self._known[raw["metadata"]["uid"]] = one = self._one(raw)
            found.append(one[1])
        return tuple(found)

    def forget(self, change: Change) -> None:
        """An observer of the store: what is deleted is not asked for again."""
        if change.resource == self._resource and change.type is ChangeType.DELETED:
            self._known.pop(change.obj["metadata"]["uid"], None)

    def all(self) -> tuple[P, ...]:
        """In the order in which the API lists; what is gone is forgotten."""
        version = self._store.latest(self._resource)
        if version != self._version:
            self._known = {raw["metadata"]["uid"]: self._one(raw) for raw in self._store.sorted(self._resource)}
            self._listed = tuple(parsed for _, parsed in self._known.values())
            self._version = version
        return self._listed

    def _one(self, raw: Obj) -> tuple[Obj, P]:
        known = self._known.get(raw["metadata"]["uid"])
        return known if known is not None and known[0] is raw else (raw, self._kind.from_json(raw))
