"""Records and access entries of a cluster, below /_local/: of the emulator and of a given control plane."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local.cluster.authn import AccessEntry, Authenticator
from local.cluster.errors import bad_request, method_not_allowed
from local.cluster.history import FactKind, History
from local.cluster.paths import truthy

PREFIX = "/_local/"
Query = Mapping[str, str]
Handler = Callable[[str, Query, Any], Any]  # method, query, body


@dataclass(slots=True, kw_only=True)
class RecordApi:
    """Handlers by path below the prefix. The caller holds the lock of what is read."""

    history: History
    authenticator: Authenticator

    def handlers(self) -> dict[str, Handler]:
        """Return them."""
        return {
            "history": self._history,
            "pdb-violations": self._violations,
            "access-entries": self._access_entries,
        }

    def _history(self, method: str, query: Query, _body: Any) -> Any:
        only(method, "GET")
        try:
            kind = FactKind(query["kind"]) if "kind" in query else None
        except ValueError as failure:
            raise bad_request(f"kind: {failure}, expected one of {[kind.value for kind in FactKind]}") from failure
        return [fact.as_json() for fact in self.history.facts(kind)]

    def _violations(self, method: str, query: Query, _body: Any) -> Any:
        only(method, "GET")
        found = self.history.violations(node_loss=truthy(query.get("all")))
        return [violation.as_json() for violation in found]

    def _access_entries(self, method: str, _query: Query, body: Any) -> Any:
        only(method, "GET", "PUT")
        if method == "PUT":
            if not isinstance(body, list):
                raise bad_request(f"access entries: found {type(body).__name__}, expected a list")
            try:
                self.authenticator.entries = tuple(AccessEntry.from_json(entry) for entry in body)
            except (KeyError, TypeError) as failure:
                raise bad_request(f"access entries: {failure!r}, expected principalArn in each entry") from failure
        return [
            {"principalArn": entry.principal_arn, "kubernetesGroups": list(entry.groups), "username": entry.username}
            for entry in self.authenticator.entries
        ]


def only(method: str, *allowed: str) -> None:
    """Raise 405 for another method."""
    if method not in allowed:
        raise method_not_allowed()


def parsed_body(raw: bytes) -> Any:
    """Return the JSON of a request's body, {} for an empty one. Raises 400."""
    try:
        return json.loads(raw or b"{}")
    except ValueError as failure:
        raise bad_request(f"the body of the request is not JSON: {failure}") from failure
