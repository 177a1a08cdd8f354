"""The gate before all old nodes are cordoned: the new nodes exist, are Ready and have the labels of the target.

Decides from members of the group. Source: EKS, "Managed node update behavior", scale-up phase: at least one new node
in every zone that has nodes, every new node Ready, EKS' labels on them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from leeward.model import well_known
from leeward.upgrade.members import Age, Member
from leeward.upgrade.preflight.model import Preflight, in_shifted_zone, zone_of
from leeward.upgrade.surge.sizes import NO_LIMIT, Strategy

CLOCKS = timedelta(seconds=5)  # EC2 reports launches in whole seconds, and its clock differs from Leeward's
JOINS_WITHIN = timedelta(minutes=15)  # the same as EKS gives a new node


class Lack(StrEnum):
    """Kind of a missing condition."""

    NO_NEW_NODE = "no-new-node"
    NOT_JOINED = "not-joined"
    NOT_READY = "not-ready"
    LABELS = "labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One missing condition."""

    lack: Lack
    object: str  # a zone for `no-new-node`, else a node or an instance that has not joined
    message: str
    labels: tuple[str, ...] = ()  # that a node lacks, `key=value`


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Result of the gate: open when nothing is missing."""

    missing: tuple[Missing, ...] = ()

    @property
    def open(self) -> bool:
        """True when all old nodes may be cordoned."""
        return not self.missing


def evaluate_gate(
    members: Sequence[Member], zones: Iterable[str], expected: Mapping[str, str], *, most: int = NO_LIMIT
) -> Gate:
    """Evaluate the gate. `zones`: those that hold old nodes; `expected`: labels that every new node has to carry;
    `most`: maxSurge. A smaller number than the zones serves as many of them at a time: the others follow once old nodes
    have ended.

    Strategy MINIMAL has no new nodes before the old ones terminate: its gate is evaluated without zones.
    """
    new, missing = [member for member in members if member.age is Age.NEW], list[Missing]()
    served = {_zone(member) for member in new}
    if not _enough(served, zones, most):
        missing += [
            Missing(lack=Lack.NO_NEW_NODE, object=zone, message=f"{zone}: there are old nodes and no new one")
            for zone in sorted(set(zones) - served)
        ]
    for member in new:
        missing += _lacks(member, expected)
    return Gate(missing=tuple(missing))


def waited_for(members: Sequence[Member], early: Collection[str]) -> list[Member]:
    """Return the members that the gate waits for: once the target has proven to work, those launched since are left
    out. `early`: ids of those that were there before. Where a zone has none of these (gone, or the clocks disagree) its
    later ones stand in for them.
    """
    served = {_zone(one) for one in members if one.age is Age.NEW and one.instance.id in early}
    return [one for one in members if one.instance.id in early or _zone(one) not in served]


def is_proven(
    members: Sequence[Member], zones: Iterable[str], expected: Mapping[str, str], *, most: int = NO_LIMIT
) -> bool:
    """Return whether the target works: in each of the zones, or in as many as maxSurge serves at a time, a new node is
    Ready and carries the labels. The others may still boot, and the gate still waits for them.
    """
    joined = [member for member in members if member.age is Age.NEW and not _lacks(member, expected)]
    return _enough({_zone(member) for member in joined}, zones, most)


def _enough(served: Collection[str], zones: Iterable[str], most: int) -> bool:
    """Return whether as many of the zones are served as `most` new nodes can serve at a time."""
    wanted = set(zones)
    return len(wanted.intersection(served)) >= min(len(wanted), most)


def unserved_zones(preflight: Preflight) -> frozenset[str]:
    """Return the zones whose old nodes stay schedulable for now: maxSurge serves only some of the group's zones at a
    time, and no new node is Ready there. Else a zone would be without a node that takes pods until its turn comes.
    """
    zones = {zone_of(preflight.snapshot, one) for one in preflight.members} - {""}
    if preflight.strategy is Strategy.MINIMAL or preflight.max_surge >= len(zones):
        return frozenset()
    new = (one for one in preflight.members if one.age is Age.NEW and one.node is not None and one.node.ready)
    return frozenset(zones - {zone_of(preflight.snapshot, one) for one in new})


def _zone(member: Member) -> str:
    labelled = member.node.labels.get(well_known.ZONE_LABEL) if member.node is not None else None
    return labelled or member.instance.zone


def _lacks(member: Member, expected: Mapping[str, str]) -> list[Missing]:
    node = member.node
    if node is None:
        message = f"{member.name}: launched in {member.instance.zone}, it has not joined the cluster"
        return [Missing(lack=Lack.NOT_JOINED, object=member.name, message=message)]
    missing: list[Missing] = []
    if not node.ready:
        missing.append(Missing(lack=Lack.NOT_READY, object=node.name, message=f"{node.name}: not Ready"))
    wrong = [f"{key}={value}" for key, value in sorted(expected.items()) if node.labels.get(key) != value]
    if wrong:
        message = f"{node.name}: without the labels {', '.join(wrong)}"
        missing.append(Missing(lack=Lack.LABELS, object=node.name, message=message, labels=tuple(wrong)))
    return missing


def gate_of(
    preflight: Preflight,
    proven: datetime | None = None,
    *,
    launches: bool = True,
    reach: Collection[str] | None = None,
) -> Gate:
    """Evaluate the gate in the zones that hold old nodes, without those of a zonal shift; with MINIMAL nothing comes
    first, so no zone has to have a new node. `proven`: as in the record; new nodes that were launched later are not
    waited for. `launches`: nodes are launched ahead. They are not once another writer has scaled the group: the group
    then replaces each old node itself, and a zone without a new node would be waited for without an end. `reach`: zones
    in which a new node may still come, None for all: the others are not waited for.
    """
    members: Sequence[Member] = [one for one in preflight.members if not in_shifted_zone(preflight.snapshot, one)]
    if proven is not None:
        known = preflight.snapshot.instances
        ids = [one.instance.id for one in members]
        early = {each for each in ids if each not in known or known[each].launched <= proven - CLOCKS}
        members = waited_for(members, early)
    zones = zones_to_serve(preflight) if launches else frozenset()
    if reach is not None:
        served = {_zone(member) for member in members if member.age is Age.NEW}
        zones &= served.union(reach)
    return evaluate_gate(members, zones, preflight.target.labels, most=preflight.max_surge)


def zones_to_serve(preflight: Preflight) -> frozenset[str]:
    """Return zones that need a new node before old ones terminate. Nothing is launched in the zone of a zonal shift,
    nor for an old node whose termination is under way: a surplus may drain for an hour.
    """
    if preflight.strategy is Strategy.MINIMAL:
        return frozenset()
    zones = frozenset(zone_of(preflight.snapshot, member) for member in preflight.old if not member.tainted)
    return zones - {""} - preflight.snapshot.shifted_zones
