"""A cluster in virtual time, and a served one with a client."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings
from tests.local.cluster.builders import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab(nodes=3)


class Client:
    """Speaks to a served cluster as one user."""

    def __init__(self, server: ClusterServer, token: str | None) -> None:
        context = ssl.create_default_context(cadata=server.ca_pem)
        self._pool = urllib3.PoolManager(ssl_context=context, retries=False, timeout=60)
        self._url = server.url
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> urllib3.BaseHTTPResponse:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        data = None if body is None else json.dumps(body).encode()
        return self._pool.request(method, self._url + path, body=data, headers={**self._headers, **named})

    def json(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        answer = self.request(method, path, body, **headers)
        return answer.status, json.loads(answer.data)

    def get(self, path: str) -> Any:
        status, body = self.json("GET", path)
        assert status == 200, body
        return body

    def stream(self, path: str) -> urllib3.BaseHTTPResponse:
        return self._pool.request("GET", self._url + path, headers=self._headers, preload_content=False)

    def close(self) -> None:
        self._pool.clear()


class Served:
    """A running server and its admin's client."""

    def __init__(self, server: ClusterServer) -> None:
        self.server = server
        self.admin = Client(server, server.admin_token)
        self._clients = [self.admin]

    def client(self, token: str | None) -> Client:
        self._clients.append(Client(self.server, token))
        return self._clients[-1]

    def wait(self, condition: Any, seconds: float = 60.0) -> Any:
        """Until `condition(model)` is truthy."""
        deadline = time.monotonic() + seconds
        while True:
            with self.server.lock:
                found = condition(self.server.model)
            if found:
                return found
            assert time.monotonic() < deadline, "the cluster did not get there in time"
            time.sleep(0.01)

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture
def served() -> Iterator[Served]:
    settings = ClusterSettings(pod_start=0.05, termination_scale=0.01, pod_gc_period=0, pod_gc_quarantine=0.05)
    with ClusterServer(settings=settings) as server:
        running = Served(server)
        yield running
        running.close()
