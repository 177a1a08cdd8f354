"""Rollback of a run: nodes of dropped commands return to service, and their launches are terminated.

The instance that offsets a launch is chosen once and recorded before any termination is requested: a retry after a
failed step requests the same instance. A second choice would shrink the group twice for one launch
(docs/designs/capacity-ledger.md). A new node that has left with decrement has undone its launch: Cluster Autoscaler
terminates nodes in this way that do not register."""

from collections.abc import Collection
from dataclasses import replace

from leeward.disruption.lease import written
from leeward.disruption.record import DisruptionRecord
from leeward.disruption.terminations import give_back
from leeward.model.instance import CapacityType, Instance
from leeward.model.termination import Subject
from leeward.ports import Ports
from leeward.termination import capacity_ledger
from leeward.termination.execution import is_open, request


def release(record: DisruptionRecord, ports: Ports) -> DisruptionRecord:
    """Return the record as written. Idempotent. The instance that offsets a launch is claimed before the other nodes
    return to service: a node of this run would otherwise take new pods and lose its taint between two steps towards
    its end.
    """
    surplus = record.surplus()
    if surplus:
        launched, undone = dict(record.launched), _undone(surplus, record, ports)
        for new in surplus:
            taken = {*(node.offset_by for node in launched.values()), *record.going.values()}
            by = None if new in undone else _offset(new, record, taken, ports)
            launched[new] = replace(launched[new], offset_by=by, undone=by is None)
        record = written(replace(record, launched=launched), ports.disruptions)
    _request(record, ports)
    give_back(record, record.released, ports)
    return record


def _request(record: DisruptionRecord, ports: Ports) -> None:
    """Request the termination of each instance that offsets a launch; it accounts for the group's size from then on."""
    offsets = {new: node.offset_by for new, node in record.launched.items() if node.offset_by is not None}
    known = ports.instances.describe(offsets.values()) if offsets else {}
    for new, by in offsets.items():
        now = ports.clock.now()
        reason = f"run {record.number} launched {new} ahead, and no node goes for it"
        cause = capacity_ledger.surplus(capacity_ledger.ahead(new), now, reason)
        request(_subject(record, new, by, known.get(by)), [cause], ports)


def _undone(surplus: Collection[str], record: DisruptionRecord, ports: Ports) -> frozenset[str]:
    """Return new instances that have ended and by whose end their group reports that it shrank: they need no offset."""
    instances = ports.instances.describe(surplus)
    ended = [new for new in surplus if new not in instances or instances[new].ended]
    groups = {new: record.launched[new].group for new in ended}
    since = record.began - capacity_ledger.MARGIN
    said = {group: ports.groups.activities(group, since) for group in sorted(set(groups.values()))}
    return frozenset(
        new for new in ended if capacity_ledger.ending(new, said[groups[new]]) is capacity_ledger.Ending.SHRUNK
    )


def _offset(new: str, record: DisruptionRecord, taken: Collection[str | None], ports: Ports) -> str:
    """Return the instance that offsets the launch: the new node itself, else the youngest member of its group that
    stays; the new one where neither is known: its own termination then settles the offset.
    """
    group = record.launched[new].group
    described = ports.groups.describe([group]).get(group)
    members = [member.id for member in described.instances] if described is not None else []
    instances = ports.instances.describe({new, *members})
    if new in instances and not instances[new].ended:
        return new
    staying = capacity_ledger.candidates(described, instances) if described is not None else ()
    return next((one.id for one in staying if one.id not in taken and not is_open(one.id, ports.claims)), new)


def _subject(record: DisruptionRecord, new: str, by: str, known: Instance | None) -> Subject:
    """Return the instance as EC2 knows it, else with the place of the launch."""
    node = record.launched[new]
    return Subject(
        instance=by,
        cluster=record.cluster,
        group=(known.group if known is not None else None) or node.group,
        zone=known.zone if known is not None else node.zone,
        subnet=known.subnet if known is not None else node.subnet,
        instance_type=known.type if known is not None else "",
        capacity_type=known.capacity_type if known is not None else CapacityType.ON_DEMAND,
    )
