"""TLS server of one application, with uvicorn in a thread of its own."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine

import uvicorn
from starlette.applications import Starlette

from local.cluster.certificates import ServerIdentity, load_chain, new_identity

_KEEP_ALIVE = 300  # seconds; the default of 5 collides with kubectl drain's retry every 5 s
_START_TIMEOUT = 10.0
_HANG_UP_AFTER = 0.1  # seconds from stop until connections are cut


class ServerDidNotStart(RuntimeError):
    """Error: the port is taken, or uvicorn ended or did not answer in time."""


async def _nothing() -> None:
    """Run nothing beside the server."""


class HttpsServer:
    """Server with a certificate authority of its own; port 0 selects a free one."""

    def __init__(self, *, name: str, host: str = "127.0.0.1", port: int = 0) -> None:
        self._name, self._host, self._wanted_port = name, host, port
        self._identity = new_identity((host, "127.0.0.1", "localhost"), now=datetime.datetime.now(datetime.UTC))
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

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

    def start(self, application: Starlette, beside: Callable[[], Coroutine[None, None, None]] = _nothing) -> None:
        """Serve the application; `beside` runs on the same loop until the stop. Raises ServerDidNotStart."""
        self._socket = _listen(self._host, self._wanted_port)
        self._server = uvicorn.Server(self._config(application))
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(beside)), name=f"https-{self._name}", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _START_TIMEOUT
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise ServerDidNotStart(f"no answer on {self._host} within {_START_TIMEOUT:.0f} s")
            time.sleep(0.002)

    def stop(self, before: Callable[[], None] | None = None) -> None:
        """Give answers in progress a moment, then hang up and stop. Idempotent. `before` runs on the loop first."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        if self.loop is not None and self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._close, before)
        self._thread.join(timeout=10)
        if self._socket is not None:
            self._socket.close()

    def hang_up(self, client: tuple[str, int]) -> None:
        """Cut the connection from that address; runs on the loop."""
        if self._server is not None:
            for connection in list(self._server.server_state.connections):
                if connection.transport.get_extra_info("peername")[:2] == client:
                    connection.transport.abort()

    def _config(self, application: Starlette) -> uvicorn.Config:
        return uvicorn.Config(
            application,
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

    async def _serve(self, beside: Callable[[], Coroutine[None, None, None]]) -> None:
        self.loop = asyncio.get_running_loop()
        task = asyncio.create_task(beside())
        assert self._server is not None
        assert self._socket is not None
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._abort_connections()
            await asyncio.sleep(0)  # lets the aborted transports close their sockets

    def _close(self, before: Callable[[], None] | None) -> None:
        if before is not None:
            before()
        if self.loop is not None:
            self.loop.call_later(_HANG_UP_AFTER, self._abort_connections)

    def _abort_connections(self) -> None:
        """Abort connections instead of `close`: over TLS that waits for the client's close, which an idle client does
        not send.
        """
        if self._server is not None:
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()


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
    """Return the TLS context of the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_chain(context, identity.certificate_pem, identity.key_pem)
    return context
