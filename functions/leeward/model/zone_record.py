"""Record of the zones of one cluster: zones that an operator evacuates, and capacity that was launched for the pods of
a shifted zone.

Decides what the record says of a zone; the minute reconciler does the work (docs/designs/zone-evacuation.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from leeward.model.termination import Cause
from leeward.model.times import format_instant, parse_instant


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSizes:
    """Sizes of a group, as its owner and the ledger had them."""

    minimum: int
    desired: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evacuation:
    """Evacuation of one zone. `by`: ARN of the caller; `groups` empty: the nodes of every group leave; `sizes`: of the
    groups before it, by name; `suspended`: groups whose AZRebalance Leeward has suspended for it; `returned`: when an
    operator opened the zone again, None while it is closed.
    """

    zone: str
    by: str
    since: datetime
    why: str = ""
    groups: tuple[str, ...] = ()
    sizes: Mapping[str, GroupSizes] = field(default_factory=dict)
    suspended: tuple[str, ...] = ()
    returned: datetime | None = None

    @property
    def closed(self) -> bool:
        """True while the zone is closed for new nodes."""
        return self.returned is None

    @property
    def sentence(self) -> str:
        """Words for it, such as `evacuation of us-east-1a (since 2026-03-02T10:00:00Z)`."""
        return f"evacuation of {self.zone} (since {format_instant(self.since)})"

    def covers(self, group: str) -> bool:
        """Return whether nodes of the group leave the zone."""
        return not self.groups or group in self.groups

    def cause_id(self, instance: str, attempt: int) -> str:
        """Return the id of the cause with which a node leaves. `attempt`: that of its last termination, 0 for none: a
        repeated request adds nothing, and a node that was returned to service can be asked again.
        """
        return f"{self._causes}{instance}#{attempt}"

    def caused(self, cause: Cause) -> bool:
        """Return whether the cause is one of this evacuation."""
        return cause.id.startswith(self._causes)

    @property
    def _causes(self) -> str:
        return f"evacuation#{self.zone}#{format_instant(self.since)}#"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrescaleOrder:
    """Launch of `count` instances in one subnet. `key`: its client token; `others`: `zone/subnet` values that are tried
    where this one has no capacity; `requested`: it may have been launched already, so only its answer tells what is
    there.
    """

    key: str
    group: str
    zone: str
    subnet: str
    count: int
    others: tuple[str, ...] = ()
    requested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PrescaledNode:
    """Instance that was launched. `offset_by`: the instance whose termination offsets it, empty while none is chosen;
    `undone`: its own end has made the group smaller, so it needs no offset.
    """

    group: str
    zone: str
    subnet: str
    offset_by: str = ""
    undone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prescale:
    """Capacity launched for the movable pods of one shifted zone. `shift`: key of the shift; `wanted`: nodes by group;
    `refused`: group -> why some of them were not launched; `suspended`: groups whose AZRebalance Leeward has suspended
    for it; `ended`: when the shift was over, None while it lasts. Shift and begin identify it: a shift that is
    interrupted by another one and resumed has the same key.
    """

    zone: str
    shift: str
    began: datetime
    wanted: Mapping[str, int] = field(default_factory=dict)
    orders: tuple[PrescaleOrder, ...] = ()
    launched: Mapping[str, PrescaledNode] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    suspended: tuple[str, ...] = ()
    ended: datetime | None = None

    @property
    def identity(self) -> tuple[datetime, str]:
        """Identity within the record, in the order of the begins."""
        return self.began, self.shift

    @property
    def groups(self) -> frozenset[str]:
        """Groups in which it launches."""
        return frozenset(self.wanted)

    @property
    def uneven(self) -> frozenset[str]:
        """Groups that have more nodes by it in the other zones, or are about to."""
        nodes = (node.group for node in self.launched.values() if not node.undone)
        return frozenset(nodes) | {order.group for order in self.orders}

    @property
    def sentence(self) -> str:
        """Reason why its nodes stay."""
        return f"it was launched ahead for pods of {self.zone}, from which traffic is shifted away"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRecord:
    """Item of one cluster. `version` 0: there is no item."""

    cluster: str
    version: int = 0
    evacuations: tuple[Evacuation, ...] = ()
    prescales: tuple[Prescale, ...] = ()

    def evacuation_of(self, zone: str) -> Evacuation | None:
        """Return the evacuation of the zone, also one that is being ended."""
        return next((one for one in self.evacuations if one.zone == zone), None)

    def with_evacuation(self, evacuation: Evacuation) -> ZoneRecord:
        """Return the record with this evacuation in place of the zone's earlier one."""
        others = tuple(one for one in self.evacuations if one.zone != evacuation.zone)
        return replace(self, evacuations=tuple(sorted((*others, evacuation), key=lambda one: one.zone)))

    def without_evacuation(self, zone: str) -> ZoneRecord:
        """Return the record without the evacuation of the zone."""
        return replace(self, evacuations=tuple(one for one in self.evacuations if one.zone != zone))

    def with_prescale(self, prescale: Prescale) -> ZoneRecord:
        """Return the record with this prescale in place of an earlier state of it."""
        others = tuple(one for one in self.prescales if one.identity != prescale.identity)
        return replace(self, prescales=tuple(sorted((*others, prescale), key=lambda one: one.identity)))

    def without_prescale(self, prescale: Prescale) -> ZoneRecord:
        """Return the record without this prescale."""
        return replace(self, prescales=tuple(one for one in self.prescales if one.identity != prescale.identity))

    def launched_in(self, group: str) -> dict[str, PrescaledNode]:
        """Return the launches ahead of shifts in the group whose offset is not settled, by instance."""
        nodes = (found for one in self.prescales for found in one.launched.items())
        return {new: node for new, node in nodes if node.group == group and not node.undone}

    def to_json(self) -> dict[str, Any]:
        """Return the content of the item, JSON types alone."""
        return {
            "evacuations": [_evacuation_json(one) for one in self.evacuations],
            "prescales": [_prescale_json(one) for one in self.prescales],
        }

    @classmethod
    def from_json(cls, cluster: str, version: int, raw: Mapping[str, Any]) -> ZoneRecord:
        """Parse what `to_json` returned."""
        return cls(
            cluster=cluster,
            version=version,
            evacuations=tuple(_evacuation(one) for one in raw.get("evacuations", ())),
            prescales=tuple(_prescale(one) for one in raw.get("prescales", ())),
        )


