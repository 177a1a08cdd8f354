"""Settlement of the capacity ledger: whether the end of a termination has offset the surge instances that it had to,
which other instance does otherwise, and which offsets a launch that its workflow gives up.

Every write keeps earlier entries (an offset is decided once), and the request of an offset is idempotent by the entry's
key: killed anywhere, it can be repeated. A disruption run gives up launches of commands that are dropped
(docs/designs/capacity-ledger.md); it records the choice before it is requested, because a second choice would shrink
the group twice for one launch."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from leeward.model.capacity import NoOffset, Offset, Settlement, SurgeInstance
from leeward.model.group import Group
from leeward.model.instance import CapacityType, Instance, cluster_of
from leeward.model.termination import CauseKind, Status, Subject, TerminationRecord
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.compute import Instances
from leeward.ports.records import Claims
from leeward.termination import capacity_ledger
from leeward.termination.capacity_ledger import Ending, only_surplus
from leeward.termination.requests import read_apart, request, subject_of
from leeward.termination.situation import Situation, read


def settle(situation: Situation, ports: Ports) -> str | None:
    """Settle what this instance's end had to offset: offset, written off, or passed on. Return None when nothing is
    left, else the sentence that names the awaited event: the group's own report on how it parted with the instance, or
    the member that will offset it.
    """
    record = situation.record
    for surge in capacity_ledger.to_offset(record):
        settlement = _settlement(surge, situation, ports)
        if settlement is None:
            return (
                f"the launch of {surge.instance} is not offset: the group has not said how it ended "
                f"{record.instance}, or has still to launch the member that can offset it"
            )
        ports.claims.note(record.instance, offsets=_entries(record, surge, settlement, ports.claims))
        if settlement == Offset(instance=record.instance):  # it offsets one; the next one reads the record again
            situation = replace(situation, record=read(record.instance, ports.claims))
    request_offsets(read(record.instance, ports.claims), ports)
    return None


def request_offsets(record: TerminationRecord, ports: Ports) -> None:
    """Claim the instances to which the record, as it is now, passed offsets on; a repeat finds the claim."""
    for surge, instance in capacity_ledger.passed_on(record).items():
        _request(instance, surge, record, ports)


def is_written_off(record: TerminationRecord, surge: SurgeInstance, group: Group, groups: Groups) -> bool:
    """Return whether nothing is left to offset: another actor made the group smaller, or it may not become smaller."""
    since = capacity_ledger.larger_since(record, surge)
    if group.desired <= group.minimum or since is None:
        return True
    return capacity_ledger.shrunk_since(groups.activities(group.name, since), since)


def offsets_later(situation: Situation, ports: Ports) -> bool:
    """Return whether an instance that was returned to service has to offset a surge instance that no other instance can
    be asked to: its termination is retried later.
    """
    record, group = situation.record, situation.listing
    if group is None or situation.ended or not record.has(CauseKind.SURPLUS):
        return False
    kept = [surge for surge in capacity_ledger.to_offset(record) if not surge.returns]
    left = [surge for surge in kept if not is_written_off(record, surge, group, ports.groups)]
    if not left:
        return False
    members = _other_members(record, group, ports.instances)
    return any(_next_member(surge, members, ports.claims) is NoOffset.WRITTEN_OFF for surge in left)


def return_to_owners(record: TerminationRecord, claims: Claims) -> None:
    """Return the requests of upgrades and disruption runs: the instance was returned to service and its termination is
    retried much later.
    """
    for surge in capacity_ledger.to_offset(record):
        if surge.returns:
            claims.note(record.instance, offsets={surge: NoOffset.RETURNED})


def _settlement(surge: SurgeInstance, situation: Situation, ports: Ports) -> Settlement | None:
    """Return the offset by this instance or another, or why there is none. None while the group has not reported, or
    while no member is free and the group has still to launch one: written off then, the group would stay one too large.
    A detached instance that runs on waits for no launch.
    """
    record, group = situation.record, situation.listing
    if group is None:
        return NoOffset.WRITTEN_OFF
    if not situation.ended and situation.lifecycle is not None:  # returned to service: it stays, and so would the other
        return _elsewhere(record, surge, group, ports)
    since = min(
        record.times.get("claimed", ports.clock.now()), capacity_ledger.larger_since(record, surge) or ports.clock.now()
    )
    activities = ports.groups.activities(group.name, since - capacity_ledger.MARGIN)
    own = Offset(instance=record.instance)
    has_offset = own in record.offsets.values()
    ended = record.times.get("terminated")
    over = ended is not None and ports.clock.now() - ended > capacity_ledger.LATEST_WORD
    match capacity_ledger.ending(record.instance, activities, _launched(surge, record, ports.instances)):
        case Ending.SHRUNK if not has_offset:
            return own
        case Ending.UNKNOWN if not has_offset:
            return NoOffset.WRITTEN_OFF if over else None
    launches = capacity_ledger.launches_yet(group, without=record.instance)
    return _elsewhere(record, surge, group, ports, waits=ended is not None and not over and launches)


def _entries(
    record: TerminationRecord, surge: SurgeInstance, settlement: Settlement, claims: Claims
) -> dict[SurgeInstance, Settlement]:
    """Return the entries to write: a member that was asked before is asked by the entry of the next round."""
    if not isinstance(settlement, Offset) or settlement.instance == record.instance:
        return {surge: settlement}
    known = claims.read(settlement.instance)
    if known is None or not capacity_ledger.was_requested(known, surge):
        return {surge: settlement}
    return {surge: settlement, capacity_ledger.next_round(record, surge): settlement}


def _launched(surge: SurgeInstance, record: TerminationRecord, instances: Instances) -> datetime | None:
    """Return when EC2 launched the replacement of this instance itself. None if EC2 knows no such instance any more,
    and for an entry that was passed on, whose launch is older than the question which instance offsets it.
    """
    if surge != record.surge:
        return None
    instance = instances.describe([surge.instance]).get(surge.instance)
    return instance.launched if instance is not None else None


def _elsewhere(
    record: TerminationRecord, surge: SurgeInstance, group: Group, ports: Ports, *, waits: bool = False
) -> Settlement | None:
    """Return the settlement by another instance. An upgrade chooses among its own old nodes, and knows itself the cause
    of a resize. `waits`: the group has still to launch a member, so none is asked again yet: None.
    """
    if surge.returns:
        return NoOffset.RETURNED
    if is_written_off(record, surge, group, ports.groups):
        return NoOffset.WRITTEN_OFF
    members = _own_first(surge, record, _other_members(record, group, ports.instances))
    settlement = _next_member(surge, members, ports.claims)
    if settlement is not NoOffset.WRITTEN_OFF:
        return settlement
    return None if waits else _asked_before(members, ports.claims)


def _own_first(surge: SurgeInstance, record: TerminationRecord, members: list[str]) -> list[str]:
    """Return the members with the replacement of this very instance first: the youngest may be another node's, which
    waits for it.
    """
    own = surge.instance if surge == record.surge else ""
    return sorted(members, key=lambda name: name != own)


def _other_members(record: TerminationRecord, group: Group, instances: Instances) -> list[str]:
    """Return the other members that stay, the best candidate first."""
    described = instances.describe(member.id for member in group.instances)
    return [member.id for member in capacity_ledger.candidates(group, described) if member.id != record.instance]


def _next_member(surge: SurgeInstance, members: Sequence[str], claims: Claims) -> Settlement:
    """Return the offset by the youngest member that is not terminating and was not asked before; written off where
    there is none.
    """
    for name in members:
        known = claims.read(name)
        if known is None or (known.status is Status.CLOSED and not capacity_ledger.was_requested(known, surge)):
            return Offset(instance=name)
    return NoOffset.WRITTEN_OFF


def _asked_before(members: Sequence[str], claims: Claims) -> Settlement:
    """Return the offset by the youngest member that was asked before and returned to service, else by one whose
    termination only offsets launches: the instance that was asked last, and would have been retried, has ended. Written
    off then, the group would stay one too large.
    """
    records = read_apart(members, claims).read
    known = [records[name] for name in members if name in records]
    closed = [record for record in known if record.status is Status.CLOSED]
    open_for_surplus = [record for record in known if record.status is Status.OPEN and only_surplus(record)]
    record = next(iter((*closed, *open_for_surplus)), None)
    return Offset(instance=record.instance) if record is not None else NoOffset.WRITTEN_OFF


def _request(name: str, surge: SurgeInstance, record: TerminationRecord, ports: Ports) -> None:
    """Claim the instance for the offset and start its termination."""
    instance = ports.instances.describe([name]).get(name)
    if instance is None:  # gone for so long that its own end has been settled
        return
    cluster = cluster_of(instance.tags, ports.clusters.names()) or record.subject.cluster
    subject = subject_of(instance, cluster, group=record.subject.group)
    request(subject, [capacity_ledger.surplus(surge, ports.clock.now())], ports)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Place in which an instance was launched."""

    group: str
    zone: str
    subnet: str


