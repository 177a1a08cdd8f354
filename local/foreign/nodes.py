"""Nodes of the local EC2's instances on the given API server: the bridge's registry, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from local.cluster.errors import ApiError
from local.cluster.nodes import NodeSpec, node_object, ready_condition
from local.cluster.objects import Obj, condition_of
from local.cluster.registry import instance_of_node
from local.cluster.timestamps import rfc3339
from local.foreign.api import MERGE, STRATEGIC, ApiClient

NODES = "/api/v1/nodes"


class ApiNodes:
    """Registry of nodes. `version` is the server's own, as that of its kubelets."""

    def __init__(self, api: ApiClient, version: str) -> None:
        self._api = api
        self._version = version

    @property
    def version(self) -> str:
        return self._version

    def find(self, name: str) -> Obj | None:
        try:
            found: Obj = self._api.call("GET", f"{NODES}/{name}")
        except ApiError as refused:
            if refused.code == 404:
                return None
            raise
        return found

    def of_instance(self, instance_id: str) -> Obj | None:
        nodes = self._api.call("GET", NODES)["items"]
        return next((node for node in nodes if instance_of_node(node) == instance_id), None)

    def add(self, spec: NodeSpec) -> Obj:
        node = node_object(spec, now=rfc3339(time.time()))
        added: Obj = self._api.call("POST", NODES, {"apiVersion": "v1", "kind": "Node", **node})
        return added

    def set_ready(self, name: str, status: str) -> None:
        present = condition_of(self.find(name) or {}, "Ready") or {}
        if present.get("status") != status:
            self._patch(name, {"conditions": [ready_condition(status=status, now=rfc3339(time.time()))]}, STRATEGIC)

    def write_status(self, node: Obj) -> None:
        self._patch(str(node["metadata"]["name"]), node["status"], MERGE)

    def delete(self, name: str) -> None:
        try:
            self._api.call("DELETE", f"{NODES}/{name}")
        except ApiError as refused:
            if refused.code != 404:
                raise

    def _patch(self, name: str, status: Mapping[str, Any], kind: str) -> None:
        self._api.call("PATCH", f"{NODES}/{name}/status", {"status": status}, kind=kind)
