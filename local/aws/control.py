"""Control API under ``/_local/``: actions of a test or the demo on this AWS that no AWS call offers.

Each route is one small function in ``controls``; this module only selects it and turns its result into JSON. Bad input
is answered with 400 and a sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Control request: path parameters, query parameters and the JSON body (an empty object if there is none)."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]


class BadRequest(Exception):
    """Error: the request lacks a required value, which the message names."""


Route = Callable[[Request], Any]


class Control:
    """Table of routes, thread-safe as far as the routes are."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], Route]] = []

    def add(self, method: str, path: str, route: Route) -> None:
        """Serve ``path`` below ``/_local/``; ``{name}`` stands for one path segment."""
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
        self._routes.append((method, re.compile(f"^/_local/{pattern}$"), route))

    def answer(self, method: str, path: str, query: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Carry out one request."""
        for wanted, pattern, route in self._routes:
            match = pattern.match(path)
            if match is None or wanted != method:
                continue
            try:
                parsed = json.loads(body) if body else {}
                request = Request(path=match.groupdict(), query=dict(parse_qsl(query)), body=parsed)
                return _json(200, route(request))
            except (BadRequest, json.JSONDecodeError, TypeError, ValueError, KeyError) as refused:
                return _json(400, {"error": f"{type(refused).__name__}: {refused}"})
        return _json(404, {"error": f"no {method} {path}"})


def _json(status: int, value: Any) -> tuple[int, dict[str, str], bytes]:
    text = json.dumps({} if value is None else value, default=str)
    return status, {"Content-Type": "application/json"}, text.encode()
