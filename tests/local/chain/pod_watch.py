"""Watch the pods of one workload while a chain test runs: how long each was Pending, and how many each zone had."""

import json
import ssl
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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


@contextmanager
def watched_pods(stack: LocalStack, app: str) -> Iterator[PodWatch]:
    """Pods with the label `app` from now on. Fails where the watch broke off before the end."""
    directory = stack.directory / "cluster"
    token = (directory / "admin-token").read_text().strip()
    path = f"/api/v1/namespaces/default/pods?watch=1&labelSelector=app%3D{app}&timeoutSeconds={SECONDS}"
    request = urllib.request.Request(f"{stack.api}{path}", headers={"Authorization": f"Bearer {token}"})
    found, ended = PodWatch(stack=stack), threading.Event()
    found.read_zones()
    stream = urllib.request.urlopen(
        request, context=ssl.create_default_context(cafile=str(directory / "ca.crt")), timeout=SECONDS
    )

    def read() -> None:
        with suppress(OSError, HTTPException):  # the stack is stopped long after the test
            for line in stream:
                event = json.loads(line)
                found.events.append(Seen(at=time.monotonic(), kind=event["type"], pod=event["object"]))
                if ended.is_set():
                    return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield found
        assert reader.is_alive(), "the watch broke off"
    finally:
        ended.set()
        found.read_zones()
