"""Lists in pages: consistent snapshots behind `continue`, which expire as the real ones do at etcd's compaction."""

from __future__ import annotations

import base64
import binascii
import itertools
import json
from dataclasses import dataclass

from local.cluster.errors import bad_request, exact_at_zero, expired, not_a_number, too_large_version
from local.cluster.objects import Obj
from local.cluster.selectors import matcher
from local.cluster.store import Store

_KEPT = 32
_LIFETIME = 300.0  # seconds; etcd keeps 5 to 10 minutes of history
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
    " the continue parameter."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """Query of a list. `limit` 0 means no limit."""

    resource: str
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    resource_version: str = ""
    version_match: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Objects of the store (not to be changed) and the list's metadata."""

    objects: list[Obj]
    metadata: Obj


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    objects: list[Obj]
    version: int
    taken: float


class Pager:
    """Store of the snapshots of unfinished lists; objects are immutable, so a snapshot costs a list of references."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: dict[str, _Snapshot] = {}
        self._numbers = itertools.count(1)

    def page(self, request: ListRequest, *, now: float) -> Page:
        """Return one page. Raises 400 for bad selectors, versions or tokens, 410 for a token whose snapshot is gone,
        504 for a version that is yet to come."""
        if request.token:
            return self._continued(request, now)
        self._check_version(request.resource_version)
        if (request.version_match, request.resource_version) == ("Exact", "0"):
            raise exact_at_zero()
        objects = self._matching(request)
        version = self._store.version
        # a list from the watch cache (resourceVersion=0) ignores the limit, as the real server does
        limit = 0 if request.resource_version == "0" else request.limit
        if not limit or len(objects) <= limit:
            return Page(objects=objects, metadata={"resourceVersion": str(version)})
        number = str(next(self._numbers))
        self._snapshots[number] = _Snapshot(objects=objects, version=version, taken=now)
        for old in list(self._snapshots)[:-_KEPT]:
            del self._snapshots[old]
        return self._cut(number, 0, request)

    def _check_version(self, version: str) -> None:
        """Check the version. Raises 400 for a text that is no number, 504 for a version that is yet to come."""
        if not version:
            return
        if not version.isdecimal():
            raise bad_request(f'resourceVersion: Invalid value: "{version}": {not_a_number(version)}')
        if int(version) > self._store.version:
            raise too_large_version(int(version), self._store.version)

    def expire(self) -> None:
        """Make every open `continue` too old, for tests."""
        self._snapshots.clear()

    def _matching(self, request: ListRequest) -> list[Obj]:
        matches = matcher(request.resource, labels=request.labels, fields=request.fields, namespace=request.namespace)
        return [obj for obj in self._candidates(request) if matches(obj)]

    def _candidates(self, request: ListRequest) -> list[Obj]:
        prefix = "spec.nodeName="
        if request.resource == "pods" and request.fields.startswith(prefix) and "," not in request.fields:
            pods = self._store.pods_on(request.fields.removeprefix(prefix).removeprefix("="))
            return sorted(pods, key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return self._store.sorted(request.resource)

    def _continued(self, request: ListRequest, now: float) -> Page:
        try:
            number, offset = json.loads(base64.urlsafe_b64decode(request.token))
        except (binascii.Error, ValueError):
            raise bad_request("continue key is not valid") from None
        snapshot = self._snapshots.get(number)
        if snapshot is None or now - snapshot.taken > _LIFETIME:
            raise expired(_TOO_OLD)
        return self._cut(number, offset, request)

    def _cut(self, number: str, offset: int, request: ListRequest) -> Page:
        snapshot = self._snapshots[number]
        end = offset + request.limit if request.limit else len(snapshot.objects)
        metadata: Obj = {"resourceVersion": str(snapshot.version)}
        left = len(snapshot.objects) - end
        if left > 0:
            token = json.dumps([number, end]).encode()
            metadata["continue"] = base64.urlsafe_b64encode(token).decode()
            if not request.labels and not request.fields:
                metadata["remainingItemCount"] = left
        return Page(objects=snapshot.objects[offset:end], metadata=metadata)
