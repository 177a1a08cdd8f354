"""Requests to one API server: connection, token, retries and paging. It knows no resource.

Retried within a small budget: connection errors, time-outs, 5xx and throttling; a refused token once. Every request
that changes something carries a precondition or a deterministic name, so that sending it twice is harmless.

A time-out bounds the whole answer. `within` bounds all requests of a caller together: of several tries,
none begins and none lasts beyond it.

Connections to an API server on which a time-out bounds the whole answer.

urllib3 sets the read time-out on the socket, where it restarts for each read: a server that sends a byte every few
seconds holds its caller without a limit. Its connect time-out restarts for each address of the server's name and for
the TLS handshake. Here both are totals; only the look-up of the name is not bounded."""

from __future__ import annotations

import io
import json
import random
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlencode

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from leeward.adapters.kubernetes.answers import Answer, ApiRequest, as_error
from leeward.errors import ClusterUnreachableError, TerminalError, ThrottledError
from leeward.model.blocked import unanswered
from leeward.time_budget import TimeBudget

if TYPE_CHECKING:
    from leeward.ports.clock import Clock


SHORTEST_SECONDS = 0.01  # for a try to connect, or for a handshake
CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0  # from the request to the last byte of its answer
LIST_SECONDS = 20.0  # the same for a list, whose answer may be long
LEAST_SECONDS = 0.05  # a try with less than this left is not begun
ATTEMPTS = 4
BUDGET = timedelta(seconds=12)  # no further try is begun after this
FIRST_PAUSE_SECONDS = 0.2
LONGEST_RETRY_AFTER_SECONDS = 32.0  # API priority and fairness asks for 1, 2, 4, 8, 16 and 32
THROTTLES = 6  # answers that ask for a pause, beside the attempts
CONFLICT_PAUSE_SECONDS = 0.02, 0.2  # from and to: random, so that two writers of an object do not collide again
PAGE_SIZE = 500  # of pods some 3 MB
CONNECTIONS = 16
_READ_TIMEOUT = re.compile(r"read timeout=([\d.]+)")
_CONNECTION = re.compile(r"^\w+\(host=.*?, port=\d+\): ")
T = TypeVar("T")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address of an API server. `ca` in PEM; None trusts the system's CAs."""

    url: str
    ca: str | None = None


class KubeConfig(Protocol):
    """Endpoint of a cluster and a token for it, as a kubeconfig has them."""

    def endpoint(self, *, fresh: bool = False) -> Endpoint:
        """Return the API server; `fresh`: look it up again, the last one did not answer."""
        ...

    def token(self, *, fresh: bool = False) -> str:
        """Return the bearer token; `fresh`: a new one, the last was refused."""
        ...


@dataclass(slots=True)
class _Connected:
    """Kept connections, shared by all views of one client. `lost`: the endpoint did not answer the last time."""

    pool: tuple[Endpoint, urllib3.PoolManager] | None = None
    lost: bool = False


