"""Protection of a workflow's new nodes from Cluster Autoscaler: they are empty until the pods of the nodes that they
replace have come, and Cluster Autoscaler removes unneeded nodes.

The annotation by which it leaves a node alone (its FAQ, "How can I prevent Cluster Autoscaler from scaling down a
particular node?") is set as soon as the Node exists, Ready or not, and removed when the workflow has ended in whatever
way. A second annotation names the owner, a group or a disruption run: annotations of others stay."""

from collections.abc import Iterable
from contextlib import suppress

from leeward.errors import LeewardError, ObjectGoneError
from leeward.model.node import Node
from leeward.model.well_known import KEPT_FOR, SCALE_DOWN_DISABLED
from leeward.ports.kubernetes import Clusters, Kubernetes


def protect(nodes: Iterable[Node], owner: str, kubernetes: Kubernetes) -> None:
    """Protect the nodes. Idempotent: a protected node is skipped."""
    for node in nodes:
        if SCALE_DOWN_DISABLED not in node.annotations:
            with suppress(ObjectGoneError):
                kubernetes.annotate(node, {SCALE_DOWN_DISABLED: "true", KEPT_FOR: owner})


def release(nodes: Iterable[Node], owner: str, kubernetes: Kubernetes) -> list[str]:
    """Remove the owner's protection from the nodes that have it, and return their names."""
    kept = [node for node in nodes if node.annotations.get(KEPT_FOR) == owner]
    for node in kept:
        with suppress(ObjectGoneError):
            kubernetes.annotate(node, {SCALE_DOWN_DISABLED: None, KEPT_FOR: None})
    return [node.name for node in kept]


def release_all(owner: str, cluster: str, clusters: Clusters) -> None:
    """Remove the owner's protection at the end, which nothing may block, not even a cluster that does not answer: the
    minute reconciler repeats it.
    """
    with suppress(LeewardError):
        kubernetes = clusters.kubernetes(cluster)
        release(kubernetes.nodes(), owner, kubernetes)


def owners(nodes: Iterable[Node]) -> list[str]:
    """Return the owners of all protected nodes, by name."""
    return sorted({node.annotations[KEPT_FOR] for node in nodes if KEPT_FOR in node.annotations})