def undone(groups: Mapping[str, str], began: datetime, ports: Ports) -> frozenset[str]:
    """Return new instances that have ended, or were detached, and by whose leaving their group reports that it shrank:
    they need no offset. A decrement that has offset the launch made for the new instance's own termination undoes
    nothing. `groups`: of the instances; `began`: when the first of them was requested.
    """
    instances = ports.instances.describe(groups)
    ended = [new for new in groups if new not in instances or instances[new].ended or not instances[new].group]
    since = began - capacity_ledger.MARGIN
    said = {group: ports.groups.activities(group, since) for group in sorted({groups[new] for new in ended})}
    shrunk = [new for new in ended if capacity_ledger.ending(new, said[groups[new]]) is capacity_ledger.Ending.SHRUNK]
    terminations = read_apart(shrunk, ports.claims).read
    return frozenset(new for new in shrunk if not offsets_another(terminations.get(new), new))


def offsetting(new: str, group: str, taken: Collection[str | None], ports: Ports) -> str:
    """Return the instance that offsets the launch: the new node itself if its group still has it, else the youngest
    member of the group that stays; the new one where neither is known: its own termination then settles the offset.
    `taken`: instances that offset other launches. One whose record cannot be read may be ending: it offsets none.
    """
    described = ports.groups.describe([group]).get(group)
    members = [member.id for member in described.instances] if described is not None else []
    instances = ports.instances.describe({new, *members})
    if new in instances and not instances[new].ended and (described is None or new in members):
        return new
    staying = capacity_ledger.candidates(described, instances) if described is not None else ()
    free = (member.id for member in staying if member.id not in taken)
    return next((name for name in free if not _may_be_open(name, ports.claims)), new)


