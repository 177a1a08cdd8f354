"""One HTTP request from start to end: authentication, an injected fault, authorization, and then the verb.

The order is the real server's: authentication before authorization, both before the path is looked up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from local.cluster import discovery, openapi
from local.cluster.authn import EKS_PREFIX, Authenticator
from local.cluster.errors import ApiError, forbidden, method_not_allowed, no_such_path
from local.cluster.faults import Asked, Fault, Faults, Reset
from local.cluster.local_api import LocalApi
from local.cluster.paths import Target, is_review, target_of
from local.cluster.rbac import Authorizer
from local.cluster.record_api import PREFIX
from local.cluster.resources import GROUPS
from local.cluster.reviews import review
from local.cluster.users import User
from local.cluster.verbs import Call, Verbs, json_response
from local.cluster.webhook_calls import AwaitsWebhook

_log = logging.getLogger("leeward.local.cluster")
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_HEALTH = ("/healthz", "/livez", "/readyz")


@dataclass(slots=True, kw_only=True)
class HttpApi:
    verbs: Verbs
    authenticator: Authenticator
    authorizer: Authorizer
    faults: Faults
    local: LocalApi
    version: str
    hang_up: Callable[[tuple[str, int]], None]

    def application(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self._respond, methods=_METHODS)])

    async def _respond(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except ApiError as refusal:
            headers = {"retry-after": str(refusal.retry_after)} if refusal.retry_after else {}
            return json_response(refusal.status(), refusal.code, headers)
        except Exception as failure:
            _log.exception("%s %s failed", request.method, request.url.path)
            error = ApiError(500, "InternalError", f"Internal error occurred: {failure!r}")
            return json_response(error.status(), 500)

    async def _answer(self, request: Request) -> Response:
        path, method, query = request.url.path, request.method, dict(request.query_params)
        target = target_of(method, path, query)
        if path.startswith(PREFIX):
            return await self._own(request, target, query)
        verb, resource = (target.verb, target.authorized_resource) if target else ("get", "")
        asked = Asked(method=method, verb=verb, resource=resource, path=path)
        await asyncio.sleep(self.faults.delay(asked))
        fault = self.faults.take(asked)
        if fault is None:
            return await self._own(request, target, query)
        if fault.effect.reset is Reset.AFTER:
            await self._effect(request, target, query)
        return self._fault_response(fault)

    async def _effect(self, request: Request, target: Target | None, query: Mapping[str, str]) -> None:
        """Carry out a request whose answer will not be sent; a refusal has no effect."""
        with suppress(ApiError):
            await self._own(request, target, query)

    async def _own(self, request: Request, target: Target | None, query: Mapping[str, str]) -> Response:
        """Return the answer without faults."""
        path, method = request.url.path, request.method
        user = impersonated(await self._user(request.headers.get("authorization", "")), request.headers)
        body = await request.body()
        if path.startswith(PREFIX):
            if not user.is_master:
                raise forbidden(f'User "{user.name}" may not use {PREFIX}')
            return self.local.answer(method, path, query, body)
        if target is None:
            return self._plain(user, method, path)
        with self.verbs.lock:
            self.authorizer.check(user, target)
        if target.resource is None and not is_review(target):
            return _no_such_path(path)
        return await self._resource(user, target, query, request.headers, body)

    def _fault_response(self, fault: Fault) -> Response:
        """Return the answer of a fault: overload is plain text with Retry-After, as of API priority and fairness; 500
        is a Status.
        """
        if fault.effect.reset is not None:
            return HungUp(self.hang_up)
        if fault.effect.status == 429:
            headers = {"retry-after": str(fault.retry_after)}
            return Response("Too many requests, please try again later.\n", 429, headers, media_type="text/plain")
        error = ApiError(500, "InternalError", "Internal error occurred: injected by the local cluster")
        return json_response(error.status(), 500)

    async def _user(self, authorization: str) -> User:
        """Return the request's user. Only EKS tokens may have to wait for STS; other tokens are answered at once."""
        if EKS_PREFIX in authorization:
            return await asyncio.to_thread(self.authenticator.user, authorization)
        return self.authenticator.user(authorization)

    async def _resource(
        self, user: User, target: Target, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        if is_review(target):
            if target.verb != "create":
                raise method_not_allowed()
            with self.verbs.lock:
                return json_response(review(self.authorizer, user, target.plural, body), 201)
        assert target.resource is not None, target
        call = Call(target=target, resource=target.resource, query=query, headers=headers, body=body, user=user.name)
        while True:
            try:
                return self.verbs.answer(call)
            except AwaitsWebhook as waiting:
                await asyncio.to_thread(call.webhooks.fetch, waiting.review)

    def _health(self, path: str) -> Response:
        """Answer a health check, which is open to all users from the start, on a real server by the always-allowed
        paths.
        """
        if self.authorizer.filled:
            return Response("ok", media_type="text/plain")
        failed = "[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n"
        return Response(f"{failed}{path.strip('/')} check failed\n", 500, media_type="text/plain")

    def _plain(self, user: User, method: str, path: str) -> Response:
        if path in _HEALTH:
            return self._health(path)
        with self.verbs.lock:
            self.authorizer.check_path(user, method.lower(), path)
        if path == openapi.V2_PATH:
            return Response(b"", media_type=openapi.V2_TYPE)
        found = discovery.document_at(path, self.version)
        if found is None:
            return _no_such_path(path)
        return json_response(found)


def impersonated(user: User, headers: Headers) -> User:
    """Return the user that `Impersonate-User` and `Impersonate-Group` name. Only a master may impersonate here; raises
    403 for others.
    """
    name = headers.get("impersonate-user")
    if name is None:
        return user
    if not user.is_master:
        raise forbidden(f'users "{name}" is forbidden: User "{user.name}" cannot impersonate resource "users"')
    return User(name=name, groups=tuple(headers.getlist("impersonate-group")))


def _no_such_path(path: str) -> Response:
    """Return the answer to a path that does not exist: of a group that is served it is a Status, elsewhere plain text
    (until 1.37; later versions answer with a Status everywhere). Raises ApiError 404 for the Status.
    """
    match [part for part in path.split("/") if part]:
        case ["api", *_]:
            raise no_such_path()
        case ["apis", group, *_] if group in GROUPS:
            raise no_such_path()
    return Response("404 page not found\n", 404, media_type="text/plain")


class HungUp(Response):
    """Response without an answer: `hang_up` cuts the connection of the client with this address."""

    def __init__(self, hang_up: Callable[[tuple[str, int]], None]) -> None:
        super().__init__()
        self._hang_up = hang_up

    async def __call__(self, scope: Scope, receive: Receive, _send: Send) -> None:
        host, port = scope["client"]
        self._hang_up((host, port))
        while (await receive())["type"] != "http.disconnect":
            pass