class ClusterClient:
    """Client of one API server, safe to share between threads. Nothing is connected before the first request."""

    def __init__(
        self,
        cluster: str,
        kube_config: KubeConfig,
        clock: Clock,
        *,
        budget: TimeBudget | None = None,
        connected: _Connected | None = None,
    ) -> None:
        self.cluster = cluster
        self._kube_config = kube_config
        self._clock = clock
        self._budget = budget
        self._connected = connected or _Connected()

    def within(self, budget: TimeBudget) -> ClusterClient:
        """Return the same client, over the same connections, whose requests end with the budget."""
        return ClusterClient(self.cluster, self._kube_config, self._clock, budget=budget, connected=self._connected)

    def for_seconds(self, seconds: float) -> ClusterClient:
        """Return the same client `within` a budget that begins now, or the present one if that ends earlier."""
        return self.within(TimeBudget.of(self._clock, seconds).narrower(self._budget))

    def now(self) -> datetime:
        """Return the time of the clock that its pauses use."""
        return self._clock.now()

    def ask(self, request: ApiRequest) -> Mapping[str, Any]:
        """Return the body of a good answer; a bad one raises its error."""
        answer = self.send(request)
        if not answer.ok:
            raise as_error(answer, request, self.cluster)
        return answer.body

    def send(self, request: ApiRequest) -> Answer:
        """Return any answer except those that a later try may improve; for a `once` request, every answer. Raises
        ClusterUnreachableError, ThrottledError.
        """
        began = self._clock.now()
        answer: Answer | None = None
        trouble = ""
        refreshed, attempt, throttles = False, 0, 0
        while attempt < ATTEMPTS:
            attempt += 1
            if self._left < LEAST_SECONDS:
                trouble = trouble or "no time is left for it"
                break
            try:
                answer = self._once(request)
            except (urllib3.exceptions.HTTPError, ValueError) as error:  # ValueError: no JSON, a body cut short
                answer, trouble = None, _trouble(error, request)
                if request.once and (attempt > 1 or isinstance(error, urllib3.exceptions.ReadTimeoutError)):
                    break
            if answer is not None and answer.status == 401 and not refreshed:
                refreshed, attempt = True, attempt - 1  # a token that has expired is no try
                self._kube_config.token(fresh=True)
                continue
            if answer is not None and (request.once or not (answer.broken or answer.throttled)):
                return answer
            asked = answer.retry_after if answer is not None and throttles < THROTTLES else None
            if not (self._wait(attempt, began) if asked is None else self._rest(asked)):
                break
            if asked is not None:  # a pause that the server asks for is no try
                throttles, attempt = throttles + 1, attempt - 1
        raise self._given_up(request, answer, trouble)

    def list(self, request: ApiRequest, parse: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
        """Return all items, each parsed (reduced) as its page arrives; an expired list is restarted once."""
        try:
            return self._pages(request, parse)
        except _ListExpiredError:
            pass
        try:
            return self._pages(request, parse)
        except _ListExpiredError as error:
            raise ClusterUnreachableError(f"{self.cluster}: {request}: the list expired twice: {error}") from error

    def pause_after_conflict(self) -> None:
        """Wait for a moment of random length before the object is read and written again."""
        self._clock.sleep(random.uniform(*CONFLICT_PAUSE_SECONDS))

    def close(self) -> None:
        """Close the kept connections; the next request opens new ones."""
        if self._connected.pool is not None:
            self._connected.pool[1].clear()
            self._connected.pool = None

    @property
    def _left(self) -> float:
        """Seconds that one try may take."""
        return CONNECT_SECONDS + LIST_SECONDS if self._budget is None else self._budget.left

    def _pages(self, request: ApiRequest, parse: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
        """Read all pages, without a resourceVersion unless the request asks for the cache: with `resourceVersion=0` the
        API server ignores the limit and sends everything at once, which no function's memory holds for a whole cluster.
        Without it each list is consistent, and since Kubernetes 1.31 its pages come from the watch cache as well.
        """
        found: list[T] = []
        query = {**request.query, "limit": str(PAGE_SIZE)}
        while True:
            page = replace(request, query=query)
            answer = self.send(page)
            if answer.status == 410 and "continue" in query:
                raise _ListExpiredError(answer.message)
            if not answer.ok:
                raise as_error(answer, page, self.cluster)
            found.extend(parse(raw) for raw in answer.body.get("items") or ())
            rest = (answer.body.get("metadata") or {}).get("continue")
            if not rest:
                return tuple(found)
            query = query | {"continue": rest}

    def _once(self, request: ApiRequest) -> Answer:
        connections, url = self._server()
        headers = {"Authorization": f"Bearer {self._kube_config.token()}", "Accept": "application/json"}
        if request.verb == "list":
            headers["Accept-Encoding"] = "gzip"
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        query = f"?{urlencode(request.query)}" if request.query else ""
        left = max(LEAST_SECONDS, self._left)  # endpoint and token may have taken some of it
        longest = min(left, _longest(request))
        response = connections.request(
            request.method,
            f"{url}{request.path}{query}",
            body=json.dumps(request.body) if request.body is not None else None,
            headers=headers,
            redirect=False,
            timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, longest), read=longest, total=left),
        )
        return Answer(
            status=response.status,
            body=_parsed(response.status, response.data),
            retry_after=_seconds(response.headers.get("Retry-After")),
        )

    def _server(self) -> tuple[urllib3.PoolManager, str]:
        kept = self._connected
        endpoint = self._kube_config.endpoint(fresh=kept.lost)
        kept.lost = False
        if kept.pool is None or kept.pool[0] != endpoint:
            kept.pool = (endpoint, _pool(endpoint))
        return kept.pool[1], endpoint.url.rstrip("/")

    def _wait(self, attempt: int, began: datetime) -> bool:
        """Pause before the next try; False when there is to be none."""
        pause = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1)
        if attempt >= ATTEMPTS or self._clock.now() + timedelta(seconds=pause) > began + BUDGET:
            return False
        if self._budget is not None and pause + LEAST_SECONDS > self._budget.left:
            return False
        self._clock.sleep(pause)
        return True

    def _rest(self, asked: float) -> bool:
        """Pause for as long as a busy server asks for, at most a quarter of the caller's time: a drain's step has hooks
        to answer, and its own pause costs less. False where that is too long.
        """
        pause = max(asked, FIRST_PAUSE_SECONDS)
        if asked > LONGEST_RETRY_AFTER_SECONDS or (self._budget is not None and pause > self._budget.left / 4):
            return False
        self._clock.sleep(pause)
        return True

    def _given_up(self, request: ApiRequest, answer: Answer | None, trouble: str) -> Exception:
        if answer is None:
            # The cluster may have been recreated under its old name: look it up next time. A webhook that keeps one
            # eviction waiting says nothing about that.
            self._connected.lost = self._connected.lost or not request.once
            return ClusterUnreachableError(f"{self.cluster}: {request}: {trouble}")
        if answer.throttled:
            return ThrottledError(f"{self.cluster}: {request}: {answer.message}", answer.retry_after)
        return as_error(answer, request, self.cluster)


