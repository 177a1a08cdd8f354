"""Connections to an API server on which a time-out bounds the whole answer.

urllib3 sets the read time-out on the socket, where it restarts for each read: a server that sends a byte every few
seconds holds its caller without a limit, and each address of the server's name is tried for the whole connect time-out.
Here both are totals."""

import io
import socket
import ssl
import time
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError


def pool(context: ssl.SSLContext | None, *, connections: int) -> urllib3.PoolManager:
    """Create a pool for one API server, which retries nothing by itself."""
    made = urllib3.PoolManager(num_pools=1, maxsize=connections, retries=False, ssl_context=context)
    made.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}
    return made


class TotalTimeoutSocket:
    """Connected socket on which `settimeout` bounds all following reads together, not one read.

    urllib3 sets it once for sending and once for each answer. Writes are bounded by Python itself: `sendall` counts its
    time-out over all of what it sends.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._ends: float | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def settimeout(self, seconds: float | None) -> None:
        """Set the time-out from now on, for everything that follows."""
        self._ends = None if seconds is None else time.monotonic() + seconds
        self._inner.settimeout(seconds)

    def makefile(self, mode: str = "r", buffering: int | None = None, **_: Any) -> Any:
        """Return the file from which http.client reads the answer."""
        if mode != "rb":
            return self._inner.makefile(mode, buffering)
        return io.BufferedReader(_TotalTimeoutReader(self, self._inner.makefile(mode, buffering=0)))

    def start_read(self) -> None:
        """Give the next read the time that is left. Raises TimeoutError when there is none."""
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
        """Try the server's addresses one after the other, each for its share of the time left."""
        limit = float(self.timeout) if isinstance(self.timeout, (int, float)) else None
        ends = None if limit is None else time.monotonic() + limit
        try:
            addresses = socket.getaddrinfo(self.host.strip("[]"), self.port, type=socket.SOCK_STREAM)
        except OSError as unknown:
            raise NewConnectionError(self, f"{self.host} has no address: {unknown}") from unknown
        failure = OSError("no address answered")
        for number, address in enumerate(addresses):
            share = None if ends is None else max(0.01, (ends - time.monotonic()) / (len(addresses) - number))
            try:
                return _connected(address, share)
            except OSError as refused:
                failure = refused
        if isinstance(failure, TimeoutError):
            raise ConnectTimeoutError(self, f"connection to {self.host} timed out after {limit} s")
        raise NewConnectionError(self, f"no connection to {self.host}: {failure}") from failure

    def connect(self) -> None:
        super().connect()
        made: Any = TotalTimeoutSocket(self.sock)
        self.sock = made


class _SecureTotalTimeouts(_TotalTimeouts, HTTPSConnection):
    """Connection over TLS, whose handshake Python bounds as a whole."""


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _TotalTimeouts


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureTotalTimeouts


def _connected(address: tuple[Any, ...], seconds: float | None) -> socket.socket:
    family, kind, protocol, _, where = address
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.settimeout(seconds)
        made.connect(where)
    except OSError:
        made.close()
        raise
    return made
