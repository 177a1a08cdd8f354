"""Termination requests of an upgrade: for old instances, for surplus launches, and for new ones that never joined.

The instances and the offsets are written into the upgrade's record before anything here is called; the causes' names
follow from it, so requesting the same termination twice is idempotent. Instances of an earlier start that have not
become nodes keep the gate closed for as long as they exist: the next start terminates them, and others are launched.
No pod has ever served on them."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from leeward.errors import NewerRecordError, ObjectGoneError
from leeward.model.instance import Instance
from leeward.model.termination import Cause, CauseKind
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.termination import capacity_ledger
from leeward.termination.requests import request, subject_of
from leeward.upgrade.capacity_ledger import offset_by, with_warning, without
from leeward.upgrade.gate import JOINS_WITHIN
from leeward.upgrade.lease import written
from leeward.upgrade.members import Age, Member
from leeward.upgrade.observation import Observation
from leeward.upgrade.record import UpgradeRecord, cause_id, surge_of
from leeward.upgrade.waves.model import has_to_leave

MOST_GIVEN_UP = 200


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
