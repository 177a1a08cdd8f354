"""Refusals on demand: the API server is overloaded (429) or broken (500) for some requests or some seconds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from local.cluster.errors import bad_request

STATUSES = (429, 500)


@dataclass(slots=True, kw_only=True)
class Fault:
    """Applies while `remaining` (None: no limit) and until `until` (None: no end); `path` and `verb` narrow it.

    `path` is a substring of the URL path, `verb` an RBAC verb (`list`, `create` …) or an HTTP method.
    """

    number: int
    status: int
    remaining: int | None
    until: float | None
    retry_after: int = 1
    path: str = ""
    verb: str = ""
    hits: int = 0

    def applies(self, *, method: str, verb: str, path: str, now: float) -> bool:
        if self.remaining == 0 or (self.until is not None and now >= self.until):
            return False
        return self.path in path and self.verb.lower() in ("", verb.lower(), method.lower())

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.number,
            "status": self.status,
            "remaining": self.remaining,
            "retryAfter": self.retry_after,
            "path": self.path,
            "verb": self.verb,
            "hits": self.hits,
        }


@dataclass(slots=True, kw_only=True)
class Faults:
    """The first fault in order of arrival that applies, counts."""

    clock: Callable[[], float]
    _faults: list[Fault] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def add(
        self,
        *,
        status: int,
        count: int | None = None,
        seconds: float | None = None,
        retry_after: int = 1,
        path: str = "",
        verb: str = "",
    ) -> Fault:
        """Raises 400 for a status other than 429 and 500, or when neither count nor seconds limit it."""
        if status not in STATUSES:
            raise bad_request(f"status: found {status}, expected one of {STATUSES}")
        if count is None and seconds is None:
            raise bad_request("a fault needs `count` (requests) or `seconds`")
        until = None if seconds is None else self.clock() + seconds
        fault = Fault(
            number=next(self._numbers),
            status=status,
            remaining=count,
            until=until,
            retry_after=retry_after,
            path=path,
            verb=verb,
        )
        self._faults.append(fault)
        return fault

    def take(self, *, method: str, verb: str, path: str) -> Fault | None:
        """The fault for this request, counted down; None when it passes."""
        now = self.clock()
        for fault in self._faults:
            if fault.applies(method=method, verb=verb, path=path, now=now):
                fault.hits += 1
                if fault.remaining is not None:
                    fault.remaining -= 1
                return fault
        return None

    def all(self) -> list[Fault]:
        return list(self._faults)

    def clear(self) -> None:
        self._faults.clear()