def _evacuation_json(one: Evacuation) -> dict[str, Any]:
    return {
        "zone": one.zone,
        "by": one.by,
        "since": format_instant(one.since),
        "why": one.why,
        "groups": list(one.groups),
        "sizes": {name: [size.minimum, size.desired, size.maximum] for name, size in sorted(one.sizes.items())},
        "suspended": list(one.suspended),
        "returned": _instant(one.returned),
    }


def _evacuation(raw: Mapping[str, Any]) -> Evacuation:
    return Evacuation(
        zone=raw["zone"],
        by=raw["by"],
        since=parse_instant(raw["since"]),
        why=raw["why"],
        groups=tuple(raw["groups"]),
        sizes={
            name: GroupSizes(minimum=int(minimum), desired=int(desired), maximum=int(maximum))
            for name, (minimum, desired, maximum) in raw["sizes"].items()
        },
        suspended=tuple(raw["suspended"]),
        returned=_parsed(raw["returned"]),
    )


def _prescale_json(one: Prescale) -> dict[str, Any]:
    return {
        "zone": one.zone,
        "shift": one.shift,
        "began": format_instant(one.began),
        "wanted": dict(one.wanted),
        "orders": [
            [order.key, order.group, order.zone, order.subnet, order.count, list(order.others), order.requested]
            for order in one.orders
        ],
        "launched": {
            name: [node.group, node.zone, node.subnet, node.offset_by, node.undone]
            for name, node in one.launched.items()
        },
        "refused": dict(one.refused),
        "suspended": list(one.suspended),
        "ended": _instant(one.ended),
    }


def _prescale(raw: Mapping[str, Any]) -> Prescale:
    return Prescale(
        zone=raw["zone"],
        shift=raw["shift"],
        began=parse_instant(raw["began"]),
        wanted={name: int(count) for name, count in raw["wanted"].items()},
        orders=tuple(
            PrescaleOrder(
                key=key,
                group=group,
                zone=zone,
                subnet=subnet,
                count=int(count),
                others=tuple(others),
                requested=bool(requested),
            )
            for key, group, zone, subnet, count, others, requested in raw["orders"]
        ),
        launched={
            name: PrescaledNode(group=group, zone=zone, subnet=subnet, offset_by=by, undone=bool(undone))
            for name, (group, zone, subnet, by, undone) in raw["launched"].items()
        },
        refused=dict(raw["refused"]),
        suspended=tuple(raw["suspended"]),
        ended=_parsed(raw["ended"]),
    )


def _instant(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)


def _parsed(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
