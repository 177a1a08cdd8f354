"""Validating part of admission: planted refusals, then policies, then webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from local.cluster.errors import ApiError
from local.cluster.store import Store

from . import policies, webhooks
from .attributes import EXEMPT_GROUP, Attributes, Operation
from .webhooks import Backends, unreachable

_ADMIN = "kubernetes-admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedRefusal:
    """Planted error for the requests that it selects, without any object in the cluster; an empty field selects all.

    `resource` as RBAC spells it: `pods/eviction`, `events`, `nodes`.
    """

    error: ApiError
    resource: str
    operation: Operation | None = None
    namespace: str = ""
    name: str = ""

    def selects(self, attributes: Attributes) -> bool:
        subresource = f"/{attributes.subresource}" if attributes.subresource else ""
        return (
            self.resource == attributes.resource.plural + subresource
            and self.operation in (None, attributes.operation)
            and self.namespace in ("", attributes.namespace)
            and self.name in ("", attributes.name)
        )


class Admitter:
    """Validating admission. `backends` calls webhooks that have a URL; a cluster without a network reaches none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._planted: list[PlantedRefusal] = []
        self._user, self._backends = _ADMIN, unreachable

    def plant(self, refusal: PlantedRefusal) -> None:
        """Refuse the selected requests until `uproot`. Planting the same refusal again changes nothing."""
        if refusal not in self._planted:
            self._planted.append(refusal)

    def uproot(self, refusal: PlantedRefusal) -> None:
        """End a planted refusal; one that is not planted counts as ended."""
        self._planted = [entry for entry in self._planted if entry != refusal]

    @contextmanager
    def request(self, user: str, backends: Backends) -> Iterator[None]:
        """Admit actions inside the block as a request of this user, with these backends."""
        before = self._user, self._backends
        self._user, self._backends = user, backends
        try:
            yield
        finally:
            self._user, self._backends = before

    @property
    def idle(self) -> bool:
        """True when nothing could be refused; then requests need not be described."""
        store = self._store
        return not (self._planted or store.count(policies.BINDINGS) or store.count(webhooks.WEBHOOKS))

    def check(self, attributes: Attributes) -> None:
        """Raise ApiError with the first refusal."""
        if attributes.resource.group == EXEMPT_GROUP:
            return
        for planted in self._planted:
            if planted.selects(attributes):
                raise planted.error.with_traceback(None)
        found = None
        if self._store.count(policies.BINDINGS):
            found = policies.refusal(self._store, attributes, self._user)
        if found is None and self._store.count(webhooks.WEBHOOKS):
            found = webhooks.refusal(self._store, attributes, self._user, self._backends)
        if found is not None:
            raise found
