"""Progress of a termination in its record on DynamoDB, the half of `ports.records.Claims` that opens and closes none.

Decides which attributes a step may write, each in one write that a repeat does not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from leeward.adapters.aws.record_items import (
    offset_item,
    plan_item,
    record_key,
    record_of,
    replacement_item,
    times_item,
)
from leeward.adapters.aws.table import Change, Table, new_mark
from leeward.errors import ObjectGoneError
from leeward.model.capacity import Settlement, SurgeInstance
from leeward.model.seen import Seen
from leeward.model.termination import LaunchPlan, Replacement, Status, TerminationRecord
from leeward.model.times import format_instant

MARK = "by"  # attribute with the mark of the last write that a repeat must not take for another's
OVERWRITTEN_TIMES = {"retry", "moved", "missed"}


class ClaimNotes:
    """Notes in termination records in the table `leeward`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, instance: str) -> TerminationRecord | None:
        """Read the record, strongly consistent."""
        item = self._table.get(record_key(instance))
        return record_of(item) if item else None

    def note(
        self,
        instance: str,
        *,
        times: Mapping[str, datetime] | None = None,
        heartbeats: Mapping[str, datetime] | None = None,
        offsets: Mapping[SurgeInstance, Settlement] | None = None,
        boot: str | None = None,
        seen: Seen | None = None,
    ) -> TerminationRecord:
        """Write all values in one write; a repeat changes nothing. Raises ObjectGoneError without a record."""
        change = Change()
        _set_times(change, times)
        for name, at in times_item(heartbeats or {}).items():
            change.set_in("heartbeats", name, at)
        for surge, settlement in (offsets or {}).items():
            change.set_in("offsets", surge.key, offset_item(surge, settlement), keep=True)
        if boot:
            change.set("boot", boot, keep=True)
        _set_seen(change, seen)
        return self._write(instance, change)

    def note_attempt(
        self,
        instance: str,
        attempt: int,
        *,
        times: Mapping[str, datetime] | None = None,
        blocked_by: Sequence[str] | None = None,
        evicted: int = 0,
        node: str | None = None,
        boot: str | None = None,
        seen: Seen | None = None,
    ) -> TerminationRecord:
        """Write in one conditional write; a repeat changes nothing. Raises ObjectGoneError without a record."""
        change = Change()
        _set_times(change, times)
        if blocked_by is not None:
            change.set("blockedBy", list(blocked_by))
        if evicted:
            change.set("evicted", evicted)
        if node is not None:
            change.set_in("subject", "node", node)
        if boot:
            change.set("boot", boot, keep=True)
        _set_seen(change, seen)
        return self._write(instance, change, attempt)

    def note_reboot(self, instance: str, boot: str, at: datetime) -> bool:
        """Write the reboot in one conditional write. True for the first caller alone, also when its answer got lost:
        without the reboot that it requests, the drained node would be replaced.
        """
        written = self._table.update(
            record_key(instance),
            f"SET #reboots.#boot = :at, #{MARK} = :mark",
            condition="#status = :open AND attribute_not_exists(#reboots.#boot)",
            values={":at": format_instant(at), ":open": Status.OPEN.value, ":mark": new_mark()},
            names={"#boot": boot},
            mark=MARK,
        )
        return written is not None

    def forget_reboot(self, instance: str, boot: str) -> None:
        """Remove the entry in one write; a repeat does the same. Raises ObjectGoneError without a record."""
        change = Change()
        change.remove_in("reboots", boot)
        self._write(instance, change)

    def failed(self, instance: str, why: str) -> None:
        """Write the failure in one write; a repeat writes the same. Raises ObjectGoneError without a record."""
        change = Change()
        change.set("failure", why)
        self._write(instance, change)

    def saw(self, instance: str, seen: Seen) -> None:
        """Write the observation in one write; a repeat writes the same. Raises ObjectGoneError without a record."""
        change = Change()
        _set_seen(change, seen)
        self._write(instance, change)

    def surge(self, instance: str, deployment: str, scaled: bool | None) -> None:
        """Write or remove one entry in one write; a repeat does the same. Raises ObjectGoneError without a record."""
        change = Change()
        if scaled is None:
            change.remove_in("surges", deployment)
        else:
            change.set_in("surges", deployment, scaled)
        self._write(instance, change)

    def plan(self, instance: str, plan: LaunchPlan) -> None:
        """Write the launch plan in one write; a repeat writes the same. Raises ObjectGoneError without a record."""
        change = Change()
        change.set("plan", plan_item(plan))
        self._write(instance, change)

    def begin_plan(
        self, instance: str, plan: LaunchPlan, *, version: int, seen: Seen | None = None
    ) -> TerminationRecord:
        """Write the plan in one conditional write; a repeat finds it. Raises ObjectGoneError without a record."""
        change = Change()
        change.set("plan", plan_item(plan))
        _set_seen(change, seen)
        condition = "attribute_not_exists(#plan) AND #version = :version"
        return self._write(instance, change, condition=condition, more={":version": version})

    def replaced(self, instance: str, replacement: Replacement, now: datetime) -> TerminationRecord:
        """Write the outcome in one conditional write: the first instance that is launched counts. A repeat writes the
        same. Raises ObjectGoneError without a record.
        """
        change = Change()
        change.set("replacement", replacement_item(replacement))
        _set_times(change, {"replacement": now})
        condition = (
            "(attribute_not_exists(#replacement) OR size(#replacement.#launched) = :nothing "
            "OR #replacement.#launched = :launched)"
        )
        values = {":nothing": 0, ":launched": list(replacement.launched)}
        return self._write(instance, change, condition=condition, more=values)

    def _write(
        self,
        instance: str,
        change: Change,
        attempt: int | None = None,
        *,
        condition: str = "",
        more: Mapping[str, Any] | None = None,
    ) -> TerminationRecord:
        """Write, or leave the record as it is where `condition` or the attempt does not hold; return it either way."""
        expression, names, values = change.written()
        if not expression:
            return self._present(instance)
        conditions, values = ["attribute_exists(pk)", *([condition] if condition else [])], {**values, **(more or {})}
        if attempt is not None:
            conditions, values = [*conditions, "#attempt = :attempt"], {**values, ":attempt": attempt}
        written = self._table.update(
            record_key(instance), expression, condition=" AND ".join(conditions), values=values, names=names
        )
        if written:
            return record_of(written)
        if len(conditions) == 1:
            raise ObjectGoneError(f"no termination record of {instance}")
        return self._present(instance)

    def _present(self, instance: str) -> TerminationRecord:
        record = self.read(instance)
        if record is None:
            raise ObjectGoneError(f"no termination record of {instance}")
        return record


def _set_seen(change: Change, seen: Seen | None) -> None:
    if seen is not None:
        change.set("seen", seen.to_json())


def _set_times(change: Change, times: Mapping[str, datetime] | None) -> None:
    """Set times; those that are set already stay, except the ones in OVERWRITTEN_TIMES."""
    for name, at in times_item(times or {}).items():
        change.set_in("times", name, at, keep=name not in OVERWRITTEN_TIMES)
