"""Nodes as `leeward top` shows them: use, price, state and blockers of each, joined from what was read.

Decides the state of a node and what counts as its blocker; `top.reading` reads, `top.tables` prints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from leeward.budgets.pdb import PdbIndex, blocking_budgets
from leeward.cluster.joins import group_name
from leeward.disruption.do_not_disrupt import node_opt_outs, pod_opt_outs
from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.instance import CapacityType, Instance
from leeward.model.node import Node
from leeward.model.pod import FINISHED, Pod, PodDisruptionBudget
from leeward.model.quantity import CPU, MEMORY, PODS, amount
from leeward.model.termination import TerminationRecord
from leeward.scheduling.pods import as_held, pod_requests
from leeward.snapshot.launchable import price_of

MILLI = 1000  # thousandths of a core
_CAPACITY_LABELS = ("karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType")


class NodeState(StrEnum):
    """States of a node, the one furthest on the way to its end first: the first that holds is shown."""

    TERMINATING = "terminating"  # its group was asked to terminate the instance
    SETTLING = "settling"  # its pods have left
    DRAINING = "draining"  # it carries the taint of a termination, or a termination has claimed it
    DELETING = "deleting"  # its Node object is being deleted
    NOT_READY = "NotReady"
    CORDONED = "cordoned"
    READY = "Ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedNode:
    """Node with its allocatable amounts: CPU in thousandths of a core, memory in bytes, pods by number."""

    node: Node
    cpu: int
    memory: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPod:
    """Pod that has not finished, with its requests: CPU in thousandths of a core, memory in bytes."""

    pod: Pod
    cpu: int
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopNode:
    """Node as it is shown. Amounts as `OfferedNode` and `RunningPod` have them; `price` in dollars an hour, None: not
    known; `blockers`: what keeps it from being drained or disrupted, most pods first.
    """

    node: Node
    state: NodeState
    group: str | None
    instance_type: str
    zone: str
    capacity: CapacityType | None
    price: float | None
    cpu: tuple[int, int]  # requested, allocatable
    memory: tuple[int, int]
    pods: tuple[int, int]  # that run, that the kubelet takes
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopFacts:
    """Facts that were read of a cluster. `listed`: group by instance; `records`: open terminations by instance;
    `warnings`: what could not be read, a sentence each.
    """

    nodes: Sequence[OfferedNode]
    pods: Sequence[RunningPod]
    budgets: Sequence[PodDisruptionBudget] = ()
    listed: Mapping[str, str] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    records: Mapping[str, TerminationRecord] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @property
    def pending(self) -> int:
        """Number of pods that no node has yet."""
        return sum(not one.pod.node for one in self.pods)


def offered_node(raw: Mapping[str, Any]) -> OfferedNode:
    """Parse a raw Node. Raises InvalidInputError for a malformed quantity."""
    allocatable = (raw.get("status") or {}).get("allocatable") or {}
    offers = {name: amount(name, allocatable.get(name, 0), down=True) for name in (CPU, MEMORY, PODS)}
    return OfferedNode(node=Node.from_json(raw), cpu=offers[CPU], memory=offers[MEMORY], pods=offers[PODS])


def running_pod(raw: Mapping[str, Any]) -> RunningPod | None:
    """Parse a raw Pod; None for one that has finished. Raises InvalidInputError for a malformed quantity."""
    if (raw.get("status") or {}).get("phase") in FINISHED:
        return None
    requests = pod_requests(as_held(raw.get("spec") or {}, raw.get("status") or {}))
    return RunningPod(pod=Pod.from_json(raw), cpu=requests.get(CPU, 0), memory=requests.get(MEMORY, 0))


def top_nodes(facts: TopFacts, now: datetime) -> tuple[TopNode, ...]:
    """Return every node as it is shown, by group and name."""
    budgets = PdbIndex(facts.budgets)
    pods_on: dict[str, list[RunningPod]] = {}
    for running in facts.pods:
        pods_on.setdefault(running.pod.node, []).append(running)
    nodes = [_top_node(offered, pods_on.get(offered.node.name, ()), facts, budgets, now) for offered in facts.nodes]
    return tuple(sorted(nodes, key=lambda one: (one.group or "", one.node.name)))


def _top_node(
    offered: OfferedNode, pods: Sequence[RunningPod], facts: TopFacts, budgets: PdbIndex, now: datetime
) -> TopNode:
    node = offered.node
    instance, record = facts.instances.get(node.instance_id), facts.records.get(node.instance_id)
    instance_type = (instance.type if instance else "") or node.labels.get(well_known.INSTANCE_TYPE_LABEL, "")
    zone = (instance.zone if instance else "") or node.labels.get(well_known.ZONE_LABEL, "")
    capacity = instance.capacity_type if instance else _labelled_capacity(node)
    return TopNode(
        node=node,
        state=state_of(node, record),
        group=group_name(facts.listed.get(node.instance_id), instance),
        instance_type=instance_type,
        zone=zone,
        capacity=capacity,
        price=price_of(instance_type, zone, capacity, facts.prices) if capacity else None,
        cpu=(sum(one.cpu for one in pods), offered.cpu),
        memory=(sum(one.memory for one in pods), offered.memory),
        pods=(len(pods), offered.pods),
        blockers=blockers_of(node, [one.pod for one in pods], record, budgets, now),
    )


def state_of(node: Node, record: TerminationRecord | None) -> NodeState:
    """Return the state of a node; `record`: its open termination, None without one."""
    if record is not None and "terminating" in record.times:
        return NodeState.TERMINATING
    if record is not None and "drained" in record.times:
        return NodeState.SETTLING
    if record is not None or node.tainted:
        return NodeState.DRAINING
    if node.deleting:
        return NodeState.DELETING
    if not node.ready:
        return NodeState.NOT_READY
    return NodeState.CORDONED if node.unschedulable else NodeState.READY


def blockers_of(
    node: Node, pods: Iterable[Pod], record: TerminationRecord | None, budgets: PdbIndex, now: datetime
) -> tuple[str, ...]:
    """Return what keeps the node: of one that drains what the drain reports, else its own opt-outs, then budgets and
    opt-outs of its pods, those that hold most pods first.
    """
    if record is not None:
        return record.blocked_by
    counts: dict[str, int] = {}
    for pod in pods:
        for cause in blockers_of_pod(pod, budgets, now):
            counts[cause] = counts.get(cause, 0) + 1
    of_pods = sorted(counts, key=lambda cause: (-counts[cause], cause))
    return (*(f"annotation {one.key}" for one in node_opt_outs(node)), *of_pods)


def blockers_of_pod(pod: Pod, budgets: PdbIndex, now: datetime) -> Iterator[str]:
    """Yield the budgets and annotations that hold the pod; no drain evicts pods of DaemonSets and static pods."""
    if not (pod.of_daemon_set or pod.mirror):
        yield from blocking_budgets(pod, budgets.selecting(pod))
    yield from (f"pod {pod.key} ({one.key})" for one in pod_opt_outs(pod, now))


def _labelled_capacity(node: Node) -> CapacityType | None:
    """Return the capacity type by Karpenter's or EKS' label, None without one."""
    label = next((node.labels[key] for key in _CAPACITY_LABELS if node.labels.get(key)), "")
    return {"spot": CapacityType.SPOT, "on-demand": CapacityType.ON_DEMAND}.get(label.lower().replace("_", "-"))
