"""Cost of disrupting a node for its workloads.

Source: Karpenter v0.30, pkg/controllers/deprovisioning/helpers.go (GetPodEvictionCost, disruptionCost) and types.go
(the node's remaining lifetime): nodes with fewer pods, pods of lower priority and little remaining lifetime come
first."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.scheduling.pods import PodSpec

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_DELETION_UNIT, _PRIORITY_UNIT = 2**27, 2**25
_LEAST, _MOST = -10.0, 10.0


def eviction_cost(pod: Pod, priority: int) -> float:
    """Return 1 for an ordinary pod, more for one of high priority or deletion cost, from -10 to 10."""
    cost = 1.0 + _deletion_cost(pod) / _DELETION_UNIT + priority / _PRIORITY_UNIT
    return min(max(cost, _LEAST), _MOST)


def _deletion_cost(pod: Pod) -> int:
    """Return the annotated deletion cost; a value that is not a whole number counts as none."""
    try:
        return int(pod.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def lifetime_left(node: Node, expire_after: timedelta | None, now: datetime) -> float:
    """Return the fraction of its lifetime that is left for a node that expires, from 0 to 1; else 1."""
    if not expire_after:
        return 1.0
    return min(max((expire_after - (now - node.created)) / expire_after, 0.0), 1.0)


def disruption_cost(pods: Iterable[PodSpec], known: Mapping[str, Pod], left: float) -> float:
    """Return the cost of moving these pods. `known`: the same pods by `namespace/name`; `left`: `lifetime_left`."""
    return left * sum(eviction_cost(known[pod.key], -pod.order[0]) for pod in pods if pod.key in known)