def _may_be_open(instance: str, claims: Claims) -> bool:
    records = read_apart([instance], claims)
    known = records.read.get(instance)
    return bool(records.unreadable) or (known is not None and known.status is Status.OPEN)


def request_offset(
    new: str, by: str, launch: Launch, cluster: str, known: Instance | None, reason: str, ports: Ports
) -> None:
    """Request the termination of the instance that offsets a launch; it accounts for the group's size from then on.
    Idempotent. `known`: that instance as EC2 knows it, else it is described by the place of the launch.
    """
    cause = capacity_ledger.surplus(capacity_ledger.ahead(new), ports.clock.now(), reason)
    subject = Subject(
        instance=by,
        cluster=cluster,
        group=(known.group if known is not None else None) or launch.group,
        zone=known.zone if known is not None else launch.zone,
        subnet=known.subnet if known is not None else launch.subnet,
        instance_type=known.type if known is not None else "",
        capacity_type=known.capacity_type if known is not None else CapacityType.ON_DEMAND,
    )
    request(subject, [cause], ports)


def offsets_another(termination: TerminationRecord | None, new: str) -> bool:
    """Return whether the decrement of this instance is, or will be, the offset of another launch than its own."""
    if termination is None:
        return False
    settled = [entry for entry, one in termination.offsets.items() if one == Offset(instance=new)]
    return any(entry != capacity_ledger.ahead(new) for entry in (*settled, *capacity_ledger.to_offset(termination)))
