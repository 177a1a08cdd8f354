"""Verbs over HTTP: each takes a parsed request and returns a response; the model has the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from starlette.responses import Response

from local.cluster.bodies import delete_options, is_dry_run, parsed_body, parsed_object
from local.cluster.decoding import Decoder
from local.cluster.encoding import ListEncoder, compressed, encoded
from local.cluster.errors import bad_request, method_not_allowed, unsupported_media
from local.cluster.lists import ListRequest, Pager
from local.cluster.model import Cluster
from local.cluster.objects import Obj, name_of, namespace_of, uid_of
from local.cluster.patches import PatchType, patch_type
from local.cluster.paths import Target
from local.cluster.resources import Resource
from local.cluster.scale import scale_of
from local.cluster.selectors import matcher
from local.cluster.tables import table
from local.cluster.watch import Watch, WatchHub, WatchRequest, WatchResponse
from local.cluster.webhook_calls import Answers


def json_response(body: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    content = body if isinstance(body, bytes) else encoded(body)
    return Response(content, code, dict(headers or {}), media_type="application/json")


def warned(response: Response, warnings: list[str]) -> Response:
    """Return the same answer with a Warning header for each."""
    for warning in warnings:
        response.headers.append("warning", warning)
    return response


def success(code: int, details: Obj | None = None) -> Response:
    """Return a `Status` that says Success."""
    body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return json_response({**body, **({"details": details} if details else {}), "code": code}, code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Request to a resource."""

    target: Target
    resource: Resource
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    user: str = ""
    webhooks: Answers = field(default_factory=Answers)

    @property
    def namespace(self) -> str | None:
        return self.target.namespace if self.resource.namespaced else None

    @property
    def name(self) -> str:
        return self.target.name or ""

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def validation(self) -> str:
        """Mode of field validation: Ignore, Warn or Strict."""
        return self.query.get("fieldValidation") or "Warn"

    @property
    def wants_table(self) -> bool:
        return "as=Table" in self.headers.get("accept", "")

    def object(self) -> Obj:
        return parsed_object(self.body, self.content_type)


