"""Cordons of old nodes: all of them once the gate has opened, kept in place from then on, removed at the end.

Decides whether all old nodes leave external load balancers at once (docs/features.md, U7), from Services of type
LoadBalancer, their EndpointSlices, and new nodes that are Ready: only where each such Service has a ready endpoint on
one of them. Else each node leaves at its own drain, before its first eviction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from leeward.errors import LeewardError, ObjectGoneError
from leeward.model import well_known
from leeward.model.counts import count_of
from leeward.model.load_balancing import Service
from leeward.model.node import Node
from leeward.model.raw_fields import mapping, mappings, metadata_of, text, texts
from leeward.ports import Ports
from leeward.ports.kubernetes import Clusters, Kubernetes, Listed
from leeward.termination.settling import services_of
from leeward.upgrade.gate import unserved_zones, zones_to_serve
from leeward.upgrade.lease import read, written
from leeward.upgrade.members import Age
from leeward.upgrade.observation import Observation, observe
from leeward.upgrade.preflight.model import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import Next, Run
from leeward.upgrade.waves.drain_selection import with_decrement

SERVICE_LABEL = "kubernetes.io/service-name"  # of an EndpointSlice: the Service that it belongs to


def cordon(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Cordon the old nodes so that no pod lands on them any more. New nodes that an earlier phase had cordoned are
    returned to service.
    """
    record = read(run, ports.upgrades)
    observation = observe(record, ports)
    new = [one.node for one in observation.preflight.members if one.age is Age.NEW and one.node is not None]
    leave = look_for_exclusion(ports.clusters.kubernetes(record.cluster), {node.name for node in new if node.ready})
    count = set_cordons(record, observation, ports.clusters, exclude=leave.at_once)
    if not record.cordoned:
        written(replace(record, cordoned=True), ports.upgrades)
    done = f"cordoned {count_of(count, 'old node')}" if count else "they are cordoned already"
    return replace(run, next=Next.CORDONED, why=f"{done}; {leave.why}")


def set_cordons(record: UpgradeRecord, observation: Observation, clusters: Clusters, *, exclude: bool = False) -> int:
    """Cordon old members, with `exclude` also out of load balancers; remove Leeward's cordons from new ones. Cordons
    and labels of others stay. Where new nodes serve some of the zones at a time, the others keep their nodes.
    """
    kubernetes, count = clusters.kubernetes(record.cluster), 0
    preflight = observation.preflight
    later = _served_later(preflight, record)
    for one in preflight.members:
        if one.node is None:
            continue
        with suppress(ObjectGoneError):
            waits = zone_of(preflight.snapshot, one) in later
            leaves = exclude and well_known.EXCLUDE_LABEL not in one.node.labels
            if one.age is Age.OLD and (leaves or not one.node.unschedulable) and not waits:
                kubernetes.cordon(one.node, record.group, exclude=exclude)
                count += 1
            elif one.age is Age.NEW and well_known.CORDONED_FOR in one.node.annotations:
                kubernetes.uncordon(one.node)
    return count


def _served_later(preflight: Preflight, record: UpgradeRecord) -> frozenset[str]:
    """Return zones whose old nodes still take pods: without a Ready new node, where maxSurge serves only some at a
    time, or where the group chooses the zones of a raised desired size and the gate did not wait for these.
    """
    if with_decrement(record):
        return unserved_zones(preflight)
    if not record.refusal or record.others_scaled is not None:
        return frozenset()
    new = (one for one in preflight.members if one.age is Age.NEW and one.node is not None and one.node.ready)
    return zones_to_serve(preflight) - {zone_of(preflight.snapshot, one) for one in new}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """An EndpointSlice. `service`: namespace/name, empty where it belongs to none; `nodes`: that
    hold a ready endpoint.
    """

    service: str
    nodes: frozenset[str]

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse an EndpointSlice of the API. A missing condition counts as ready, as Kubernetes defines it."""
        meta = metadata_of(raw, "endpointslice")
        service = texts(meta.get("labels")).get(SERVICE_LABEL)
        ready = [one for one in mappings(raw.get("endpoints")) if _is_ready(one)]
        return cls(
            service=f"{text(meta.get('namespace'), 'default')}/{service}" if service else "",
            nodes=frozenset(text(one.get("nodeName")) for one in ready) - {""},
        )


def _is_ready(endpoint: Mapping[str, Any]) -> bool:
    return mapping(endpoint.get("conditions")).get("ready") is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """The decision. `at_once`: all old nodes now; `why` in a sentence."""

    at_once: bool
    why: str


def exclusion(services: Sequence[Service], slices: Sequence[Slice], new: Collection[str]) -> Exclusion:
    """Decide from parsed objects. `new`: names of new nodes that are Ready. Without a Service of type LoadBalancer
    there is nothing to leave, and other load balancers hold nodes for reasons that the cluster does not show.
    """
    balanced = sorted(one.key for one in services if one.balanced)
    if not balanced:
        return Exclusion(at_once=False, why="no Service of type LoadBalancer")
    served = {one.service for one in slices if one.nodes & set(new)}
    lacking = [key for key in balanced if key not in served]
    if lacking:
        names = ", ".join(lacking[:5]) + (" ..." if len(lacking) > 5 else "")
        why = f"no new node holds a ready endpoint of {names}: each old node leaves load balancers with its turn"
        return Exclusion(at_once=False, why=why)
    return Exclusion(at_once=True, why=f"new nodes serve {', '.join(balanced[:5])}: old ones leave load balancers now")


def look_for_exclusion(kubernetes: Kubernetes, new: Collection[str]) -> Exclusion:
    """Read two lists of the watch cache, the second only where a Service needs it, and decide. Where they cannot be
    read, nothing leaves at once: that is never wrong.
    """
    try:
        services = services_of(kubernetes)
        balanced = any(one.balanced for one in services)
        slices = kubernetes.read(Listed.ENDPOINT_SLICES, Slice.from_json) if balanced else ()
    except LeewardError as error:
        return Exclusion(at_once=False, why=f"Services could not be read: {error}")
    return exclusion(services, slices, new)


def uncordon(nodes: Iterable[Node], record: UpgradeRecord, clusters: Clusters) -> None:
    """Undo Leeward's cordons, and no others."""
    kubernetes = clusters.kubernetes(record.cluster)
    for node in nodes:
        if {well_known.CORDONED_FOR, well_known.EXCLUDED_FOR} & node.annotations.keys():
            with suppress(ObjectGoneError):
                kubernetes.uncordon(node)
