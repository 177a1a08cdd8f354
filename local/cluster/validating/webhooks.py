"""ValidatingWebhookConfiguration objects: the webhooks that match a request, and the evaluation of their answers.

No backend is called here. A webhook behind a Service allows everything while the Service has a Ready pod and fails
otherwise: while the pods of a policy engine are down, the requests that it covers fail, as on a real cluster. A webhook
behind a URL is called through `Backends`. Words: `apiserver/pkg/admission/plugin/webhook`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from local.cluster.errors import ApiError, internal_error
from local.cluster.objects import Obj, is_deleting, is_ready, labels_of, namespace_of
from local.cluster.store import Store

from .attributes import Attributes, rule_covers, selected
from .cel import CelError
from .policies import expression, request_of

WEBHOOKS = "validatingwebhookconfigurations"


class WebhookFailedError(Exception):
    """Error: the webhook gave no usable answer; the message is the API server's, without the URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Review by one webhook. `key` is the same when the same request is reviewed again."""

    key: tuple[str, ...]
    url: str
    ca_bundle: str
    timeout: int
    request: Obj = field(hash=False)


Verdict = Mapping[str, Any]  # the `response` of an AdmissionReview: `allowed`, and optionally `status`


class Backends(Protocol):
    """Interface that calls webhooks that have a URL."""

    def __call__(self, review: Review) -> Verdict:
        """Return the webhook's response. Raises WebhookFailedError."""
        ...


def unreachable(review: Review) -> Verdict:
    """Fail as the backends of a cluster without a network. Raises WebhookFailedError for every webhook."""
    place = urlsplit(review.url)
    raise WebhookFailedError(f"dial tcp {place.hostname}:{place.port or 443}: connect: connection refused")


def refusal(store: Store, attributes: Attributes, user: str, backends: Backends) -> ApiError | None:
    """Return the denial of, or the failure to call, the first webhook that does not allow the request."""
    for webhook in _webhooks(store, attributes, user):
        review = _review(webhook, attributes, user)
        try:
            verdict = _service_verdict(store, webhook) or backends(review)
        except WebhookFailedError as failure:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                continue
            return _failed(webhook, f'failed to call webhook: Post "{review.url}": {failure}')
        if not verdict.get("allowed"):
            return _denied(webhook["name"], verdict.get("status") or {})
    return None


def _webhooks(store: Store, attributes: Attributes, user: str) -> Iterator[Obj]:
    """Return the webhooks that match the request."""
    for configuration in store.sorted(WEBHOOKS):
        for webhook in configuration.get("webhooks") or []:
            covered = any(rule_covers(rule, attributes) for rule in webhook.get("rules") or [])
            if covered and selected(webhook, attributes, store) and _conditions_hold(webhook, attributes, user):
                yield webhook


def _conditions_hold(webhook: Obj, attributes: Attributes, user: str) -> bool:
    conditions = webhook.get("matchConditions") or []
    request = request_of(attributes, user)
    variables = {"object": attributes.obj, "oldObject": attributes.old, "request": request}
    try:
        return all(expression(entry["expression"])(variables) for entry in conditions)
    except CelError:
        return bool(webhook.get("failurePolicy", "Fail") == "Fail")


def _review(webhook: Obj, attributes: Attributes, user: str) -> Review:
    config, timeout = webhook["clientConfig"], int(webhook.get("timeoutSeconds") or 10)
    service = config.get("service")
    base = config.get("url") or ""
    if service:
        port, path = service.get("port") or 443, (service.get("path") or "").lstrip("/")
        base = f"https://{service['name']}.{service['namespace']}.svc:{port}/{path}"
    joint = "&" if "?" in base else "?"
    objects = {"object": attributes.obj, "oldObject": attributes.old}
    # a generated name is drawn again each time that the request is reviewed
    name = ((attributes.obj or {}).get("metadata") or {}).get("generateName") or attributes.name
    return Review(
        key=(webhook["name"], attributes.operation, attributes.subresource, attributes.namespace or "", name),
        url=f"{base}{joint}timeout={timeout}s",
        ca_bundle=config.get("caBundle") or "",
        timeout=timeout,
        request={**request_of(attributes, user), **objects},
    )


def _service_verdict(store: Store, webhook: Obj) -> Verdict | None:
    """Return None for a webhook with a URL, else the verdict of its Service. Raises WebhookFailedError for a Service
    that is absent or has no Ready pod.
    """
    reference = webhook["clientConfig"].get("service")
    if not reference:
        return None
    name, namespace = reference["name"], reference["namespace"]
    service = store.find("services", name, namespace)
    if service is None:
        raise WebhookFailedError(f'service "{name}" not found')
    wanted = (service.get("spec") or {}).get("selector") or {}
    if wanted and any(_serves(pod, namespace, wanted) for pod in store.each("pods")):
        return {"allowed": True}
    raise WebhookFailedError(f'no endpoints available for service "{name}"')


def _serves(pod: Obj, namespace: str, wanted: Mapping[str, str]) -> bool:
    here = namespace_of(pod) == namespace and wanted.items() <= labels_of(pod).items()
    return here and is_ready(pod) and not is_deleting(pod)


def _failed(webhook: Obj, why: str) -> ApiError:
    return internal_error(f'failed calling webhook "{webhook["name"]}": {why}')


def _denied(webhook: str, status: Mapping[str, Any]) -> ApiError:
    """Return the denial, which always has an error code, 400 unless the webhook names another
    (`webhookerrors.ToStatusErr`).
    """
    said = f'admission webhook "{webhook}" denied the request'
    why = status.get("message") or status.get("reason")
    message = f"{said}: {why}" if why else f"{said} without explanation"
    code = max(int(status.get("code") or 0), 400)
    return ApiError(code, str(status.get("reason") or ""), message, details=status.get("details"))
