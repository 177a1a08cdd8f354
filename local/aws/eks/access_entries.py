"""EKS access entries: principals that may call a cluster's Kubernetes API, as the EKS API and CloudFormation write
them.

The store stands in front of moto, which has none. The local cluster enforces them.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from ministack.core.responses import get_account_id, get_region

Answer = tuple[int, dict[str, str], bytes]
Key = tuple[str, str, str]  # region, cluster, principal ARN
_PATH = re.compile(
    r"^/clusters/(?P<cluster>[^/]+)/access-entries(?:/(?P<principal>.+?))?(?P<policies>/access-policies.*)?$"
)
_TYPES = {"STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX"}


class AccessEntryError(Exception):
    """Refusal of a call: EKS's error code, its HTTP status and a sentence."""

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class AccessEntries:
    """Access entries of all clusters; safe to use from any thread."""

    def __init__(self, cluster_exists: Callable[[str, str], bool]) -> None:
        self._exists = cluster_exists
        self._entries: dict[Key, dict[str, Any]] = {}
        self._policies: dict[Key, dict[str, dict[str, Any]]] = {}
        self._lock = threading.RLock()

    def create(self, cluster: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer CreateAccessEntry. Raises ``AccessEntryError``."""
        principal = str(body.get("principalArn") or "")
        if not principal.startswith("arn:"):
            raise AccessEntryError("InvalidParameterException", 400, "The principalArn parameter format is not valid")
        kind = str(body.get("type") or "STANDARD")
        if kind not in _TYPES:
            raise AccessEntryError("InvalidParameterException", 400, f"The type {kind} is not valid")
        with self._lock:
            key = self._key(cluster, principal)
            if key in self._entries:
                message = f"The specified access entry resource is already in use on this cluster: {principal}"
                raise AccessEntryError("ResourceInUseException", 409, message)
            now = time.time()
            self._entries[key] = {
                "clusterName": cluster,
                "principalArn": principal,
                "kubernetesGroups": list(body.get("kubernetesGroups") or []),
                "accessEntryArn": _arn(cluster, principal),
                "createdAt": now,
                "modifiedAt": now,
                "tags": dict(body.get("tags") or {}),
                "username": body.get("username") or _username(principal),
                "type": kind,
            }
            return dict(self._entries[key])

    def update(self, cluster: str, principal: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer UpdateAccessEntry: groups and user name. Raises ``AccessEntryError``."""
        with self._lock:
            entry = self._get(cluster, principal)
            if "kubernetesGroups" in body:
                entry["kubernetesGroups"] = list(body["kubernetesGroups"] or [])
            if body.get("username"):
                entry["username"] = body["username"]
            entry["modifiedAt"] = time.time()
            return dict(entry)

    def describe(self, cluster: str, principal: str) -> dict[str, Any]:
        """Answer DescribeAccessEntry. Raises ``AccessEntryError``."""
        with self._lock:
            return dict(self._get(cluster, principal))

    def of(self, cluster: str) -> list[dict[str, Any]]:
        """Return every entry of a cluster in this request's region; empty for an unknown cluster."""
        with self._lock:
            return [dict(entry) for key, entry in self._entries.items() if key[:2] == (get_region(), cluster)]

    def delete(self, cluster: str, principal: str) -> None:
        """Answer DeleteAccessEntry. Raises ``AccessEntryError``."""
        with self._lock:
            self._get(cluster, principal)
            key = self._key(cluster, principal)
            self._entries.pop(key)
            self._policies.pop(key, None)

    def answer(self, method: str, path: str, body: bytes) -> Answer | None:
        """Return the HTTP answer to a call on access entries, or None for any other ``path``."""
        match = _PATH.match(path)
        if match is None:
            return None
        cluster, principal = unquote(match["cluster"]), unquote(match["principal"] or "")
        try:
            parsed = json.loads(body) if body else {}
            if match["policies"]:
                result = self._policy_call(method, cluster, principal, unquote(match["policies"]), parsed)
            else:
                result = self._entry_call(method, cluster, principal, parsed)
        except AccessEntryError as refused:
            text = json.dumps({"message": str(refused), "clusterName": cluster})
            headers = {"Content-Type": "application/json", "x-amzn-errortype": refused.code}
            return refused.status, headers, text.encode()
        return 200, {"Content-Type": "application/json"}, json.dumps(result).encode()

    def _entry_call(self, method: str, cluster: str, principal: str, body: Mapping[str, Any]) -> dict[str, Any]:
        match method, bool(principal):
            case "POST", False:
                return {"accessEntry": self.create(cluster, body)}
            case "GET", False:
                self._key(cluster, "")
                return {"accessEntries": [entry["principalArn"] for entry in self.of(cluster)]}
            case "GET", True:
                return {"accessEntry": self.describe(cluster, principal)}
            case "POST", True:
                return {"accessEntry": self.update(cluster, principal, body)}
            case _:
                self.delete(cluster, principal)
                return {}

    def _policy_call(
        self, method: str, cluster: str, principal: str, path: str, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        with self._lock:
            self._get(cluster, principal)
            policies = self._policies.setdefault(self._key(cluster, principal), {})
            named = {"clusterName": cluster, "principalArn": principal}
            if method == "GET":
                return {**named, "associatedAccessPolicies": list(policies.values())}
            if method == "DELETE":
                policies.pop(path.removeprefix("/access-policies/"), None)
                return {}
            now = time.time()
            policy = {"policyArn": body["policyArn"], "accessScope": body.get("accessScope") or {}}
            policies[body["policyArn"]] = {**policy, "associatedAt": now, "modifiedAt": now}
            return {**named, "associatedAccessPolicy": policies[body["policyArn"]]}

    def _get(self, cluster: str, principal: str) -> dict[str, Any]:
        entry = self._entries.get(self._key(cluster, principal))
        if entry is None:
            message = f"The specified principalArn could not be found: {principal}."
            raise AccessEntryError("ResourceNotFoundException", 404, message)
        return entry

    def _key(self, cluster: str, principal: str) -> Key:
        if not self._exists(get_region(), cluster):
            raise AccessEntryError("ResourceNotFoundException", 404, f"No cluster found for name: {cluster}.")
        return get_region(), cluster, principal


def _arn(cluster: str, principal: str) -> str:
    kind, name = principal.split(":", 5)[5].split("/", 1)[0], principal.rsplit("/", 1)[-1]
    account = principal.split(":")[4] or get_account_id()
    prefix = f"arn:aws:eks:{get_region()}:{get_account_id()}:access-entry"
    return f"{prefix}/{cluster}/{kind}/{account}/{name}/{uuid4()}"


def _username(principal: str) -> str:
    """Return the default user name: a role's sessions are named, as EKS documents it; a user is its own ARN."""
    if ":role/" not in principal:
        return principal
    account, role = principal.split(":")[4], principal.rsplit("/", 1)[-1]
    return f"arn:aws:sts::{account}:assumed-role/{role}/{{{{SessionName}}}}"
