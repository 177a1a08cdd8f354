"""Progress of a termination in its record on DynamoDB, the half of `ports.records.Claims` that opens and closes none.

Decides which attributes a step may write, each in one write that a repeat does not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

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
from leeward.model.seen import Seen
from leeward.model.surge_instance import Settlement, SurgeInstance
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
        replacement: Replacement | None = None,
        offsets: Mapping[SurgeInstance, Settlement] | None = None,
        node: str | None = None,
        boot: str | None = None,
    ) -> None:
        """Write all values in one write; a repeat changes nothing. Raises ObjectGoneError without a record."""
        change = Change()
        _set_times(change, times)
        for name, at in times_item(heartbeats or {}).items():
            change.set_in("heartbeats", name, at)
        if replacement is not None:
            change.set("replacement", replacement_item(replacement))
        for surge, settlement in (offsets or {}).items():
            change.set_in("offsets", surge.key, offset_item(surge, settlement), keep=True)
        if node is not None:
            change.set_in("subject", "node", node)
        if boot:
            change.set("boot", boot, keep=True)
        if not change.empty:
            self._write(instance, change)

    def note_attempt(
        self,
        instance: str,
        attempt: int,
        *,
        times: Mapping[str, datetime] | None = None,
        blocked_by: Sequence[str] | None = None,
        evicted: int = 0,
    ) -> None:
        """Write in one conditional write. A repeat of the call changes nothing but `evicted`, a count for people only;
        the same write repeated counts once. Raises ObjectGoneError without a record.
        """
        change = Change()
        _set_times(change, times)
        if blocked_by is not None:
            change.set("blockedBy", list(blocked_by))
        if evicted:
            change.add("evicted", evicted)
        if not change.empty:
            self._write(instance, change, attempt)

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
        change.set("seen", seen.to_json())
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

    def _write(self, instance: str, change: Change, attempt: int | None = None) -> None:
        mark = MARK if change.counts else ""
        if mark:
            change.set_mark(MARK, new_mark())
        expression, names, values = change.written()
        condition = "attribute_exists(pk)"
        if mark:
            condition = f"{condition} AND (attribute_not_exists(#{MARK}) OR #{MARK} <> :mark)"
        if attempt is not None:
            condition, values = f"{condition} AND #attempt = :attempt", {**values, ":attempt": attempt}
        key = record_key(instance)
        written = self._table.update(key, expression, condition=condition, values=values, names=names, mark=mark)
        if not written and (attempt is None or self.read(instance) is None):
            raise ObjectGoneError(f"no termination record of {instance}")


def _set_times(change: Change, times: Mapping[str, datetime] | None) -> None:
    """Set times; those that are set already stay, except the ones in OVERWRITTEN_TIMES."""
    for name, at in times_item(times or {}).items():
        change.set_in("times", name, at, keep=name not in OVERWRITTEN_TIMES)
