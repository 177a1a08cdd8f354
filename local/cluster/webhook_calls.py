"""Calls of admission webhooks that have a URL, outside the lock of the cluster.

The model is synchronous and locked, so it never waits for a webhook: `Answers` raises `AwaitsWebhook` for a review
without an answer; the HTTP server then calls the webhook and repeats the request with the answer. Nothing has been
written at that point, so the repetition has no effect of its own.
"""

from __future__ import annotations

import base64
import json
import ssl
import uuid
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import urllib3

from local.cluster.validating.webhooks import Review, Verdict, WebhookFailedError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class AwaitsWebhook(Exception):
    """Signal: the request cannot be decided before this webhook has answered."""

    def __init__(self, review: Review) -> None:
        super().__init__(review.url)
        self.review = review


@dataclass(slots=True)
class Answers:
    """Answers of the webhooks to one HTTP request so far."""

    _known: dict[tuple[str, ...], Verdict | WebhookFailedError] = field(default_factory=dict)

    def __call__(self, review: Review) -> Verdict:
        """Return the answer. Raises AwaitsWebhook for an unknown answer, WebhookFailedError for one that did not
        come.
        """
        answer = self._known.get(review.key)
        if answer is None:
            raise AwaitsWebhook(review)
        if isinstance(answer, WebhookFailedError):
            raise answer
        return answer

    def fetch(self, review: Review) -> None:
        """Call the webhook and keep its answer or its failure."""
        try:
            self._known[review.key] = call(review)
        except WebhookFailedError as failure:
            self._known[review.key] = failure


def call(review: Review) -> Verdict:
    """POST an AdmissionReview. Only loopback addresses are called. Raises WebhookFailedError."""
    place = urlsplit(review.url)
    if place.hostname not in _LOOPBACK:
        raise WebhookFailedError(f"dial tcp: lookup {place.hostname}: no such host")
    number = str(uuid.uuid4())
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": number, **review.request},
    }
    try:
        with urllib3.PoolManager(retries=False, timeout=review.timeout, ssl_context=_tls(review)) as pool:
            answer = pool.request("POST", review.url, json=body)
    except urllib3.exceptions.HTTPError as failure:
        raise WebhookFailedError(_why(failure, f"{place.hostname}:{place.port or 443}")) from failure
    return _response(answer, number)


def _tls(review: Review) -> ssl.SSLContext | None:
    if not review.ca_bundle:
        return None
    return ssl.create_default_context(cadata=base64.b64decode(review.ca_bundle).decode())


def _why(failure: Exception, place: str) -> str:
    """Return the words of Go's HTTP client."""
    match failure:
        case urllib3.exceptions.NewConnectionError():
            return f"dial tcp {place}: connect: connection refused"
        case urllib3.exceptions.TimeoutError():
            return "context deadline exceeded"
        case urllib3.exceptions.SSLError():
            return f"tls: failed to verify certificate: {failure}"
        case _:
            return "EOF"


def _response(answer: urllib3.BaseHTTPResponse, number: str) -> Verdict:
    if answer.status >= 300:
        said = answer.data.decode(errors="replace").strip()
        raise WebhookFailedError(f'an error on the server ("{said}") has prevented the request from succeeding')
    try:
        review = json.loads(answer.data)
    except ValueError as failure:
        raise WebhookFailedError(f"couldn't get version/kind; json parse error: {failure}") from failure
    response: Verdict | None = review.get("response") if isinstance(review, dict) else None
    if response is None or response.get("uid") != number:
        raise WebhookFailedError("received invalid webhook response: expected response.uid to be that of the request")
    return response
