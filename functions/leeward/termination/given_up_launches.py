"""Launches that their workflow gives up: which instance offsets each, and the request for that offset.

A disruption run gives up launches of commands that are dropped (docs/designs/capacity-ledger.md). The caller records
the choice before it is requested: a second choice would shrink the group twice for one launch."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from leeward.model.capacity import Offset
from leeward.model.instance import CapacityType, Instance
from leeward.model.termination import Status, Subject, TerminationRecord
from leeward.ports import Ports
from leeward.ports.records import Claims
from leeward.termination import capacity_ledger
from leeward.termination.requests import read_apart, request


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
    free = (one.id for one in staying if one.id not in taken)
    return next((one for one in free if not _may_be_open(one, ports.claims)), new)


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
