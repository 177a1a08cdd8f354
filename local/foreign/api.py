"""Requests to the given API server as the kubeconfig's user."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3

from local.cluster.errors import ApiError
from local.foreign.kubeconfig import Access

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
_TIMEOUT = urllib3.Timeout(connect=5, read=60)
_WATCH_SECONDS = 240


class ApiClient:
    """Client of the API server. Thread-safe."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._pool = urllib3.PoolManager(ssl_context=access.tls(), retries=False, maxsize=32, timeout=_TIMEOUT)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str | list[str]] | None = None
    ) -> urllib3.BaseHTTPResponse:
        """Return the server's answer, whatever its status. Raises urllib3's HTTPError without an answer.

        A list among the headers becomes one header line for each of its values.
        """
        lines = urllib3.HTTPHeaderDict(self._access.headers())
        for name, values in (headers or {}).items():
            for value in [values] if isinstance(values, str) else values:
                lines.add(name, value)
        return self._pool.request(method, self._access.url + path, body=body, headers=lines)

    def close(self) -> None:
        """Close the kept connections; the next request opens new ones."""
        self._pool.clear()

    def call(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> Any:
        """Return the JSON answer. Raises ApiError for 4xx and 5xx, urllib3's HTTPError without an answer."""
        data = None if body is None else json.dumps(body).encode()
        answer = self.send(method, path, data, {"content-type": kind, "accept": "application/json"})
        if answer.status >= 400:
            raise refusal(answer.status, answer.data)
        return json.loads(answer.data)

    def watch(self, path: str, version: str) -> Iterator[Mapping[str, Any]]:
        """Iterate over the changes after a resourceVersion until the server ends the watch."""
        query = f"?watch=true&resourceVersion={version}&timeoutSeconds={_WATCH_SECONDS}"
        headers = {**self._access.headers(), "accept": "application/json"}
        timeout = urllib3.Timeout(connect=5, read=_WATCH_SECONDS + 30)
        url = self._access.url + path + query
        answer = self._pool.request("GET", url, headers=headers, preload_content=False, timeout=timeout)
        try:
            if answer.status >= 400:
                raise refusal(answer.status, answer.read())
            yield from _lines(answer)
        finally:
            answer.close()


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[Mapping[str, Any]]:
    rest = b""
    for part in answer.stream(2**16):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.strip():
                yield json.loads(line)


def refusal(code: int, body: bytes) -> ApiError:
    """Return the error of an answer, which is a Status or plain text."""
    try:
        status = json.loads(body)
        return ApiError(code, str(status.get("reason", "")), str(status["message"]))
    except (ValueError, KeyError, AttributeError):
        return ApiError(code, "", body.decode(errors="replace").strip() or f"status {code}")
