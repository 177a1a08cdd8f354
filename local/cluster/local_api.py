"""Emulator's own switches and records under /_local/, for the admin only.

| request | does |
|---|---|
| GET /_local/history[?kind=] | the record of facts |
| GET /_local/pdb-violations[?all=true] | budgets broken by evictions and deletes (all: by dying nodes too) |
| GET, PUT /_local/access-entries | EKS access entries, a list of {principalArn, kubernetesGroups, username} |
| GET /_local/access-used | what each user was allowed to do, counted |
| GET, POST, DELETE /_local/faults | an effect (below) and {count, seconds, retryAfter, path, verb, resource} |
| PUT /_local/nodes/NAME/ready | {"status": "True" / "False" / "Unknown"}: the Ready condition |
| PUT /_local/nodes/NAME/condition | {type, status, reason}: a condition, as the EKS node monitoring agent writes it |
| PUT /_local/start-window | {"seconds": 0.8}: 403 for all but the admin and a failing health check, as after a start |
| POST /_local/compact | forgets watch logs and open `continue` tokens: both answer 410 afterwards |

The effect of a fault is one of {status: 429 / 500}, {latency: SECONDS / [FROM, TO]} and {reset: before / after}: the
connection is closed without an answer, before or after the request has had its effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock
from typing import Any

from starlette.responses import Response

from local.cluster.errors import bad_request, no_such_path
from local.cluster.faults import Effect, Faults
from local.cluster.lists import Pager
from local.cluster.model import Cluster
from local.cluster.nodes import monitored_condition
from local.cluster.objects import set_condition
from local.cluster.rbac import Authorizer
from local.cluster.record_api import PREFIX, Handler, Query, RecordApi, only, parsed_body
from local.cluster.resources import BY_PLURAL
from local.cluster.verbs import json_response

_FAULT_KEYS = {"status", "latency", "reset", "count", "seconds", "retryAfter", "path", "verb", "resource"}


@dataclass(slots=True, kw_only=True)
class LocalApi:
    cluster: Cluster
    lock: RLock
    records: RecordApi
    authorizer: Authorizer
    faults: Faults
    pager: Pager

    def answer(self, method: str, path: str, query: Query, raw: bytes) -> Response:
        """Answer a request. Raises 400, 404, 405 as ApiError."""
        rest = path.removeprefix(PREFIX).strip("/")
        body = parsed_body(raw)
        handlers: dict[str, Handler] = {
            **self.records.handlers(),
            "access-used": self._access_used,
            "faults": self._faults,
            "compact": self._compact,
            "start-window": self._start_window,
        }
        with self.lock:
            if rest.startswith("nodes/") and rest.endswith("/ready"):
                return json_response(self._node_ready(rest.split("/")[1], method, body))
            if rest.startswith("nodes/") and rest.endswith("/condition"):
                return json_response(self._node_condition(rest.split("/")[1], method, body))
            handler = handlers.get(rest)
            if handler is None:
                raise no_such_path()
            return json_response(handler(method, query, body))

    def _access_used(self, method: str, _query: Query, _body: Any) -> Any:
        only(method, "GET")
        return [
            {"user": used.user, "verb": used.verb, "apiGroup": used.group, "resource": used.resource, "count": count}
            for used, count in self.authorizer.used.items()
        ]

    def _faults(self, method: str, _query: Query, body: Any) -> Any:
        only(method, "GET", "POST", "DELETE")
        if method == "DELETE":
            self.faults.clear()
        if method == "POST":
            unknown = sorted(set(body) - _FAULT_KEYS)
            if unknown:
                raise bad_request(f"faults: unknown keys {unknown}, expected some of {sorted(_FAULT_KEYS)}")
            fault = self.faults.add(
                Effect.of(body),
                count=body.get("count"),
                seconds=body.get("seconds"),
                retry_after=body.get("retryAfter", 1),
                path=body.get("path", ""),
                verb=body.get("verb", ""),
                resource=body.get("resource", ""),
            )
            return fault.as_json()
        return [fault.as_json() for fault in self.faults.all()]

    def _compact(self, method: str, _query: Query, _body: Any) -> Any:
        only(method, "POST")
        for plural in BY_PLURAL:
            self.cluster.store.forget(plural)
        self.pager.expire()
        return {}

    def _start_window(self, method: str, _query: Query, body: Any) -> Any:
        only(method, "PUT")
        seconds = body.get("seconds") if isinstance(body, dict) else None
        if not isinstance(seconds, int | float) or seconds < 0:
            raise bad_request(f"seconds: found {seconds!r}, expected a number that is not negative")
        self.authorizer.restart(seconds)
        return {}

    def _node_ready(self, name: str, method: str, body: Any) -> Any:
        only(method, "PUT")
        status = body.get("status") if isinstance(body, dict) else None
        if status not in ("True", "False", "Unknown"):
            raise bad_request(f"status: found {status!r}, expected True, False or Unknown")
        return self.cluster.set_node_ready(name, status)

    def _node_condition(self, name: str, method: str, body: Any) -> Any:
        only(method, "PUT")
        if not isinstance(body, dict) or not all(
            isinstance(body.get(key), str) for key in ("type", "status", "reason")
        ):
            raise bad_request("condition: expected type, status and reason as text")
        node = self.cluster.get("nodes", name)
        condition = monitored_condition(
            kind=body["type"], status=body["status"], reason=body["reason"], now=self.cluster.world.timestamp()
        )
        set_condition(node["status"], condition)
        return self.cluster.update("nodes", node, subresource="status")
