"""Copy of the cluster's nodes, pods and budgets, kept current by watches: the source of its history.

What a request causes is seen when the server reports the change, in the order of each resource's changes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

import urllib3

from local.cluster.errors import ApiError
from local.cluster.store import Observer, Store, key_of
from local.foreign.api import ApiClient

_log = logging.getLogger("leeward.local.foreign")
PATHS: Mapping[str, str] = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "poddisruptionbudgets": "/apis/policy/v1/poddisruptionbudgets",
}
_PAUSE = 0.5  # seconds before a list after a watch that failed


class Mirror:
    """Store behind a lock, filled by one thread for each resource."""

    def __init__(self, api: ApiClient) -> None:
        self.store = Store(log_length=0)
        self.lock = threading.RLock()
        self._api = api
        self._stop = threading.Event()

    def observe(self, observer: Observer) -> None:
        """Call `observer` after every change, while the lock is held."""
        self.store.observe(observer)

    def start(self) -> None:
        """List everything once, then follow the changes until `stop`. Raises ApiError and urllib3's HTTPError."""
        versions = {resource: self._fill(resource) for resource in PATHS}
        for resource, version in versions.items():
            threading.Thread(
                target=self._follow, args=[resource, version], name=f"watch-{resource}", daemon=True
            ).start()

    def stop(self) -> None:
        """Let the threads end with their next change."""
        self._stop.set()

    def _follow(self, resource: str, version: str) -> None:
        while not self._stop.is_set():
            try:
                self._watch(resource, version)
            except (ApiError, urllib3.exceptions.HTTPError, ValueError, KeyError) as error:
                _log.info("watch of %s: %s", resource, error)
            self._stop.wait(_PAUSE)
            try:
                version = self._fill(resource)
            except (ApiError, urllib3.exceptions.HTTPError, ValueError, KeyError) as error:
                _log.warning("list of %s: %s", resource, error)

    def _watch(self, resource: str, version: str) -> None:
        for event in self._api.watch(PATHS[resource], version):
            if self._stop.is_set() or event["type"] == "ERROR":
                return
            with self.lock:
                if event["type"] == "DELETED":
                    self.store.remove(resource, key_of(event["object"]))
                elif event["type"] in {"ADDED", "MODIFIED"}:
                    self.store.put(resource, event["object"])

    def _fill(self, resource: str) -> str:
        answer: Mapping[str, Any] = self._api.call("GET", PATHS[resource])
        with self.lock:
            present = {key_of(item): item for item in answer["items"]}
            for known in self.store.all(resource):
                if key_of(known) not in present:
                    self.store.remove(resource, key_of(known))
            for item in present.values():
                self.store.put(resource, item)
        return str(answer["metadata"]["resourceVersion"])
