"""Nodes of a cluster as a kubelet and the cloud node controller write them: the port of the node bridge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.objects import Obj, is_ready


class NodeRegistry(Protocol):
    """Node objects that a bridge reads and writes. Writes raise ApiError where the API server refuses them."""

    @property
    def version(self) -> str:
        """Version that the kubelets report, such as v1.36.2."""
        ...

    def find(self, name: str) -> Obj | None: ...

    def of_instance(self, instance_id: str) -> Obj | None: ...

    def add(self, spec: NodeSpec) -> Obj:
        """Register the node and return it."""
        ...

    def set_ready(self, name: str, status: str) -> None:
        """Write the Ready condition: True, False or Unknown. Idempotent."""
        ...

    def write_status(self, node: Obj) -> None:
        """Replace the status of the node with that of `node`."""
        ...

    def delete(self, name: str) -> None: ...


class ModelNodes:
    """Registry of the emulated cluster's nodes, in its model."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def version(self) -> str:
        return self._cluster.world.settings.version

    def find(self, name: str) -> Obj | None:
        return self._cluster.store.find("nodes", name)

    def of_instance(self, instance_id: str) -> Obj | None:
        nodes = self._cluster.store.each("nodes")
        return next((node for node in nodes if instance_of_node(node) == instance_id), None)

    def add(self, spec: NodeSpec) -> Obj:
        node = self._cluster.add_node(spec)
        if is_ready(node):
            self._cluster.events.record_readiness(node)
        return node

    def set_ready(self, name: str, status: str) -> None:
        self._cluster.set_node_ready(name, status)

    def write_status(self, node: Obj) -> None:
        self._cluster.update("nodes", node, subresource="status")

    def delete(self, name: str) -> None:
        self._cluster.delete("nodes", name)


def instance_of_node(node: Mapping[str, Any]) -> str:
    """Return the instance id at the end of the node's provider id, or an empty text."""
    return str(node.get("spec", {}).get("providerID") or "").rpartition("/")[2]


def is_local(node: Mapping[str, Any]) -> bool:
    """Return whether the node is an instance of the local EC2: kind, KWOK and kubeadm give other provider ids."""
    return str(node["spec"].get("providerID") or "").startswith("aws:///")
