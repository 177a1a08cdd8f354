"""Cluster behind TLS: uvicorn in a thread of its own, and the loop that runs the controllers.

`ClusterServer` is used in process by tests (`with ClusterServer() as server`) and by `python -m local.cluster`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from starlette.applications import Starlette

from local.cluster.authn import AccessEntry, Authenticator, Identify
from local.cluster.bootstrap import component_statuses
from local.cluster.faults import Faults
from local.cluster.http_api import HttpApi
from local.cluster.https import HttpsServer
from local.cluster.kubeconfig import Endpoint, write_files
from local.cluster.lists import Pager
from local.cluster.local_api import LocalApi
from local.cluster.model import Cluster
from local.cluster.rbac import Authorizer, bootstrap_objects
from local.cluster.record_api import RecordApi
from local.cluster.settings import ClusterSettings
from local.cluster.store import Change
from local.cluster.verbs import Verbs
from local.cluster.watch import WatchHub

_log = logging.getLogger("leeward.local.cluster")
_LONGEST_PAUSE = 0.5  # seconds between two reads of the clock, also when nothing is due


class ClusterServer:
    """Context manager of a cluster's server. `model` may be used directly while holding `lock`; then the controllers
    run at once.

    `port` 0 selects a free one. `clock` in seconds since 1970. For `settings.start_window` seconds after the start no
    role is known: requests answer 403 and the health check 500, as those of a real server do at first.
    """

    def __init__(
        self,
        *,
        name: str = "demo",
        host: str = "127.0.0.1",
        port: int = 0,
        settings: ClusterSettings | None = None,
        seed: int = 0,
        clock: Callable[[], float] = time.time,
        identify: Identify | None = None,
        access_entries: Sequence[AccessEntry] = (),
    ) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.admin_token = secrets.token_urlsafe(32)
        self.model = Cluster(clock=clock, seed=seed, settings=settings)
        for resource, obj in [*bootstrap_objects(), *component_statuses()]:
            self.model.create(resource, obj)
        self.faults = Faults(clock=clock, seed=seed)
        self.authenticator = Authenticator(
            admin_token=self.admin_token,
            cluster_name=name,
            clock=clock,
            identify=identify,
            entries=tuple(access_entries),
        )
        self.authorizer = Authorizer(self.model.store, clock)
        self._clock = clock
        self._hub = WatchHub()
        self._https = HttpsServer(name=name, host=host, port=port)
        self._changed = asyncio.Event()
        self._wake_pending = False

    @property
    def port(self) -> int:
        return self._https.port

    @property
    def url(self) -> str:
        return self._https.url

    @property
    def ca_pem(self) -> str:
        return self._https.ca_pem

    @property
    def endpoint(self) -> Endpoint:
        version = self.model.world.settings.version
        return Endpoint(name=self.name, url=self.url, port=self.port, ca_pem=self.ca_pem, version=version)

    def write_files(self, directory: Path) -> None:
        """Write kubeconfig, ca.crt, admin-token, endpoint.json."""
        write_files(directory, self.endpoint, self.admin_token)

    def __enter__(self) -> Self:
        self.authorizer.restart(self.model.world.settings.start_window)
        self._https.start(self._application(), self._drive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End open watches and requests and stop. Idempotent."""
        self._https.stop(self._hub.close)

    def _application(self) -> Starlette:
        verbs = Verbs(cluster=self.model, lock=self.lock, hub=self._hub, pager=Pager(self.model.store))
        local = LocalApi(
            cluster=self.model,
            lock=self.lock,
            records=RecordApi(history=self.model.history, authenticator=self.authenticator),
            authorizer=self.authorizer,
            faults=self.faults,
            pager=verbs.pager,
        )
        api = HttpApi(
            verbs=verbs,
            authenticator=self.authenticator,
            authorizer=self.authorizer,
            faults=self.faults,
            local=local,
            version=self.model.world.settings.version,
            hang_up=self._https.hang_up,
        )
        return api.application()

    def _on_change(self, change: Change) -> None:
        """Wake watchers and controllers; called inside every write, in the writing thread."""
        self._hub.announce(change)
        loop = self._https.loop
        if loop is not None and not self._wake_pending and not loop.is_closed():
            self._wake_pending = True
            loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._wake_pending = False
        self._changed.set()

    async def _drive(self) -> None:
        """Step the model after every change and whenever something is due."""
        self._hub.start(asyncio.get_running_loop())
        self.model.observe(self._on_change)
        while True:
            self._changed.clear()
            pause = self._step()
            try:
                await asyncio.wait_for(self._changed.wait(), pause)
            except TimeoutError:
                continue

    def _step(self) -> float:
        try:
            with self.lock:
                now = self._clock()
                due = self.model.step(now)
        except Exception:  # one bad object must not stop the cluster; the log says which
            _log.exception("a controller failed")
            return _LONGEST_PAUSE
        return _LONGEST_PAUSE if due is None else min(_LONGEST_PAUSE, max(0.001, due - now))
