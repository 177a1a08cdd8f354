"""Drain flags of kubectl, as one call gives them; kept with their cause, so that every step of the drain reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

NEVER = timedelta.max
_NEVER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """Flags of one drain. None: as the policy says. `skip_wait_for_delete`: how long past its deletion deadline a pod
    is waited for. `keep`: the instance stays in service, and its node cordoned, once the pods have left.

    `voluntary`: the cause is a disruption run, so that `safe-to-evict: "true"` lifts the policy's refusals. Each step
    reads it from the record's causes, so it is not kept. `deadline`: a deadline as `terminationGracePeriod` sets one;
    the table keeps it with the cause that brings it.
    """

    evict_unmanaged: bool | None = None
    delete_local_data: bool | None = None
    ignore_daemon_sets: bool = True
    disable_eviction: bool = False
    grace_seconds: int | None = None
    skip_wait_for_delete: timedelta | None = None
    keep: bool = False
    voluntary: bool = False
    deadline: datetime | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`; absent values are as the policy says."""
        skip = raw.get("skipWaitForDelete")
        return cls(
            evict_unmanaged=raw.get("evictUnmanaged"),
            delete_local_data=raw.get("deleteLocalData"),
            ignore_daemon_sets=raw.get("ignoreDaemonSets", True),
            disable_eviction=raw.get("disableEviction", False),
            grace_seconds=raw.get("graceSeconds"),
            skip_wait_for_delete=None if skip is None else NEVER if skip == _NEVER else timedelta(seconds=skip),
            keep=raw.get("keep", False),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document for the table: only the differences from a call without flags, without the deadline."""
        skip = self.skip_wait_for_delete
        found = {
            "evictUnmanaged": self.evict_unmanaged,
            "deleteLocalData": self.delete_local_data,
            "ignoreDaemonSets": None if self.ignore_daemon_sets else False,
            "disableEviction": self.disable_eviction or None,
            "graceSeconds": self.grace_seconds,
            "skipWaitForDelete": None if skip is None else _NEVER if skip == NEVER else int(skip.total_seconds()),
            "keep": self.keep or None,
        }
        return {name: value for name, value in found.items() if value is not None}


BY_POLICY = DrainOptions()  # a call without flags
