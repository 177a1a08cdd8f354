"""Watches: streams of changes as lines of JSON, woken by the store, read from its log.

A watcher keeps only the version up to which it has sent; it reads later changes from the log. When the log no longer
reaches back, the stream ends with 410, as after a compaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from local.cluster.encoding import encoded
from local.cluster.errors import ApiError, bad_request
from local.cluster.objects import Obj
from local.cluster.paths import truthy
from local.cluster.resources import Resource
from local.cluster.selectors import Predicate, matcher
from local.cluster.store import Change, ChangeType, Store

_BOOKMARK_EVERY = 30.0  # seconds without anything to send
_LONGEST = 1800.0


class WatchHub:
    """Hub that wakes the watchers of a resource; `announce` may be called from any thread, everything else on the
    loop.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._pending: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def announce(self, change: Change) -> None:
        if self._loop is None or change.resource in self._pending:
            return
        self._pending.add(change.resource)
        with suppress(RuntimeError):  # the loop has closed: no watcher is left
            self._loop.call_soon_threadsafe(self._wake, change.resource)

    def _wake(self, resource: str) -> None:
        self._pending.discard(resource)
        for event in self._waiting.get(resource, ()):
            event.set()

    def register(self, resource: str) -> asyncio.Event:
        event = asyncio.Event()
        self._waiting.setdefault(resource, set()).add(event)
        return event

    def leave(self, resource: str, event: asyncio.Event) -> None:
        self._waiting.get(resource, set()).discard(event)

    def close(self) -> None:
        """End every watch, so that the server can stop."""
        self.closed = True
        for events in self._waiting.values():
            for event in events:
                event.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """Query of a watch."""

    resource: Resource
    matches: Predicate
    version: int | None
    initial_events: bool
    bookmarks: bool
    seconds: float

    @classmethod
    def of(cls, resource: Resource, namespace: str | None, name: str | None, query: Mapping[str, str]) -> WatchRequest:
        """Read the query. Raises 400 for selectors or versions that do not parse."""
        fields = query.get("fieldSelector", "")
        if name:
            fields = ",".join(filter(None, (fields, f"metadata.name={name}")))
        version = query.get("resourceVersion", "")
        if version and not version.isdigit():
            raise bad_request(f"invalid resource version {version!r}")
        return cls(
            resource=resource,
            matches=matcher(resource.plural, labels=query.get("labelSelector", ""), fields=fields, namespace=namespace),
            version=int(version) if version not in ("", "0") else None,
            initial_events=truthy(query.get("sendInitialEvents")),
            bookmarks=truthy(query.get("allowWatchBookmarks")),
            seconds=min(float(query.get("timeoutSeconds") or _LONGEST), _LONGEST),
        )


Render = Callable[[Obj, bool], Any]  # (object, is it the first of the stream?) → the object of the event


class Watch:
    """Stream of one watch. It reads the store under `lock` and sends outside of it."""

    def __init__(self, *, store: Store, lock: RLock, hub: WatchHub, request: WatchRequest, render: Render) -> None:
        self._store = store
        self._lock = lock
        self._hub = hub
        self._request = request
        self._render = render
        self._first = True
        self._version = 0
        self._beginning = self._begin()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield every event as one line; end at the time-out, at an error, or when the hub closes."""
        plural = self._request.resource.plural
        event = self._hub.register(plural)
        try:
            for line in self._beginning:
                yield line
            deadline = asyncio.get_running_loop().time() + self._request.seconds
            while not self._hub.closed:
                lines, going = self._news()
                for line in lines:
                    yield line
                left = deadline - asyncio.get_running_loop().time()
                if not going or left <= 0:
                    return
                if not await _woken(event, min(left, _BOOKMARK_EVERY)) and self._request.bookmarks:
                    yield self._bookmark({})
        finally:
            self._hub.leave(plural, event)

    def _begin(self) -> list[bytes]:
        """Return the first events and the version from which changes follow, both determined before the headers are
        sent.

        Without a version the existing objects come first, as additions.
        """
        if self._request.version is not None and not self._request.initial_events:
            self._version = self._request.version
            return []
        with self._lock:
            self._version = self._store.version
            objects = [obj for obj in self._store.sorted(self._request.resource.plural) if self._request.matches(obj)]
        lines = [self._line("ADDED", obj) for obj in objects]
        if self._request.initial_events and self._request.bookmarks:
            lines.append(self._bookmark({"annotations": {"k8s.io/initial-events-end": "true"}}))
        return lines

    def _news(self) -> tuple[list[bytes], bool]:
        try:
            with self._lock:
                changes = self._store.since(self._request.resource.plural, self._version)
                self._version = self._store.version
        except ApiError as gone:
            return [encoded({"type": "ERROR", "object": gone.status()}) + b"\n"], False
        return [line for change in changes if (line := self._change_line(change)) is not None], True

    def _change_line(self, change: Change) -> bytes | None:
        """Return the line of a change. An object that begins or ceases to match the selectors is added or deleted for
        this watcher.
        """
        matches = self._request.matches
        before = change.old is not None and matches(change.old)
        after = change.type is not ChangeType.DELETED and matches(change.obj)
        if not before and not after:
            return None
        kind = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
        return self._line(kind, change.obj)

    def _line(self, kind: str, obj: Obj) -> bytes:
        body = self._render(obj, self._first)
        self._first = False
        return encoded({"type": kind, "object": body}) + b"\n"

    def _bookmark(self, metadata: Obj) -> bytes:
        resource = self._request.resource
        body = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {**metadata, "resourceVersion": str(self._version)},
        }
        return encoded({"type": "BOOKMARK", "object": body}) + b"\n"


async def _woken(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    event.clear()
    return True


class WatchResponse(Response):
    """Response that streams lines and stops as soon as the client hangs up, also while nothing happens."""

    media_type = "application/json"

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__()
        self._lines = lines
        del self.headers["content-length"]

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        # an empty chunk sends the headers at once: clients wait for them before they consider the watch started
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        pump = asyncio.ensure_future(self._pump(send))
        hang_up = asyncio.ensure_future(_hang_up(receive))
        try:
            await asyncio.wait({pump, hang_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (pump, hang_up):
                task.cancel()
            await asyncio.gather(pump, hang_up, return_exceptions=True)

    async def _pump(self, send: Send) -> None:
        async for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
