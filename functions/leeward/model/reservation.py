"""What launches that are being made have to know of each other: what is promised to them, so that replacements placed
at the same moment see each other, and which spot capacity runs short."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from leeward.model.times import format_instant, parse_instant

LASTS = timedelta(minutes=2)  # by then the group lists what was launched, and EC2 counts it
SHORT_FOR = timedelta(minutes=10)  # after the last warning; Karpenter takes 3, when it asks for the next type instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Spot capacity: an instance type in a zone."""

    instance_type: str
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IpReservation:
    """In place of an instance that leaves `left` with `millicores`, one is launched in `subnet` that takes `ips`.

    `taken`: thousandths of a core that the new one brings. `launched` empty: not yet, or nobody has written it down.
    """

    at: datetime
    left: str
    millicores: int
    zone: str
    subnet: str
    ips: int
    taken: int
    launched: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """As `to_json` wrote it."""
        return cls(**{**raw, "at": parse_instant(raw["at"])})

    def to_json(self) -> dict[str, Any]:
        """For the table."""
        return {**asdict(self), "at": format_instant(self.at)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """Of one cluster, by the instance that leaves. `version` grows with every change of a promise. `short`: spot
    capacity that EC2 has been taking back -> until when nobody should ask for it there.
    """

    version: int = 0
    by_instance: Mapping[str, IpReservation] = field(default_factory=dict)
    short: Mapping[Pool, datetime] = field(default_factory=dict)

    def short_at(self, now: datetime) -> frozenset[Pool]:
        """Where spot capacity is short at this moment."""
        return frozenset(pool for pool, until in self.short.items() if until > now)

    def others(self, instance: str, now: datetime) -> tuple[IpReservation, ...]:
        """Those that still count for somebody else."""
        found = self.by_instance.items()
        return tuple(one for name, one in sorted(found) if name != instance and now - one.at < LASTS)

    def with_one(self, instance: str, promise: IpReservation) -> dict[str, IpReservation]:
        """With this one too; what is past is dropped."""
        kept = {name: one for name, one in self.by_instance.items() if promise.at - one.at < LASTS}
        return {**kept, instance: promise}
