"""Watch the pods of one workload, or the nodes, while a chain test runs: how long each pod was Pending, how many each
zone had, and when a node was changed."""

import json
import ssl
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any

from leeward.model import well_known
from local.stack import LocalStack

SECONDS = 900  # after which the API server ends the watch of a test that hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One event of the watch, with the moment of its arrival (seconds of the monotonic clock)."""

    at: float
    kind: str
    pod: Mapping[str, Any]

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def pending(self) -> bool:
        return self.kind != "DELETED" and self.pod["status"].get("phase") == "Pending"

    @property
    def placed(self) -> bool:
        """Whether kube-scheduler counts it for topology spread: it has a node and is not being deleted."""
        leaving = self.kind == "DELETED" or self.pod["metadata"].get("deletionTimestamp")
        return not leaving and bool(self.pod["spec"].get("nodeName"))


@dataclass(kw_only=True)
class PodWatch:
    """Events in the order of the API server; the nodes' zones are kept after the nodes are gone."""

    stack: LocalStack
    events: list[Seen] = field(default_factory=list)
    zones: dict[str, str] = field(default_factory=dict)

    def read_zones(self) -> None:
        """Add the zones of the nodes that are there."""
        for node in self.stack.kubernetes("GET", "/api/v1/nodes")["items"]:
            self.zones[node["metadata"]["name"]] = node["metadata"]["labels"][well_known.ZONE_LABEL]

    def longest_pending(self) -> float:
        """Seconds from the first event of a pod in phase Pending to the first in another phase, at the most; a pod
        that is Pending at the end counts until now.
        """
        since: dict[str, float] = {}
        longest = 0.0
        for seen in self.events:
            if seen.pending:
                since.setdefault(seen.uid, seen.at)
            elif seen.uid in since:
                longest = max(longest, seen.at - since.pop(seen.uid))
        return max(longest, *(time.monotonic() - at for at in since.values()), 0.0)

    def per_zone(self) -> Iterator[Counter[str]]:
        """The number of placed pods in each zone after each event, zones without any included."""
        where: dict[str, str] = {}
        for seen in self.events:
            where.pop(seen.uid, None)
            if seen.placed:
                where[seen.uid] = self.zones[seen.pod["spec"]["nodeName"]]
            found = Counter(dict.fromkeys(self.zones.values(), 0))
            found.update(where.values())
            yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNode:
    """One event of the watch of nodes, with the time of its arrival: the change came before."""

    at: datetime
    node: Mapping[str, Any]

    @property
    def instance(self) -> str:
        return str(self.node["spec"].get("providerID", "")).rsplit("/", 1)[-1]

    @property
    def labels(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.node["metadata"].get("labels") or {}
        return found

    @property
    def unschedulable(self) -> bool:
        return bool(self.node["spec"].get("unschedulable"))


@dataclass(kw_only=True)
class NodeWatch:
    """Events in the order of the API server."""

    events: list[SeenNode] = field(default_factory=list)


@contextmanager
def watched_pods(stack: LocalStack, app: str) -> Iterator[PodWatch]:
    """Pods with the label `app` from now on. Fails where the watch broke off before the end."""
    found = PodWatch(stack=stack)
    found.read_zones()

    def seen(kind: str, pod: Mapping[str, Any]) -> None:
        found.events.append(Seen(at=time.monotonic(), kind=kind, pod=pod))

    try:
        with _watched(stack, f"/api/v1/namespaces/default/pods?watch=1&labelSelector=app%3D{app}", seen):
            yield found
    finally:
        found.read_zones()


@contextmanager
def watched_nodes(stack: LocalStack) -> Iterator[NodeWatch]:
    """Nodes from now on. Fails where the watch broke off before the end."""
    found = NodeWatch()

    def seen(_kind: str, node: Mapping[str, Any]) -> None:
        found.events.append(SeenNode(at=datetime.now(UTC), node=node))

    with _watched(stack, "/api/v1/nodes?watch=1", seen):
        yield found


@contextmanager
def _watched(stack: LocalStack, path: str, seen: Callable[[str, Mapping[str, Any]], None]) -> Iterator[None]:
    """Call `seen` with the kind and the object of each event, in a thread."""
    directory = stack.directory / "cluster"
    token = (directory / "admin-token").read_text().strip()
    url = f"{stack.api}{path}&timeoutSeconds={SECONDS}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    ended = threading.Event()
    stream = urllib.request.urlopen(
        request, context=ssl.create_default_context(cafile=str(directory / "ca.crt")), timeout=SECONDS
    )

    def read() -> None:
        with suppress(OSError, HTTPException):  # the stack is stopped long after the test
            for line in stream:
                event = json.loads(line)
                seen(event["type"], event["object"])
                if ended.is_set():
                    return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
        assert reader.is_alive(), "the watch broke off"
    finally:
        ended.set()
