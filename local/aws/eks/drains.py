"""Drain of a node of a managed node group by EKS: cordon, evict through the Eviction API, and, when forced, delete.
A zonal shift cordons the nodes of a zone.

It calls the cluster whose endpoint is set in the local EKS, with a bearer token given through the control API.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SECONDS = 10.0
ZONE_LABEL = "topology.kubernetes.io/zone"
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Endpoint of a cluster's API and EKS's credentials there. ``certificate``: PEM of its authority."""

    endpoint: str
    token: str
    certificate: str

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Access | None:
        """Return the access from the fields set for a cluster, None while they do not suffice: then no node holds any
        pods.
        """
        if not fields.get("endpoint") or not fields.get("token"):
            return None
        pem = base64.b64decode(fields.get("certificateAuthorityData") or "").decode()
        return cls(endpoint=str(fields["endpoint"]), token=str(fields["token"]), certificate=pem)


class Nodes:
    """Nodes of one cluster, as EKS treats them."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._tls = ssl.create_default_context(cadata=access.certificate) if access.certificate else None

    def of_instance(self, instance: str) -> str | None:
        """Return the name of the instance's node, None before it has joined and after it has been deleted."""
        items = self._call("GET", "/api/v1/nodes").get("items", [])
        names = (one["metadata"]["name"] for one in items if one["spec"].get("providerID", "").endswith(f"/{instance}"))
        return next(names, None)

    def cordon(self, node: str) -> None:
        """Mark the node unschedulable."""
        self._call("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})

    def uncordon(self, node: str) -> None:
        """Mark the node schedulable."""
        self._call("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})

    def schedulable_in(self, zone: str) -> list[str]:
        """Return the names of the nodes in a zone that are not cordoned."""
        items = self._call("GET", f"/api/v1/nodes?labelSelector={ZONE_LABEL}%3D{zone}").get("items", [])
        return [one["metadata"]["name"] for one in items if not one["spec"].get("unschedulable")]

    def empty(self, node: str, *, force: bool) -> bool:
        """Evict every pod once; return True when none is left that must be evicted. ``force`` deletes past budgets."""
        items = self._call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}").get("items", [])
        left = [pod for pod in items if _has_to_leave(pod)]
        for pod in left:
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            if force:
                self._call("DELETE", path)
            else:
                named = {"name": meta["name"], "namespace": meta["namespace"]}
                self._call(
                    "POST", f"{path}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": named}
                )
        return not left

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return the answer; nothing for a missing object or a refusal: the next attempt repeats the call."""
        headers = {"Authorization": f"Bearer {self._access.token}"}
        headers["Content-Type"] = _MERGE if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._access.endpoint + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS, context=self._tls) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as refused:
            if refused.code not in {404, 409, 429}:
                raise
            return {}


def _has_to_leave(pod: Mapping[str, Any]) -> bool:
    meta = pod["metadata"]
    if "kubernetes.io/config.mirror" in meta.get("annotations", {}):
        return False
    if pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
        return False
    return not any(owner["kind"] == "DaemonSet" for owner in meta.get("ownerReferences", ()))
