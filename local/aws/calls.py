"""Recognition of the AWS operation of a request, by botocore's own models, and of the function that made it.

Query services name the operation in the body, JSON services in a header, REST services by method and path. The function
is the ``app/NAME`` part of the user agent, which the SDKs take from ``AWS_SDK_UA_APP_ID``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import botocore.exceptions
import botocore.session

_CREDENTIAL = re.compile(r"Credential=[^/,\s]+/\d{8}/[^/]+/([^/]+)/aws4_request")
_APPLICATION = re.compile(r"(?:^|\s)app/(\S+)")
_IAM_PREFIX = {"monitoring": "cloudwatch", "email": "ses"}
_IAM_ACTION = {"lambda:Invoke": "InvokeFunction", "s3:ListObjectsV2": "ListBucket", "s3:HeadObject": "GetObject"}
_RPC_PATH = re.compile(r"^/service/[^/]+/operation/([^/]+)$")
_MODEL = {"monitoring": "cloudwatch", "states": "stepfunctions", "email": "ses", "elasticloadbalancing": "elbv2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """AWS call; ``service`` is the prefix that IAM uses, ``function`` None outside Lambda."""

    service: str
    action: str
    protocol: str
    function: str | None

    @property
    def name(self) -> str:
        """Name of the call as a policy writes it: ``service:Action``."""
        spelled = f"{self.service}:{self.action}"
        return f"{self.service}:{_IAM_ACTION[spelled]}" if spelled in _IAM_ACTION else spelled


def recognise(method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Call | None:
    """Return the call that a request is, or None for any request that is not a signed AWS call."""
    signed = _CREDENTIAL.search(headers.get("authorization", ""))
    if signed is None:
        return None
    service = signed.group(1)
    found = _APPLICATION.search(headers.get("user-agent", ""))
    target = headers.get("x-amz-target", "")
    protocol = _protocol(service)
    rpc = _RPC_PATH.match(path)
    if rpc is not None:
        action: str | None = rpc.group(1)
    elif target:
        action = target.rsplit(".", 1)[-1]
    elif protocol in ("query", "ec2"):
        action = parse_qs(body.decode("utf-8", "replace") or query).get("Action", [None])[0]
    else:
        action = _rest_action(service, method, path, query)
    if action is None:
        return None
    return Call(
        service=_IAM_PREFIX.get(service, service),
        action=action,
        protocol=protocol,
        function=found.group(1) if found else None,
    )


@functools.cache
def _model(service: str) -> Any | None:
    try:
        return botocore.session.get_session().get_service_model(_MODEL.get(service, service))
    except botocore.exceptions.UnknownServiceError:
        return None


@functools.cache
def _protocol(service: str) -> str:
    model = _model(service)
    return "json" if model is None else str(model.resolved_protocol)


@functools.cache
def _routes(service: str) -> Sequence[tuple[str, re.Pattern[str], frozenset[str], str]]:
    model = _model(service)
    if model is None:
        return ()
    routes = [
        _route(str(name), operation.http)
        for name in model.operation_names
        for operation in [model.operation_model(name)]
    ]
    return sorted(routes, key=lambda route: (-len(route[2]), -len(route[1].pattern)))


def _route(name: str, http: Mapping[str, str]) -> tuple[str, re.Pattern[str], frozenset[str], str]:
    path, _, query = http["requestUri"].partition("?")
    parts = re.split(r"(\{[^}]+\})", path.rstrip("/"))
    pattern = "".join(
        (".+" if part.endswith("+}") else "[^/]+") if part.startswith("{") else re.escape(part) for part in parts
    )
    needed = frozenset(item for item in query.split("&") if item)
    return http["method"], re.compile(f"^{pattern}/?$"), needed, name


def _rest_action(service: str, method: str, path: str, query: str) -> str | None:
    given = set(query.split("&")) | {item.partition("=")[0] for item in query.split("&")}
    for wanted, pattern, needed, name in _routes(service):
        if wanted == method and needed <= given and pattern.match(path):
            return name
    return None