def _longest(request: ApiRequest) -> float:
    return request.read_seconds or (LIST_SECONDS if request.verb == "list" else READ_SECONDS)


def _trouble(error: Exception, request: ApiRequest) -> str:
    """Return why a try failed; urllib3's own sentences about a time-out and a connection begin with an object."""
    if not isinstance(error, urllib3.exceptions.ReadTimeoutError):
        return _CONNECTION.sub("", str(error))
    given = _READ_TIMEOUT.search(str(error))
    return unanswered(float(given[1]) if given else _longest(request), request.hint)


class _ListExpiredError(Exception):
    """Error for 410 on a continue token: etcd has compacted the version of the list."""


def _pool(endpoint: Endpoint) -> urllib3.PoolManager:
    context = _tls_context(endpoint) if endpoint.url.startswith("https") else None
    return pool(context, connections=CONNECTIONS)


def _tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """Build a TLS context that trusts the cluster's CA alone; chain, expiry and host name are verified.

    Strict X.509 checks, on by default from Python 3.13, are cleared: the CA of an EKS cluster created on Kubernetes
    1.16 or older has no key identifiers, and upgrades never replace it (kubernetes-client/python#2394). Raises
    TerminalError where the CA data hold no certificate.
    """
    try:
        context = ssl.create_default_context(cadata=endpoint.ca)
    except ssl.SSLError as error:
        raise TerminalError(f"{endpoint.url}: found no certificate in the cluster's CA data: {error}") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _parsed(status: int, data: bytes) -> Mapping[str, Any]:
    """Parse the JSON of an answer that counts; the text that a proxy sends with an error becomes its message."""
    try:
        body = json.loads(data) if data else {}
    except ValueError:
        if status < 400:
            raise
        body = {"message": data[:200].decode(errors="replace")}
    return body if isinstance(body, dict) else {}


def _seconds(text: str | None) -> float | None:
    """Parse Retry-After in seconds; its other form, a date, is not used by API servers."""
    return float(text) if text and text.isdigit() else None
