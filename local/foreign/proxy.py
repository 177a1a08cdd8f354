"""Endpoint that stands where EKS's would: it authenticates EKS tokens and passes requests on as their users.

The given API server needs no flag for that. A request of an IAM principal is forwarded with the kubeconfig's
credentials and impersonates the user and the groups of its access entry, so that the server's own RBAC decides. What
was evicted or refused is recorded on the way.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import urllib3
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from local.cluster.authn import Authenticator
from local.cluster.errors import ApiError, forbidden, method_not_allowed, no_such_path
from local.cluster.history import FactKind, History
from local.cluster.objects import name_of, node_of
from local.cluster.record_api import PREFIX, RecordApi, parsed_body
from local.cluster.users import User
from local.cluster.verbs import json_response
from local.foreign.api import ApiClient
from local.foreign.losses import budgets_of
from local.foreign.mirror import Mirror

_log = logging.getLogger("leeward.local.foreign")
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_SENT = ("content-type", "accept", "user-agent")
_RETURNED = ("content-type", "retry-after", "warning")
APPLY = "application/apply-patch+yaml"


@dataclass(slots=True, kw_only=True)
class Proxy:
    """Proxy of one cluster. `applied`: paths that the administrator has applied, to be removed at the end."""

    api: ApiClient
    authenticator: Authenticator
    mirror: Mirror
    history: History
    applied: dict[str, None] = field(default_factory=dict)

    def application(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self._respond, methods=_METHODS)])

    async def _respond(self, request: Request) -> Response:
        try:
            body = await request.body()
            return await asyncio.to_thread(self._answer, request, body)
        except ApiError as refusal:
            headers = {"retry-after": str(refusal.retry_after)} if refusal.retry_after else {}
            return json_response(refusal.status(), refusal.code, headers)
        except urllib3.exceptions.HTTPError as error:
            return json_response(ApiError(503, "ServiceUnavailable", f"the given API server: {error}").status(), 503)

    def _answer(self, request: Request, body: bytes) -> Response:
        user = self.authenticator.user(request.headers.get("authorization", ""))
        path = request.url.path
        if path.startswith(PREFIX):
            return self._records(user, request, body)
        if request.query_params.get("watch") in {"1", "true"}:
            raise method_not_allowed()  # clients that watch use the kubeconfig
        query = f"?{request.url.query}" if request.url.query else ""
        answer = self.api.send(request.method, path + query, body or None, _headers(request.headers, user))
        if user.is_master and request.headers.get("content-type") == APPLY and answer.status < 300:
            self.applied[path] = None
        if path.endswith("/eviction") and request.method == "POST" and "dryRun" not in request.query_params:
            self._record_eviction(path, answer.status, answer.data)
        kept = {name: answer.headers[name] for name in _RETURNED if name in answer.headers}
        return Response(answer.data, answer.status, kept)

    def _records(self, user: User, request: Request, body: bytes) -> Response:
        if not user.is_master:
            raise forbidden(f'User "{user.name}" may not use {PREFIX}')
        handlers = RecordApi(history=self.history, authenticator=self.authenticator).handlers()
        handler = handlers.get(request.url.path.removeprefix(PREFIX).strip("/"))
        if handler is None:
            raise no_such_path()
        with self.mirror.lock:
            return json_response(handler(request.method, dict(request.query_params), parsed_body(body)))

    def _record_eviction(self, path: str, status: int, body: bytes) -> None:
        """Record an accepted eviction, or one that a budget has refused."""
        *_, namespace, _pods, name, _eviction = path.split("/")
        with self.mirror.lock:
            pod = self.mirror.store.find("pods", name, namespace)
            budgets = ", ".join(sorted(name_of(budget) for budget in budgets_of(self.mirror.store, pod))) if pod else ""
            node = node_of(pod) if pod else None
            about = f"{namespace}/{name}"
            if status in {200, 201}:
                self.history.add(FactKind.EVICTION_ACCEPTED, about, node=node, pdb=budgets or None)
            elif status == 500 or (status == 429 and _of_a_budget(body)):
                self.history.add(FactKind.EVICTION_REFUSED, about, node=node, pdb=budgets, code=status)


def _of_a_budget(body: bytes) -> bool:
    """Return whether a 429 names a budget: overload of the server is answered with 429 as well."""
    try:
        causes = json.loads(body).get("details", {}).get("causes") or ()
    except (ValueError, AttributeError):
        return False
    return any(cause.get("reason") == "DisruptionBudget" for cause in causes)


def _headers(given: Mapping[str, str], user: User) -> dict[str, str | list[str]]:
    """Return the headers of the forwarded request. The stack's administrator is the kubeconfig's user."""
    sent: dict[str, str | list[str]] = {name: given[name] for name in _SENT if name in given}
    if user.is_master:
        return sent
    return {**sent, "impersonate-user": user.name, "impersonate-group": list(user.groups)}
