"""Interpretation of the API server's answers: which are worth another try, and which error each becomes.

Calls nothing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.errors import (
    AccessDeniedError,
    ClusterUnreachableError,
    LeewardError,
    ObjectGoneError,
    TerminalError,
    ThrottledError,
)
from leeward.model.blocked import Obstacle, Stage
from leeward.ports.kubernetes import EvictionRefusedError

BUDGET_CAUSE = "DisruptionBudget"
SEVERAL_BUDGETS = "more than one PodDisruptionBudget"
_BUDGET_NAME = re.compile(r"disruption budget (\S+) ")
_RBAC_REFUSAL = re.compile(r'cannot (create resource "?pods/eviction|delete resource "?pods)')
_FAILING_WEBHOOK = re.compile(r'failed calling webhook "([^"\s]+)"')
_DENYING_WEBHOOK = re.compile(r'admission webhook "([^"\s]+)"')
_DENYING_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^'\s]+)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One call. `verb` and `resource` in the words of RBAC: an AccessDeniedError names them.

    `once`: any answer counts, because the caller has other work and retries by itself; a connection that breaks is
    tried again once. `read_seconds`: how long an answer may take, None: the default time. `hint`: the likely cause of
    a time-out.
    """

    verb: str
    resource: str
    path: str
    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"
    once: bool = False
    read_seconds: float | None = None
    hint: str = ""

    def __str__(self) -> str:
        """Return `evict-like` words for messages: verb, resource and path."""
        return f"{self.verb} {self.resource} ({self.path})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status code and parsed body. `retry_after` in seconds, if the server sent it."""

    status: int
    body: Mapping[str, Any]
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        """True for 2xx."""
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """Sentence of the Status object."""
        return str(self.body.get("message") or f"HTTP {self.status}")

    @property
    def reason(self) -> str:
        """Reason of the Status object: AlreadyExists, Conflict, Expired ..."""
        return str(self.body.get("reason") or "")

    @property
    def causes(self) -> tuple[Mapping[str, Any], ...]:
        """Entries of `details.causes`."""
        return tuple((self.body.get("details") or {}).get("causes") or ())

    @property
    def refused_by_budget(self) -> bool:
        """True for the Eviction API's own 429, which is no throttling."""
        return self.status == 429 and any(cause.get("reason") == BUDGET_CAUSE for cause in self.causes)

    @property
    def several_budgets(self) -> bool:
        """True if several budgets select the pod: the Eviction API cannot serve it and answers 500."""
        return self.status == 500 and SEVERAL_BUDGETS in self.message

    @property
    def throttled(self) -> bool:
        """True for API priority and fairness, or a webhook's own 429."""
        return self.status == 429 and not self.refused_by_budget

    @property
    def broken(self) -> bool:
        """True for a server error, which another try may not meet."""
        return self.status >= 500 and not self.several_budgets


def as_error(answer: Answer, request: ApiRequest, cluster: str) -> LeewardError:
    """Return the error for a bad answer."""
    said = f"{cluster}: {request}: {answer.message}"
    match answer.status:
        case 401:
            return AccessDeniedError(f"{cluster}: the token is not accepted, may not {request}: {answer.message}")
        case 403:
            return AccessDeniedError(f"{cluster}: not allowed to {request}: {answer.message}")
        case 404:
            return ObjectGoneError(said)
        case 409 | 429:  # other writers change the same object all the time, or the server is busy
            return ThrottledError(said, answer.retry_after)
        case status if status >= 500:
            return ClusterUnreachableError(said)
        case _:
            return TerminalError(f"{said} (HTTP {answer.status})")


def refusal(answer: Answer, request: ApiRequest, namespace: str) -> EvictionRefusedError | None:
    """Return why this one pod cannot be evicted now; None where the answer holds for every pod (a missing RBAC rule, a
    bad token).

    PodDisruptionBudgets answer 429 with a cause, 403 (a negative count, too many disrupted pods) or 500 (several of
    them). Admission webhooks and policies answer any 4xx; a webhook that cannot be called is a 500. Conflicts that
    last, other 429s and 5xx may pass, but none of them is a reason to keep another pod waiting.
    """
    if answer.several_budgets:
        return EvictionRefusedError(answer.message, permanent=True)
    if answer.refused_by_budget:
        said = " ".join(str(cause.get("message", "")) for cause in answer.causes)
        names = dict.fromkeys(_BUDGET_NAME.findall(said))
        return EvictionRefusedError(said or answer.message, tuple(f"{namespace}/{name}" for name in names))
    if answer.status == 401 or (answer.status == 403 and _RBAC_REFUSAL.search(answer.message)):
        return None
    return EvictionRefusedError(_obstacle(answer, request).sentence)


def _obstacle(answer: Answer, request: ApiRequest) -> Obstacle:
    """Return the part of the API server that refused the request, as its message names it."""
    said = answer.message
    for stage, denies, pattern in (
        (Stage.WEBHOOK, False, _FAILING_WEBHOOK),
        (Stage.WEBHOOK, True, _DENYING_WEBHOOK),
        (Stage.POLICY, True, _DENYING_POLICY),
    ):
        if found := pattern.search(said):
            return Obstacle(stage=stage, name=found[1], denies=denies, said=said)
    name = "deletion" if request.verb == "delete" else "eviction"
    denies = answer.status in {400, 403, 422}
    return Obstacle(stage=Stage.SERVER, name=name, denies=denies, said=f"{said} (HTTP {answer.status})")