@dataclass(slots=True, kw_only=True)
class Verbs:
    """Verbs of the API. `lock` guards the model; every verb but a running watch holds it from start to end."""

    cluster: Cluster
    lock: RLock
    hub: WatchHub
    pager: Pager
    lists: ListEncoder = field(default_factory=ListEncoder)

    def answer(self, call: Call) -> Response:
        """Answer a request. Raises ApiError for every refusal, AwaitsWebhook when a webhook has to be called first."""
        if call.target.verb == "watch":
            return self._watch(call)
        handlers: dict[str, Callable[[Call], Response]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        handler = handlers.get(call.target.verb)
        if handler is None:
            raise method_not_allowed()
        with self.lock, self.cluster.admitter.request(call.user, call.webhooks):
            return handler(call)

    def _get(self, call: Call) -> Response:
        if call.target.subresource == "log":
            return Response("", media_type="text/plain")
        obj = self.cluster.world.find(call.resource.plural, call.name, call.namespace)
        if call.target.subresource == "scale":
            return json_response(scale_of(obj))
        if call.wants_table:
            metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return json_response(self._table(call, [obj], metadata))
        return json_response(obj)

    def _table(self, call: Call, objects: list[Obj], metadata: Obj, *, header: bool = True) -> Obj:
        include = call.query.get("includeObject", "")
        now = self.cluster.now()
        return table(call.resource.plural, objects, now=now, metadata=metadata, header=header, rows=include)

    def _list(self, call: Call) -> Response:
        limit = call.query.get("limit") or "0"
        if not limit.removeprefix("-").isdecimal():
            raise bad_request(f'strconv.ParseInt: parsing "{limit}": invalid syntax')
        request = ListRequest(
            resource=call.resource.plural,
            namespace=call.namespace,
            labels=call.query.get("labelSelector", ""),
            fields=call.query.get("fieldSelector", ""),
            limit=max(0, int(limit)),
            token=call.query.get("continue", ""),
            resource_version=call.query.get("resourceVersion", ""),
            version_match=call.query.get("resourceVersionMatch", ""),
        )
        page = self.pager.page(request, now=self.cluster.now())
        if call.wants_table:
            body = encoded(self._table(call, page.objects, page.metadata))
        else:
            body = self.lists.body(call.resource, page.objects, page.metadata)
        body, headers = compressed(body, call.headers.get("accept-encoding", ""))
        return json_response(body, headers=headers)

    def _watch(self, call: Call) -> Response:
        request = WatchRequest.of(call.resource, call.namespace, call.target.name, call.query)

        def render(obj: Obj, first: bool) -> Any:
            if not call.wants_table:
                return obj
            metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return self._table(call, [obj], metadata, header=first)

        watch = Watch(store=self.cluster.store, lock=self.lock, hub=self.hub, request=request, render=render)
        return WatchResponse(watch.lines())

    def _create(self, call: Call) -> Response:
        if not call.body:
            raise bad_request("the body of the request is empty: unexpected end of JSON input")
        match call.target.subresource:
            case "eviction":
                return self._evict(call)
            case "binding":
                return self._bind(call)
            case None if not call.target.name:
                dry_run = is_dry_run(call.query)
                decoder = Decoder(call.resource)
                new = decoder.created(self._typed(call))
                decoder.check(call.validation)
                obj = self.cluster.create(call.resource.plural, new, call.namespace, dry_run=dry_run)
                return warned(json_response(obj, 201), decoder.warnings(call.validation))
            case _:
                raise method_not_allowed()

    def _typed(self, call: Call) -> Obj:
        """Return the body, which must be of the URL's kind. Raises 400."""
        body = call.object()
        kind, version = body.get("kind"), body.get("apiVersion")
        if (kind or call.resource.kind) != call.resource.kind or (version or "") not in ("", call.resource.api_version):
            found = f"{version}, Kind={kind}"
            expected = f"{call.resource.api_version}, Kind={call.resource.kind}"
            raise bad_request(f"the object provided is {found}, expected {expected}")
        return body

    def _evict(self, call: Call) -> Response:
        body = call.object()
        named = (body.get("metadata") or {}).get("name")
        if named not in (None, "", call.name):
            raise bad_request("name in URL does not match name in Eviction object")
        options = body.get("deleteOptions") or {}
        dry_run = is_dry_run(call.query, options)
        self.cluster.evict(call.name, call.namespace or "default", options=delete_options(options, {}), dry_run=dry_run)
        return success(201)

    def _bind(self, call: Call) -> Response:
        node = (call.object().get("target") or {}).get("name")
        if not node:
            raise bad_request("target.name: Required value")
        self.cluster.bind(call.name, node, call.namespace or "default")
        return success(201)

    def _update(self, call: Call) -> Response:
        subresource, dry_run = call.target.subresource, is_dry_run(call.query)
        if subresource == "scale":
            scale = self.cluster.scale(call.resource.plural, call.name, call.object(), call.namespace, dry_run=dry_run)
            return json_response(scale)
        decoder = Decoder(call.resource)
        obj = decoder.created(self._typed(call))
        decoder.check(call.validation)
        metadata = obj.setdefault("metadata", {})
        if metadata.setdefault("name", call.name) != call.name:
            text = f"the name of the object ({metadata['name']}) does not match the name on the URL ({call.name})"
            raise bad_request(text)
        if call.namespace:
            metadata.setdefault("namespace", call.namespace)
        plural = call.resource.plural
        stored = self.cluster.update(plural, obj, subresource=subresource, dry_run=dry_run)
        return warned(json_response(stored), decoder.warnings(call.validation))

    def _patch(self, call: Call) -> Response:
        kind = patch_type(call.content_type)
        patch = parsed_body(call.body, call.content_type)
        if kind is PatchType.APPLY:
            return self._apply(call, patch)
        decoder = Decoder(call.resource)

        def decode(changed: Obj) -> Obj:
            result = decoder.patched(call.body.decode(errors="replace"))(changed)
            decoder.check(call.validation)
            return result

        obj = self.cluster.patch(
            call.resource.plural,
            call.name,
            patch,
            call.namespace,
            kind=kind,
            subresource=call.target.subresource,
            dry_run=is_dry_run(call.query),
            decode=decode,
        )
        return warned(json_response(obj), decoder.warnings(call.validation))

    def _apply(self, call: Call, configuration: Any) -> Response:
        manager = call.query.get("fieldManager", "")
        if not manager:
            raise bad_request("fieldManager: Required value: is required for apply patch")
        if not isinstance(configuration, dict):
            raise unsupported_media("an apply patch must be an object")
        decoder = Decoder(call.resource)
        configuration = decoder.created(configuration)
        decoder.check(call.validation)
        obj, created = self.cluster.apply(
            call.resource.plural,
            call.name,
            configuration,
            call.namespace,
            manager=manager,
            force=call.query.get("force", "") == "true",
            subresource=call.target.subresource,
            dry_run=is_dry_run(call.query),
        )
        return warned(json_response(obj, 201 if created else 200), decoder.warnings(call.validation))

    def _delete(self, call: Call) -> Response:
        if call.target.subresource:
            raise method_not_allowed()
        body = call.object()
        options, dry_run = delete_options(body, call.query), is_dry_run(call.query, body)
        plural = call.resource.plural
        obj = self.cluster.delete(plural, call.name, call.namespace, options=options, dry_run=dry_run)
        still_there = self.cluster.store.find(plural, call.name, call.namespace) is not None
        if still_there or plural == "pods":
            return json_response(obj)
        details = {"name": name_of(obj), "kind": plural, "uid": uid_of(obj)}
        return success(200, {**details, "group": call.resource.group} if call.resource.group else details)

    def _delete_collection(self, call: Call) -> Response:
        body = call.object()
        options, dry_run = delete_options(body, call.query), is_dry_run(call.query, body)
        matches = matcher(
            call.resource.plural,
            labels=call.query.get("labelSelector", ""),
            fields=call.query.get("fieldSelector", ""),
            namespace=call.namespace,
        )
        gone = [obj for obj in self.cluster.store.sorted(call.resource.plural) if matches(obj)]
        for obj in gone:
            self.cluster.delete(call.resource.plural, name_of(obj), namespace_of(obj), options=options, dry_run=dry_run)
        metadata = {"resourceVersion": str(self.cluster.store.version)}
        return json_response(self.lists.body(call.resource, gone, metadata))
