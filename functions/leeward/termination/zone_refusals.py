"""Question to the scheduler, before a replacement is placed: in which zones may the pods that leave run?

Asked only where one of them has a required rule about zones (`Pod.tied_to_zones`), or the planner has seen that other
pods' anti-affinity means one of them (`leeward.dev/kept-apart-by`), and within `SECONDS`. Never raises: without an
answer the zones keep the order that they have without such pods, and `doubts` says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from leeward.errors import InvalidInputError, LeewardError
from leeward.gc_pause import collector_paused
from leeward.model.pod import FINISHED
from leeward.model.raw_fields import mapping, text
from leeward.placement.zone_fit import zone_refusals
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes, Listed
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodReader, PodSpec
from leeward.time_budget import TimeBudget

if TYPE_CHECKING:
    from leeward.termination.replacing import PlacementInputs

SECONDS = 5.0  # of the two minutes that a spot warning leaves; a new node needs one of them
_MOST_NAMED = 3
NOT_COMPARED = "the zones in which its pods may run were not compared"


def learn_zone_refusals(
    inputs: PlacementInputs, tied: Collection[str], others: Collection[str], cluster: str, ports: Ports
) -> None:
    """Add to `inputs` which of the `tied` pods (`namespace/name`) may not run in which zone. Makes one list call for
    the nodes, and one for the pods of each namespace that the rules compare: as a rule the pods' own. `others`:
    namespaces of pods whose anti-affinity means some of them.
    """
    zones = {subnet.zone: subnet.zone_id for subnet in inputs.known.subnets}
    if inputs.node is None or len(zones) < 2:
        return
    budget = TimeBudget.of(ports.clock, SECONDS)
    try:
        kubernetes = ports.clusters.kubernetes(cluster, within=budget)
        with collector_paused():
            nodes, pods = kubernetes.read(Listed.NODES, _node), _compared(kubernetes, tied, others)
            unread = sorted(pod.key for pod in pods if pod.key in tied and _is_unread(pod))
            judged, pods = frozenset(tied).difference(unread), [_read_alone(pod) for pod in pods]
            found = zone_refusals(inputs.node.name, judged, zones, nodes, pods, lambda: budget.left > 0)
    except LeewardError as error:
        inputs.doubts.append(f"{NOT_COMPARED}: {error}")
        return
    if found is None:
        inputs.doubts.append(f"{NOT_COMPARED} within {SECONDS:.0f} s")
        return
    if unread:
        why = "a namespaceSelector asks for labels of namespaces, which this function may not read"
        inputs.doubts.append(f"the zones in which {', '.join(unread[:_MOST_NAMED])} may run were not compared: {why}")
    inputs.known = replace(inputs.known, refusals=found)


def _is_unread(pod: PodSpec) -> bool:
    return any(term.group.unread for term in (*pod.needs.near, *pod.needs.away))


def _read_alone(pod: PodSpec) -> PodSpec:
    """Return the pod without terms of which it is not known which pods they mean: they prove no refusal."""
    if not _is_unread(pod):
        return pod
    near, away = ([term for term in terms if not term.group.unread] for terms in (pod.needs.near, pod.needs.away))
    return replace(pod, needs=replace(pod.needs, near=tuple(near), away=tuple(away)))


def _compared(kubernetes: Kubernetes, tied: Collection[str], others: Collection[str]) -> Sequence[PodSpec]:
    """Return the pods that the rules of the tied ones compare: those of their namespaces, of the namespaces that their
    terms name, and of `others`. Terms with a namespaceSelector by labels are left out: this function may not read
    namespaces.
    """
    parse = _BarePodParser(reader=PodReader())
    by_namespace: dict[str, list[PodSpec]] = {}
    wanted = {*others, *(key.partition("/")[0] for key in tied)}
    while missing := sorted(wanted - by_namespace.keys()):
        for namespace in missing:
            found = kubernetes.read(Listed.PODS, parse, namespace=namespace)
            by_namespace[namespace] = [pod for pod in found if pod is not None]
        own = [pod.needs for pods in by_namespace.values() for pod in pods if pod.key in tied]
        groups = [term.group for needs in own for term in (*needs.near, *needs.away) if not term.group.unread]
        if any(group.namespaces is None for group in groups):
            return [pod for pod in kubernetes.read(Listed.PODS, parse) if pod is not None]
        wanted.update(name for group in groups for name in group.namespaces or ())
    return [pod for pods in by_namespace.values() for pod in pods]


def _node(raw: Mapping[str, Any]) -> NodeSpec:
    try:
        return NodeSpec.from_json(raw)
    except InvalidInputError:
        return NodeSpec.unread(raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BarePodParser:
    """Parser of a raw pod without its volumes, whose zones are restrictions of their own. None: it has finished."""

    reader: PodReader = field(compare=False)

    def __call__(self, raw: Mapping[str, Any]) -> PodSpec | None:
        if text(mapping(raw.get("status")).get("phase")) in FINISHED:
            return None
        bare = {**raw, "spec": {**mapping(raw.get("spec")), "volumes": ()}}
        try:
            return self.reader.read(bare)
        except InvalidInputError as error:
            return self.reader.unread(bare, error)
