"""Cordons and termination requests of an upgrade: old instances, surplus launches, new ones that never joined.

The instances and the offsets are written into the upgrade's record before anything here is called; the causes' names
follow from it, so requesting the same termination twice is idempotent. Instances of an earlier start that have not
become nodes keep the gate closed for as long as they exist: the next start terminates them, and others are launched.
No pod has ever served on them.

Old nodes are cordoned once the gate has opened, kept so from then on, and uncordoned at the end. Whether all of them
leave external load balancers at once (docs/features.md, U7) is decided from Services of type LoadBalancer, their
EndpointSlices, and new nodes that are Ready: only where each such Service has a ready endpoint on one of them. Else
each node leaves at its own drain, before its first eviction."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from leeward.errors import LeewardError, NewerRecordError, ObjectGoneError
from leeward.model import well_known
from leeward.model.counts import count_of
from leeward.model.instance import Instance
from leeward.model.load_balancing import Service
from leeward.model.node import Node
from leeward.model.raw_fields import mapping, mappings, metadata_of, text, texts
from leeward.model.termination import Cause, CauseKind
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Clusters, Kubernetes, Listed
from leeward.termination import capacity_ledger
from leeward.termination.requests import request, subject_of
from leeward.termination.settling import services_of
from leeward.upgrade.capacity_ledger import offset_by, with_warning, without
from leeward.upgrade.gate import JOINS_WITHIN, unserved_zones, zones_to_serve
from leeward.upgrade.members import Age, Member
from leeward.upgrade.observation import Observation, observe
from leeward.upgrade.preflight.model import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord, cause_id, surge_of
from leeward.upgrade.run import UpgradeNext, UpgradeRun, read, written
from leeward.upgrade.waves.drain_selection import with_decrement
from leeward.upgrade.waves.model import has_to_leave

MOST_GIVEN_UP = 200
SERVICE_LABEL = "kubernetes.io/service-name"  # of an EndpointSlice: the Service that it belongs to


def request_terminations(
    record: UpgradeRecord,
    old: Iterable[str],
    observation: Observation,
    ports: Ports,
    may_start: Callable[[], bool] = lambda: True,
) -> list[str]:
    """Cordon, take out of load balancers, request the termination for both causes. `may_start` is asked before each
    node. Return the instances from the first that may not start on.
    """
    kubernetes = ports.clusters.kubernetes(record.cluster)
    nodes = {node.instance_id: node for node in observation.preflight.snapshot.nodes}
    instances = list(old)
    for number, name in enumerate(instances):
        if not may_start():
            return instances[number:]
        instance = observation.instances.get(name)
        if instance is None:
            continue
        if name in nodes:
            with suppress(ObjectGoneError):  # its termination finds no Node, and nothing to drain
                kubernetes.cordon(nodes[name], record.group, exclude=True)
        with suppress(NewerRecordError):  # it is requested when its record can be read; the wait for it ends in time
            request(subject_of(instance, record.cluster, group=record.group), _causes(record, name, ports.clock), ports)
    return []


def request_force(record: UpgradeRecord, old: Iterable[str], observation: Observation, ports: Ports) -> None:
    """Add force to terminations requested without it: their pods are deleted once their grace is over."""
    now = ports.clock.now()
    for name in old:
        instance = observation.instances.get(name)
        if instance is None:
            continue
        reason = f"the upgrade of {record.group} was started again with force"
        id, early = f"{cause_id(record, name)}#force", name in record.early
        cause = Cause(id=id, kind=CauseKind.UPGRADE, at=now, reason=reason, force=True, awaits_launch=early)
        request(subject_of(instance, record.cluster, group=record.group), [cause], ports)


def request_offset(record: UpgradeRecord, new: str, by: str, observation: Observation, ports: Ports) -> None:
    """Request the offset of a launch that no old node is left for from one named node: it terminates as any surplus
    does, and the offset is settled there.
    """
    instance = observation.instances.get(by)
    if instance is None:
        return
    now = ports.clock.now()
    reason = f"the upgrade of {record.group} launched {new} ahead, and no old node is left to offset it"
    cause = capacity_ledger.surplus(capacity_ledger.ahead(new), now, reason)
    request(subject_of(instance, record.cluster, group=record.group), [cause], ports)


def _causes(record: UpgradeRecord, old: str, clock: Clock) -> list[Cause]:
    now = clock.now()
    target = record.target.template
    reason = f"upgrade of {record.group}{f' to {target.label}' if target else ''}"
    force = record.request.force
    early = old in record.early
    id = cause_id(record, old)
    causes = [Cause(id=id, kind=CauseKind.UPGRADE, at=now, reason=reason, force=force, awaits_launch=early)]
    new = offset_by(record, old)
    if new is not None:
        offset_reason = f"it offsets {new}, which was launched ahead"
        causes.append(capacity_ledger.surplus(surge_of(record, new, old), now, offset_reason))
    return causes


def end_never_joined(record: UpgradeRecord, observation: Observation, ports: Ports) -> UpgradeRecord:
    """Terminate the instances that never joined. A launch of this upgrade without an offset offsets itself: it is
    terminated with decrement, and the next turn launches another in its zone. Any other is terminated without, and the
    group replaces it. The instances given up, and the offsets, are written into the record first, and the causes' names
    follow from it: a repeat is idempotent.
    """
    late = [one.instance.id for one in observation.preflight.members if _is_late(one, record, observation)]
    waiting = record.ahead.keys() - record.under_way.keys()  # the others offset a launch in a turn
    unassigned = set(record.unassigned)
    own = {new for new in waiting if record.ahead[new].offset_by == new or (new in late and new in unassigned)}
    going = {*late, *own, *record.given_up} & observation.instances.keys()
    if not going and not own:
        return record
    if late:
        named = replace(record, given_up=(*record.given_up, *late)[-MOST_GIVEN_UP:])
        named = named.with_offsets({new: new for new in own})
        record = written(
            with_warning(named, f"{', '.join(late)} never joined the cluster and were ended"), ports.upgrades
        )
    for name in sorted(going):
        if not observation.instances[name].ended:
            _end(observation.instances[name], record, ports, offsets_itself=name in own)
    return written(without(record, own), ports.upgrades)


def _is_late(member: Member, record: UpgradeRecord, observation: Observation) -> bool:
    """Return whether the member is of the target or a launch of this upgrade, a quarter of an hour old or more, has no
    Ready node, and runs no pod that has to leave. The gate waits for it, also where another owner has launched it.
    """
    instance = observation.instances.get(member.instance.id)
    if instance is None or instance.ended or member.instance.id in record.under_way:
        return False
    awaited = member.instance.id in record.ahead or member.age is Age.NEW
    if not awaited or observation.preflight.snapshot.now - instance.launched < JOINS_WITHIN:
        return False
    node = member.node
    return node is None or not (node.ready or any(map(has_to_leave, observation.preflight.snapshot.pods_on(node.name))))


def _end(instance: Instance, record: UpgradeRecord, ports: Ports, *, offsets_itself: bool) -> None:
    now = ports.clock.now()
    subject = subject_of(instance, record.cluster, group=record.group)
    reason = f"the upgrade of {record.group} waits for it and it never joined"
    causes = [Cause(id=f"never-joined#{record.group}#{record.stamp}", kind=CauseKind.UPGRADE, at=now, reason=reason)]
    if offsets_itself:
        reason = "it offsets its own launch"
        causes.append(capacity_ledger.surplus(capacity_ledger.ahead(instance.id), now, reason))
    request(subject, causes, ports)


def cordon(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
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
    return replace(run, next=UpgradeNext.CORDONED, why=f"{done}; {leave.why}")


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
    """An EndpointSlice."""

    service: str  # namespace/name, empty where it belongs to none
    nodes: frozenset[str]  # that hold a ready endpoint

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse an EndpointSlice of the API. A missing condition counts as ready, as Kubernetes defines it."""
        meta = metadata_of(raw, "endpointslice")
        service = texts(meta.get("labels")).get(SERVICE_LABEL)
        endpoints = mappings(raw.get("endpoints"))
        ready = [one for one in endpoints if mapping(one.get("conditions")).get("ready") is not False]
        return cls(
            service=f"{text(meta.get('namespace'), 'default')}/{service}" if service else "",
            nodes=frozenset(text(one.get("nodeName")) for one in ready) - {""},
        )


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
