"""Rollback of a run: nodes of dropped commands return to service, and their launches are terminated.

The instance that offsets a launch is chosen once and recorded before any termination is requested: a retry after a
failed step requests the same instance. A second choice would shrink the group twice for one launch
(docs/designs/capacity-ledger.md). A new node that has left with decrement has undone its launch: Cluster Autoscaler
terminates nodes in this way that do not register."""

from collections.abc import Collection
from dataclasses import replace

from leeward.disruption.lease import written
from leeward.disruption.record import DisruptionRecord
from leeward.disruption.termination_requests import give_back
from leeward.model.instance import CapacityType, Instance
from leeward.model.termination import Cause, CauseKind, Subject
from leeward.ports import Ports
from leeward.termination import capacity_ledger
from leeward.termination.execution import is_open, request

UNDONE = ""  # in place of the instance that offsets a launch: its own instance has left with decrement


def release(record: DisruptionRecord, ports: Ports) -> DisruptionRecord:
    """Return the record as written. Idempotent. The instance that offsets a launch is claimed before the other nodes
    return to service: a node of this run would otherwise take new pods and lose its taint between two steps towards
    its end.
    """
    surplus = record.surplus()
    if surplus:
        payers, undone = dict(record.handed), _undone(surplus, record, ports)
        for new in surplus:
            taken = {*payers.values(), *record.going.values()}
            payers[new] = UNDONE if new in undone else _payer(new, record, taken, ports)
        record = written(replace(record, handed=payers), ports)
    _ask(record, ports)
    give_back(record, record.released, ports)
    return record


def _ask(record: DisruptionRecord, ports: Ports) -> None:
    """Request the termination of each payer; from then on that termination accounts for the group's size."""
    handed = {new: payer for new, payer in record.handed.items() if payer != UNDONE}
    known = ports.instances.describe(handed.values()) if handed else {}
    for new, payer in handed.items():
        now = ports.clock.now()
        reason = f"run {record.number} launched {new} ahead, and no node goes for it"
        cause = Cause(id=f"{capacity_ledger.DEBT}{new}/ahead", kind=CauseKind.SURPLUS, at=now, reason=reason)
        request(_subject(record, new, payer, known.get(payer)), [cause], ports)


def _undone(surplus: Collection[str], record: DisruptionRecord, ports: Ports) -> frozenset[str]:
    """Return new instances that have ended and by whose end their group reports that it shrank: they need no offset."""
    instances = ports.instances.describe(surplus)
    ended = [new for new in surplus if new not in instances or instances[new].ended]
    groups = {new: record.places[new].split("/")[0] for new in ended}
    since = record.began - capacity_ledger.MARGIN
    said = {group: ports.groups.activities(group, since) for group in sorted(set(groups.values()))}
    return frozenset(
        new for new in ended if capacity_ledger.ending(new, said[groups[new]]) is capacity_ledger.Ending.SHRUNK
    )


def _payer(new: str, record: DisruptionRecord, taken: Collection[str], ports: Ports) -> str:
    """Return the new node itself, else the youngest member of its group that stays; the new one where neither is known:
    its own termination then settles which instance pays.
    """
    group, _, _ = record.places[new].split("/")
    described = ports.groups.describe([group]).get(group)
    members = [member.id for member in described.instances] if described is not None else []
    instances = ports.instances.describe({new, *members})
    if new in instances and not instances[new].ended:
        return new
    staying = capacity_ledger.candidates(described, instances) if described is not None else ()
    return next((one.id for one in staying if one.id not in taken and not is_open(one.id, ports)), new)


def _subject(record: DisruptionRecord, new: str, payer: str, known: Instance | None) -> Subject:
    """Return the instance as EC2 knows it, else with the place of the launch."""
    group, zone, subnet = record.places[new].split("/")
    return Subject(
        instance=payer,
        cluster=record.cluster,
        group=(known.group if known is not None else None) or group,
        zone=known.zone if known is not None else zone,
        subnet=known.subnet if known is not None else subnet,
        instance_type=known.type if known is not None else "",
        capacity_type=known.capacity_type if known is not None else CapacityType.ON_DEMAND,
    )
