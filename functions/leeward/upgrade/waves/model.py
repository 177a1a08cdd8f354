"""Model of the wave planner: pods that have to leave a node, the budgets and workloads for which nodes compete, limits.

Decides nothing: joins nodes, pods, budgets and workloads once, so that the wave planner only adds and compares."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from leeward.budgets.pdb_index import PdbIndex
from leeward.model.pod import Pod, PodDisruptionBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveNode:
    """An old node. `budgets`: pods under each PodDisruptionBudget, `workloads`: replicas of each workload, both by
    name (`namespace/name`, `namespace/Kind/name`). `failed_before`: its drain has failed in this upgrade. `by_others`:
    what ends it is not this upgrade, so it takes a place and decides no zone.
    """

    name: str
    zone: str
    created: datetime
    failed_before: bool = False
    by_others: bool = False
    budgets: Mapping[str, int] = field(default_factory=dict)
    workloads: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConstraints:
    """Constraints for which the nodes compete. `allowed`: disruptions that each budget allows now; `replicas`: pods of
    each workload that has more than one, on whatever node; `serving`: those of them that serve now.
    """

    allowed: Mapping[str, int] = field(default_factory=dict)
    replicas: Mapping[str, int] = field(default_factory=dict)
    serving: Mapping[str, int] = field(default_factory=dict)


def workload_of(pod: Pod) -> str | None:
    """Return the controller, as `namespace/Kind/name`; None for a pod without one."""
    return f"{pod.namespace}/{pod.owner.kind}/{pod.owner.name}" if pod.owner is not None else None


def has_to_leave(pod: Pod) -> bool:
    """Return whether the pod is neither static, nor a DaemonSet's, nor finished, nor terminating already."""
    return pod.evictable


def wave_node(
    name: str,
    zone: str,
    created: datetime,
    pods: Iterable[Pod],
    index: PdbIndex,
    *,
    failed_before: bool = False,
) -> WaveNode:
    """Return the node with what its pods take of each budget and workload."""
    budgets: Counter[str] = Counter()
    workloads: Counter[str] = Counter()
    for pod in pods:
        if has_to_leave(pod):
            budgets.update(budget.key for budget in index.selecting(pod))
            workload = workload_of(pod)
            if workload is not None:
                workloads[workload] += 1
    return WaveNode(
        name=name, zone=zone, created=created, failed_before=failed_before, budgets=budgets, workloads=workloads
    )


def cluster_constraints(
    budgets: Iterable[PodDisruptionBudget], pods: Sequence[Pod], *, only_ready: bool = False
) -> ClusterConstraints:
    """Return the constraints of the whole cluster. `only_ready`: in a running upgrade only replicas that are Ready
    serve; a plan takes all.
    """
    sizes: Counter[str] = Counter()
    serving: Counter[str] = Counter()
    for pod in pods:
        workload = workload_of(pod)
        if workload is not None and not (pod.finished or pod.deletion):
            sizes[workload] += 1
            serving[workload] += not only_ready or pod.ready
    return ClusterConstraints(
        allowed={budget.key: max(budget.disruptions_allowed, 0) for budget in budgets},
        replicas={workload: size for workload, size in sizes.items() if size > 1},
        serving={workload: serving[workload] for workload, size in sizes.items() if size > 1},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on nodes that may be disrupted at once. `per_zone`: of zones with a budget of their own; `one_zone`:
    all that the upgrade ends in the same zone.
    """

    together: int
    per_zone: Mapping[str, int] = field(default_factory=dict)
    one_zone: bool = False
