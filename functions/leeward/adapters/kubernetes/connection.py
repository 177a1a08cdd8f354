"""Connections to an API server on which a time-out bounds the whole answer.

urllib3 sets the read time-out on the socket, where it restarts for each read: a server that sends a byte every few
seconds holds its caller without a limit. Its connect time-out restarts for each address of the server's name and for
the TLS handshake. Here both are totals; only the look-up of the name is not bounded."""

import io
import socket
import ssl
import time
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

SHORTEST_SECONDS = 0.01  # for a try to connect, or for a handshake


def pool(context: ssl.SSLContext | None, *, connections: int) -> urllib3.PoolManager:
    """Create a pool of at most `connections` kept connections to one API server. It retries nothing by itself."""
    manager = urllib3.PoolManager(num_pools=1, maxsize=connections, retries=False, ssl_context=context)
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}
    return manager


class TotalTimeoutSocket:
    """Connected socket on which `settimeout` bounds all following reads together, not each read.

    urllib3 calls it once before a request is sent and once before its answer is read. Writes need nothing more: the
    time-out of Python's `sendall` is a total already.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._ends: float | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def settimeout(self, seconds: float | None) -> None:
        """Set the time, in seconds from now, at which reads end; None: no limit."""
        self._ends = None if seconds is None else time.monotonic() + seconds
        self._inner.settimeout(seconds)

    def makefile(self, mode: str = "r", buffering: int | None = None, **_: Any) -> Any:
        """Return the file from which http.client reads the answer; its reads share the time-out."""
        if mode != "rb":
            return self._inner.makefile(mode, buffering)
        return io.BufferedReader(_TotalTimeoutReader(self, self._inner.makefile(mode, buffering=0)))

    def start_read(self) -> None:
        """Set the socket's time-out to the time that is left. Raises TimeoutError when none is left."""
        if self._ends is not None:
            left = self._ends - time.monotonic()
            if left <= 0:
                raise TimeoutError("the answer did not end in time")
            self._inner.settimeout(left)


class _TotalTimeoutReader(io.RawIOBase):
    def __init__(self, owner: TotalTimeoutSocket, raw: Any) -> None:
        super().__init__()
        self._owner, self._raw = owner, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._owner.start_read()
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TotalTimeouts(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        """Try the server's addresses one after the other, each for its share of the time left. The TLS handshake has
        what is left then.
        """
        limit = float(self.timeout) if isinstance(self.timeout, (int, float)) else None
        ends = None if limit is None else time.monotonic() + limit
        try:
            addresses = socket.getaddrinfo(self.host.strip("[]"), self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise NewConnectionError(self, f"{self.host} has no address: {error}") from error
        failure = OSError("no address answered")
        for number, address in enumerate(addresses):
            share = None if ends is None else _left(ends) / (len(addresses) - number)
            try:
                connected = _connected(address, share)
            except OSError as error:
                failure = error
                continue
            connected.settimeout(None if ends is None else _left(ends))
            return connected
        if isinstance(failure, TimeoutError):
            raise ConnectTimeoutError(self, f"connection to {self.host} timed out after {limit} s")
        raise NewConnectionError(self, f"no connection to {self.host}: {failure}") from failure

    def connect(self) -> None:
        super().connect()
        wrapped: Any = TotalTimeoutSocket(self.sock)
        self.sock = wrapped


class _SecureTotalTimeouts(_TotalTimeouts, HTTPSConnection):
    """Connection over TLS, whose handshake Python bounds as a whole."""


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _TotalTimeouts


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureTotalTimeouts


def _left(ends: float) -> float:
    """Return the seconds until `ends`, at least the shortest time-out: one of 0 would make the socket non-blocking."""
    return max(SHORTEST_SECONDS, ends - time.monotonic())


def _connected(address: tuple[Any, ...], seconds: float | None) -> socket.socket:
    family, kind, protocol, _, endpoint = address
    connected = socket.socket(family, kind, protocol)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(seconds)
        connected.connect(endpoint)
    except OSError:
        connected.close()
        raise
    return connected
