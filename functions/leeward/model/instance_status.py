"""Status checks that fail and scheduled events of EC2, as DescribeInstanceStatus lists them.

Source: EC2 user guide, "Scheduled events for your instances": an event that is over stays listed for a while, with a
prefix in its description."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from leeward.model.times import as_instant

CHECKS = {"SystemStatus": "system", "InstanceStatus": "instance", "AttachedEbsStatus": "attached EBS"}
IMPAIRED = "impaired"
CODES = ("instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop")
REBOOTS = frozenset({"instance-reboot", "system-reboot"})
COMPLETED, CANCELED = "[Completed]", "[Canceled]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Impairment:
    """Instance whose checks fail. `checks`: which ones; `since`: when the first of them began to, None if EC2 does not
    report it.
    """

    instance: str
    checks: tuple[str, ...]
    since: datetime | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self | None:
        """Parse one element of `describe-instance-status`, None if no check fails: `initializing`, `insufficient-data`
        and `not-applicable` are no failures.
        """
        failing = {name: raw[key] for key, name in CHECKS.items() if (raw.get(key) or {}).get("Status") == IMPAIRED}
        if not failing:
            return None
        details = [detail for status in failing.values() for detail in status.get("Details") or ()]
        since = [as_instant(detail["ImpairedSince"]) for detail in details if detail.get("ImpairedSince")]
        return cls(instance=raw["InstanceId"], checks=tuple(failing), since=min(since, default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledEvent:
    """Scheduled event of an instance. `starts`: the earliest moment, None if EC2 names none."""

    id: str
    instance: str
    code: str
    starts: datetime | None
    description: str = ""

    @classmethod
    def from_json(cls, instance: str, raw: Mapping[str, Any]) -> Self:
        """Parse one element of an instance status' `Events`."""
        return cls(
            id=raw.get("InstanceEventId") or f"{instance}-{raw.get('Code', '')}",
            instance=instance,
            code=raw.get("Code") or "",
            starts=as_instant(raw["NotBefore"]) if raw.get("NotBefore") else None,
            description=raw.get("Description") or "",
        )

    @property
    def canceled(self) -> bool:
        """True if EC2 has canceled it."""
        return self.description.startswith(CANCELED)

    @property
    def over(self) -> bool:
        """True if it is completed or canceled: nothing will happen any more."""
        return self.canceled or self.description.startswith(COMPLETED)

    @property
    def reboots(self) -> bool:
        """True if the instance stays where it is, or moves to another host, and is booted again."""
        return self.code in REBOOTS
