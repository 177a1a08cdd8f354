"""EventBridge's webhooks: CloudFormation can make connections and API destinations, and a failed delivery is retried.

Stock ministack knows both resources by its API alone, and drops an event whose first delivery fails, where AWS retries
for a day with growing pauses; here it is retried for some seconds and then goes to the target's dead-letter queue.
"""

from __future__ import annotations

import functools
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from ministack.services import eventbridge
from ministack.services.cloudformation import provisioners

from local.aws.pins import expect, expect_parameters

logger = logging.getLogger("local.aws.webhooks")

PAUSES = (0.2, 0.4, 0.8, 1.6)  # seconds; AWS begins with some and ends after 185 tries or a day
_RETRIED = frozenset({401, 407, 409, 429})  # and 5xx; anything else is final

Properties = Mapping[str, Any]


def install() -> None:
    """Add both resources to CloudFormation and retries to EventBridge."""
    expect_parameters("ministack", eventbridge._dispatch_to_api_destination, "spec", "payload", "target")
    expect_parameters("ministack", eventbridge._api_destination_send_sync, "request", "auth_headers")
    expect_parameters("ministack", eventbridge._deliver_to_api_destination, "name", "request", "conn", "token_key")
    for kind in ("Connection", "ApiDestination"):
        known = f"AWS::Events::{kind}" in provisioners._RESOURCE_HANDLERS
        expect("ministack", not known, f"CloudFormation makes AWS::Events::{kind} by itself by now")
    provisioners._RESOURCE_HANDLERS["AWS::Events::Connection"] = _handlers(
        eventbridge._create_connection, eventbridge._update_connection, eventbridge._delete_connection, "ConnectionArn"
    )
    provisioners._RESOURCE_HANDLERS["AWS::Events::ApiDestination"] = _handlers(
        eventbridge._create_api_destination,
        eventbridge._update_api_destination,
        eventbridge._delete_api_destination,
        "ApiDestinationArn",
    )
    eventbridge._dispatch_to_api_destination = _remembering_the_queue(eventbridge._dispatch_to_api_destination)
    eventbridge._deliver_to_api_destination = _deliver


def _handlers(create: Callable[..., Any], update: Callable[..., Any], delete: Callable[..., Any], arn: str) -> Any:
    def made(_logical: str, properties: Properties, _stack: str) -> tuple[str, dict[str, str]]:
        return properties["Name"], {"Arn": _answer(create(dict(properties)))[arn]}

    def changed(
        name: str, _old: Properties, properties: Properties, _stack: str, _logical: str | None = None
    ) -> tuple[str, dict[str, str]]:
        return name, {"Arn": _answer(update({**properties, "Name": name}))[arn]}

    def gone(name: str, _properties: Properties) -> None:
        delete({"Name": name})

    return {"create": made, "update": changed, "delete": gone}


def _answer(response: tuple[int, Any, Any]) -> dict[str, Any]:
    status, _, body = response
    if status >= 400:
        raise ValueError(str(body))
    found: dict[str, Any] = json.loads(body)
    return found


def _remembering_the_queue(original: Callable[..., None]) -> Callable[..., None]:
    """Pass the queue with the request's headers: the delivery's thread does not know the target."""

    @functools.wraps(original)
    def dispatch(spec: Any, payload: str, target: dict[str, Any]) -> None:
        queue = (target.get("DeadLetterConfig") or {}).get("Arn", "")
        parameters = dict(target.get("HttpParameters") or {})
        headers = {**(parameters.get("HeaderParameters") or {}), _QUEUE: queue}
        original(spec, payload, {**target, "HttpParameters": {**parameters, "HeaderParameters": headers}})

    return dispatch


_QUEUE = "X-Local-Dead-Letter-Queue"


def _deliver(name: str, request: dict[str, Any], conn: dict[str, Any], token_key: Any) -> None:
    """Deliver the event, on a thread of its own."""
    queue = request["headers"].pop(_QUEUE, "")
    for pause in (*PAUSES, None):
        said = _try(request, conn, token_key)
        if said is not None and 200 <= said < 300:
            return
        if pause is None or not (said is None or said in _RETRIED or said >= 500):
            break
        time.sleep(pause)
    logger.warning("webhook %s: %s, given up", name, said)
    if queue:
        region, account, queue_name = queue.split(":")[3:]
        sqs = boto3.client("sqs", region_name=region)
        url = sqs.get_queue_url(QueueName=queue_name, QueueOwnerAWSAccountId=account)["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=request["body"] or "")


def _try(request: dict[str, Any], conn: dict[str, Any], token_key: Any) -> int | None:
    """Return the status, None without an answer."""
    try:
        headers = eventbridge._connection_auth_headers(conn, token_key)
        return int(eventbridge._api_destination_send_sync(request, headers))
    except OSError:
        return None
