"""EC2, Auto Scaling, EKS and Elastic Load Balancing answered by moto inside this process instead of by ministack.

Requests are rewritten to moto's account and the caller's region and run one at a time under ``model_lock``, which every
other writer of moto's models holds as well.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from ministack import app as ministack_app
from ministack.core.responses import get_region
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import EnvironBuilder, run_wsgi_app

from local.aws.pins import expect, expect_parameters

Answer = tuple[int, dict[str, str], bytes]
Handler = Callable[[str, str, Mapping[str, str], bytes, Mapping[str, Any]], Awaitable[Answer]]

SERVICES = ("ec2", "autoscaling", "eks", "elasticloadbalancing")
model_lock = threading.RLock()
_wsgi = DomainDispatcherApplication(create_backend_app)
_DROPPED_HEADERS = {"host", "content-length", "authorization", "x-amz-security-token"}


def install() -> None:
    """Route the four services to moto."""
    expect_parameters("ministack", ministack_app._lazy_handler, "module_name")
    for service in SERVICES:
        expect("ministack", service in ministack_app.SERVICE_HANDLERS, f"app.SERVICE_HANDLERS has no {service!r}")
        ministack_app.SERVICE_HANDLERS[service] = handler_for(service)


def handler_for(service: str) -> Handler:
    """Return a ministack service handler that calls moto on a worker thread."""

    async def handle(
        method: str, path: str, headers: Mapping[str, str], body: bytes, query_params: Mapping[str, Any]
    ) -> Answer:
        work = functools.partial(ask, service, method, path, headers, body, query_params)
        return await asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)

    return handle


def ask(
    service: str, method: str, path: str, headers: Mapping[str, str], body: bytes, query_params: Mapping[str, Any]
) -> Answer:
    """Send one request to moto, under the model's lock."""
    kept = {name: value for name, value in headers.items() if name.lower() not in _DROPPED_HEADERS}
    scope = f"Credential=local/20260101/{get_region()}/{service}/aws4_request"
    kept["Authorization"] = f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=local"
    builder = EnvironBuilder(
        method=method,
        path=path,
        query_string=urlencode(query_params, doseq=True),
        headers=list(kept.items()),
        data=body,
        base_url="http://localhost",
    )
    with model_lock:
        chunks, status, answered = run_wsgi_app(_wsgi, builder.get_environ(), buffered=True)
        return int(status.split()[0]), dict(answered.items()), b"".join(chunks)
