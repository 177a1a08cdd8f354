"""Injected faults: the API server refuses (429, 500), is slow or hangs up, for some requests or some seconds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from local.cluster.errors import bad_request

STATUSES = (429, 500)


class Reset(StrEnum):
    """Moment at which the connection is closed without an answer: before the request has any effect, or after."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Effect of a fault; exactly one is set. `latency`: seconds from and to, drawn uniformly for each request."""

    status: int | None = None
    latency: tuple[float, float] | None = None
    reset: Reset | None = None

    @classmethod
    def of(cls, body: dict[str, Any]) -> Effect:
        """Read an effect from the control API: `status`, `latency` (a number or [from, to]) or `reset`; without any of
        them it is status 500.

        Raises 400 for several of them or for values that make no sense.
        """
        named = [name for name in ("status", "latency", "reset") if body.get(name) is not None]
        if len(named) > 1:
            raise bad_request(f"a fault has one effect, found {named}")
        if named == ["latency"]:
            return cls(latency=_latency(body["latency"]))
        if named == ["reset"]:
            if body["reset"] not in list(Reset):
                raise bad_request(f"reset: found {body['reset']!r}, expected one of {[kind.value for kind in Reset]}")
            return cls(reset=Reset(body["reset"]))
        status = body.get("status", 500)
        if status not in STATUSES:
            raise bad_request(f"status: found {status}, expected one of {STATUSES}")
        return cls(status=status)

    def as_json(self) -> dict[str, Any]:
        """Return the key that is set."""
        if self.latency is not None:
            return {"latency": list(self.latency)}
        return {"status": self.status} if self.reset is None else {"reset": self.reset.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Request as faults see it: HTTP method, RBAC verb, `pods` or `pods/eviction` (empty for other paths), path."""

    method: str
    verb: str
    resource: str
    path: str


@dataclass(slots=True, kw_only=True)
class Fault:
    """Fault that applies while `remaining` (None: no limit) and until `until` (None: no end); the other fields narrow
    it.

    `path` is a substring of the URL path, `verb` an RBAC verb (`list`, `create` …) or an HTTP method, `resource` a
    resource or subresource as RBAC spells it.
    """

    number: int
    effect: Effect
    remaining: int | None
    until: float | None
    retry_after: int = 1
    path: str = ""
    verb: str = ""
    resource: str = ""
    hits: int = 0

    def applies(self, asked: Asked, now: float) -> bool:
        """Return whether the fault applies to this request."""
        if self.remaining == 0 or (self.until is not None and now >= self.until):
            return False
        if self.path not in asked.path or self.resource not in ("", asked.resource):
            return False
        return self.verb.lower() in ("", asked.verb.lower(), asked.method.lower())

    def hit(self) -> None:
        """Count one request."""
        self.hits += 1
        if self.remaining is not None:
            self.remaining -= 1

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.number,
            **self.effect.as_json(),
            "remaining": self.remaining,
            "retryAfter": self.retry_after,
            "path": self.path,
            "verb": self.verb,
            "resource": self.resource,
            "hits": self.hits,
        }


@dataclass(slots=True, kw_only=True)
class Faults:
    """Faults in order of arrival: the first that refuses or hangs up applies, and independently the first that
    delays.
    """

    clock: Callable[[], float]
    seed: int = 0
    _faults: list[Fault] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def add(
        self,
        effect: Effect,
        *,
        count: int | None = None,
        seconds: float | None = None,
        retry_after: int = 1,
        path: str = "",
        verb: str = "",
        resource: str = "",
    ) -> Fault:
        """Add a fault. Raises 400 when neither count nor seconds limit it."""
        if count is None and seconds is None:
            raise bad_request("a fault needs `count` (requests) or `seconds`")
        until = None if seconds is None else self.clock() + seconds
        fault = Fault(
            number=next(self._numbers),
            effect=effect,
            remaining=count,
            until=until,
            retry_after=retry_after,
            path=path,
            verb=verb,
            resource=resource,
        )
        self._faults.append(fault)
        return fault

    def take(self, asked: Asked) -> Fault | None:
        """Return the refusal or the hang-up for this request, counted down; None when the request passes."""
        return self._first(asked, delays=False)

    def delay(self, asked: Asked) -> float:
        """Return how many seconds this request has to wait before anything happens."""
        fault = self._first(asked, delays=True)
        if fault is None or fault.effect.latency is None:
            return 0.0
        return self._random.uniform(*fault.effect.latency)

    def _first(self, asked: Asked, *, delays: bool) -> Fault | None:
        now = self.clock()
        for fault in self._faults:
            if (fault.effect.latency is not None) is delays and fault.applies(asked, now):
                fault.hit()
                return fault
        return None

    def all(self) -> list[Fault]:
        return list(self._faults)

    def clear(self) -> None:
        self._faults.clear()


def _latency(value: Any) -> tuple[float, float]:
    bounds = value if isinstance(value, list) else [value, value]
    numbers = [bound for bound in bounds if isinstance(bound, int | float) and not isinstance(bound, bool)]
    if len(bounds) != 2 or len(numbers) != 2 or not 0 <= numbers[0] <= numbers[1]:
        raise bad_request(f"latency: found {value!r}, expected seconds or [from, to]")
    return float(numbers[0]), float(numbers[1])
