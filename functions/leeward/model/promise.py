"""What is promised to launches that are being made, so that replacements placed at the same moment see each other."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from leeward.model.times import format_instant, parse_instant

LASTS = timedelta(minutes=2)  # by then the group lists what was launched, and EC2 counts it


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
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
    """Of one cluster, by the instance that leaves. `version` grows with every change."""

    version: int = 0
    by_instance: Mapping[str, Promise] = field(default_factory=dict)

    def others(self, instance: str, now: datetime) -> tuple[Promise, ...]:
        """Those that still count for somebody else."""
        found = self.by_instance.items()
        return tuple(one for name, one in sorted(found) if name != instance and now - one.at < LASTS)

    def with_one(self, instance: str, promise: Promise) -> dict[str, Promise]:
        """With this one too; what is past is dropped."""
        kept = {name: one for name, one in self.by_instance.items() if promise.at - one.at < LASTS}
        return {**kept, instance: promise}
