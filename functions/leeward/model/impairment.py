"""Status checks of EC2, cut down to those that fail."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from leeward.model.times import as_instant

CHECKS = {"SystemStatus": "system", "InstanceStatus": "instance", "AttachedEbsStatus": "attached EBS"}
IMPAIRED = "impaired"


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
