"""Question to the scheduler, before a replacement is placed: in which zones may the pods that leave run?

Asked only where one of them has a required rule about zones (`Pod.tied_to_zones`), and within `SECONDS`. Never raises:
without an answer the zones keep the order that they have without such pods, and `doubts` says so."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leeward.errors import InvalidInputError, LeewardError
from leeward.gc_pause import collector_paused
from leeward.model.pod import FINISHED
from leeward.model.raw_fields import mapping, text
from leeward.placement.zone_fit import zone_refusals
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Clusters, Kubernetes, Listed
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodReader, PodSpec
from leeward.termination.placement_inputs import PlacementInputs
from leeward.time_budget import TimeBudget

SECONDS = 5.0  # of the two minutes that a spot warning leaves; a new node needs one of them
NOT_COMPARED = "the zones in which its pods may run were not compared"


def learn_zone_refusals(
    inputs: PlacementInputs, tied: Collection[str], cluster: str, clock: Clock, clusters: Clusters
) -> None:
    """Add to `inputs` which of the `tied` pods (`namespace/name`) may not run in which zone. Makes one list call for
    the nodes, and one for the pods of each namespace that the rules compare: as a rule the pods' own.
    """
    zones = {subnet.zone: subnet.zone_id for subnet in inputs.known.subnets}
    if inputs.node is None or len(zones) < 2:
        return
    budget = TimeBudget.of(clock, SECONDS)
    try:
        kubernetes = clusters.kubernetes(cluster, within=budget)
        with collector_paused():
            nodes, pods = kubernetes.read(Listed.NODES, _node), _compared(kubernetes, tied)
            found = zone_refusals(inputs.node.name, tied, zones, nodes, pods, lambda: budget.left > 0)
    except LeewardError as error:
        inputs.doubts.append(f"{NOT_COMPARED}: {error}")
        return
    if found is None:
        inputs.doubts.append(f"{NOT_COMPARED} within {SECONDS:.0f} s")
        return
    inputs.known = replace(inputs.known, refusals=found)


def _compared(kubernetes: Kubernetes, tied: Collection[str]) -> Sequence[PodSpec]:
    """Return the pods that the rules of the tied ones compare: those of their namespaces, and of the namespaces that
    their terms name. A namespaceSelector with labels selects none: this function may not read namespaces.
    """
    parse = _PodParser(reader=PodReader())
    by_namespace: dict[str, list[PodSpec]] = {}
    wanted = {key.partition("/")[0] for key in tied}
    while missing := sorted(wanted - by_namespace.keys()):
        for namespace in missing:
            found = kubernetes.read(Listed.PODS, parse, namespace=namespace)
            by_namespace[namespace] = [pod for pod in found if pod is not None]
        own = [pod.needs for pods in by_namespace.values() for pod in pods if pod.key in tied]
        groups = [term.group for needs in own for term in (*needs.near, *needs.away)]
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
class _PodParser:
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
