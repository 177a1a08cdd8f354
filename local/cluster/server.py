"""Cluster behind TLS: uvicorn in a thread of its own, and the loop that runs the controllers.

`ClusterServer` is used in process by tests (`with ClusterServer() as server`) and by `python -m local.cluster`.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import secrets
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from local.cluster.authn import AccessEntry, Authenticator, Identify
from local.cluster.bootstrap import component_statuses
from local.cluster.certificates import ServerIdentity, new_identity
from local.cluster.faults import Faults
from local.cluster.http_api import HttpApi
from local.cluster.kubeconfig import Endpoint, write_files
from local.cluster.lists import Pager
from local.cluster.local_api import LocalApi
from local.cluster.model import Cluster
from local.cluster.rbac import Authorizer, bootstrap_objects
from local.cluster.settings import ClusterSettings
from local.cluster.store import Change
from local.cluster.verbs import Verbs
from local.cluster.watch import WatchHub

_log = logging.getLogger("leeward.local.cluster")
_KEEP_ALIVE = 300  # seconds; the default of 5 collides with kubectl drain's retry every 5 s
_START_TIMEOUT = 10.0
_HANG_UP_AFTER = 0.1  # seconds from stop until connections are cut
_LONGEST_PAUSE = 0.5  # seconds between two reads of the clock, also when nothing is due


class ServerDidNotStart(RuntimeError):
    """Error: the port is taken, or uvicorn ended or did not answer in time."""


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
        self._identity = new_identity((host, "127.0.0.1", "localhost"), now=datetime.datetime.now(datetime.UTC))
        self._host, self._wanted_port = host, port
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._wake_pending = False

    @property
    def port(self) -> int:
        if self._socket is None:
            raise ServerDidNotStart("the server has not been started")
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"https://{self._host}:{self.port}"

    @property
    def ca_pem(self) -> str:
        return self._identity.ca_pem

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(name=self.name, url=self.url, port=self.port, ca_pem=self.ca_pem)

    def write_files(self, directory: Path) -> None:
        """Write kubeconfig, ca.crt, admin-token, endpoint.json."""
        write_files(directory, self.endpoint, self.admin_token)

    def __enter__(self) -> Self:
        self._socket = _listen(self._host, self._wanted_port)
        self._server = uvicorn.Server(self._config())
        self._thread = threading.Thread(target=self._run, name=f"cluster-{self.name}", daemon=True)
        self._thread.start()
        self.authorizer.restart(self.model.world.settings.start_window)
        deadline = time.monotonic() + _START_TIMEOUT
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise ServerDidNotStart(f"no answer on {self._host} within {_START_TIMEOUT:.0f} s")
            time.sleep(0.002)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End open watches and requests and stop. Idempotent."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._close)
        self._thread.join(timeout=10)
        if self._socket is not None:
            self._socket.close()

    def _config(self) -> uvicorn.Config:
        verbs = Verbs(cluster=self.model, lock=self.lock, hub=self._hub, pager=Pager(self.model.store))
        local = LocalApi(
            cluster=self.model,
            lock=self.lock,
            authenticator=self.authenticator,
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
            hang_up=self._hang_up,
        )
        return uvicorn.Config(
            api.application(),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=1,
            ssl_context_factory=lambda _config, _default: _tls(self._identity),
        )

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._hub.start(self._loop)
        self.model.observe(self._on_change)
        driver = asyncio.create_task(self._drive())
        assert self._server is not None
        assert self._socket is not None
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            driver.cancel()
            await asyncio.gather(driver, return_exceptions=True)
            self._abort_connections()
            await asyncio.sleep(0)  # lets the aborted transports close their sockets

    def _close(self) -> None:
        """End the watches, give answers in progress a moment, then hang up; runs on the loop."""
        self._hub.close()
        if self._loop is not None:
            self._loop.call_later(_HANG_UP_AFTER, self._abort_connections)

    def _abort_connections(self) -> None:
        """Abort connections instead of `close`: over TLS that waits for the client's close, which an idle client does
        not send.
        """
        if self._server is not None:
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()

    def _hang_up(self, client: tuple[str, int]) -> None:
        """Cut the connection from that address; runs on the loop."""
        if self._server is not None:
            for connection in list(self._server.server_state.connections):
                if connection.transport.get_extra_info("peername")[:2] == client:
                    connection.transport.abort()

    def _on_change(self, change: Change) -> None:
        """Wake watchers and controllers; called inside every write, in the writing thread."""
        self._hub.announce(change)
        if self._loop is not None and not self._wake_pending and not self._loop.is_closed():
            self._wake_pending = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._wake_pending = False
        self._changed.set()

    async def _drive(self) -> None:
        """Step the model after every change and whenever something is due."""
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


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else no TCP_NODELAY: 47 ms a request
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as failure:
        listener.close()
        raise ServerDidNotStart(f"cannot listen on {host}:{port}: {failure.strerror}") from failure
    return listener


def _tls(identity: ServerIdentity) -> ssl.SSLContext:
    """Return the TLS context. Keys are on disk only while they are loaded."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate.write_text(identity.certificate_pem)
        key.touch(mode=0o600)
        key.write_text(identity.key_pem)
        context.load_cert_chain(certificate, key)
    return context
