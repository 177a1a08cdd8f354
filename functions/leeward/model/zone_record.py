"""Record of the zones of one cluster that an operator evacuates.

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
class ZoneRecord:
    """Item of one cluster. `version` 0: there is no item."""

    cluster: str
    version: int = 0
    evacuations: tuple[Evacuation, ...] = ()

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

    def to_json(self) -> dict[str, Any]:
        """Return the content of the item, JSON types alone."""
        return {"evacuations": [_evacuation_json(one) for one in self.evacuations]}

    @classmethod
    def from_json(cls, cluster: str, version: int, raw: Mapping[str, Any]) -> ZoneRecord:
        """Parse what `to_json` returned."""
        return cls(
            cluster=cluster,
            version=version,
            evacuations=tuple(_evacuation(one) for one in raw.get("evacuations", ())),
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


def _instant(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)


def _parsed(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
