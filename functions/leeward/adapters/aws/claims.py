"""`ports.records.Claims` on DynamoDB: conditional writes; a caller that loses one reads again and retries from the new
state.

Progress of a termination in its record on DynamoDB, the half of `ports.records.Claims` that opens and closes none.

Decides which attributes a step may write, each in one write that a repeat does not change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack

from leeward.adapters.aws.record_items import (
    TERMINATION,
    cause_item,
    count_key,
    instance_of,
    new_record,
    offset_item,
    once_key,
    record_key,
    record_of,
    times_item,
)
from leeward.adapters.aws.table import Change, DynamoTable, new_mark
from leeward.errors import AwsUnavailableError, ObjectGoneError, RecordChangedError
from leeward.model.codec import encode
from leeward.model.seen import Seen
from leeward.model.termination import Cause, LaunchPlan, Outcome, Replacement, Status, Subject, TerminationRecord
from leeward.model.times import format_instant
from leeward.ports.records import COUNTED, AttemptProgress, ClaimProgress

if TYPE_CHECKING:
    from leeward.ports.clock import Clock


MARK = "by"  # attribute with the mark of the last write that a repeat must not take for another's
OVERWRITTEN_TIMES = {"retry", "moved", "missed"}
ATTEMPTS = 8  # lost races and repeated reads, before the caller has to retry
KEPT = timedelta(days=7)  # a closed record, for later questions about what happened
PAUSE_SECONDS = 0.05
MOST_SLOTS = 20  # of a counter, from before pauses


class ClaimNotes:
    """Notes in termination records in the table `leeward`."""

    def __init__(self, table: DynamoTable) -> None:
        self._table = table

    def read(self, instance: str) -> TerminationRecord | None:
        """Read the record, strongly consistent."""
        item = self._table.get(record_key(instance))
        return record_of(item) if item else None

    def note(self, instance: str, **progress: Unpack[ClaimProgress]) -> TerminationRecord:
        """Write all values in one write; a repeat changes nothing. Raises ObjectGoneError without a record."""
        change = Change()
        _set_progress(change, progress)
        for name, at in times_item(progress.get("heartbeats") or {}).items():
            change.set_in("heartbeats", name, at)
        for surge, settlement in (progress.get("offsets") or {}).items():
            change.set_in("offsets", surge.key, offset_item(surge, settlement), keep=True)
        return self._write(instance, change)

    def note_attempt(self, instance: str, attempt: int, **progress: Unpack[AttemptProgress]) -> TerminationRecord:
        """Write in one conditional write; a repeat changes nothing. Raises ObjectGoneError without a record."""
        change = Change()
        _set_progress(change, progress)
        if (blocked_by := progress.get("blocked_by")) is not None:
            change.set("blockedBy", list(blocked_by))
        if evicted := progress.get("evicted"):
            change.set("evicted", evicted)
        if (node := progress.get("node")) is not None:
            change.set_in("subject", "node", node)
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
        change.set("plan", encode(plan))
        self._write(instance, change)

    def begin_plan(
        self, instance: str, plan: LaunchPlan, *, version: int, seen: Seen | None = None
    ) -> TerminationRecord:
        """Write the plan in one conditional write; a repeat finds it. Raises ObjectGoneError without a record."""
        change = Change()
        change.set("plan", encode(plan))
        _set_seen(change, seen)
        condition = "attribute_not_exists(#plan) AND #version = :version"
        return self._write(instance, change, condition=condition, more={":version": version})

    def replaced(self, instance: str, replacement: Replacement, now: datetime) -> TerminationRecord:
        """Write the outcome in one conditional write: the first instance that is launched counts. A repeat writes the
        same. Raises ObjectGoneError without a record.
        """
        change = Change()
        change.set("replacement", encode(replacement))
        _set_times(change, {"replacement": now})
        condition = "(attribute_not_exists(#replacement.#launched) OR #replacement.#launched = :launched)"
        values = {":launched": list(replacement.launched)}
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


def _set_progress(change: Change, progress: ClaimProgress | AttemptProgress) -> None:
    _set_times(change, progress.get("times"))
    if boot := progress.get("boot"):
        change.set("boot", boot, keep=True)
    _set_seen(change, progress.get("seen"))


def _set_seen(change: Change, seen: Seen | None) -> None:
    if seen is not None:
        change.set("seen", encode(seen))


def _set_times(change: Change, times: Mapping[str, datetime] | None) -> None:
    """Set times; those that are set already stay, except the ones in OVERWRITTEN_TIMES."""
    for name, at in times_item(times or {}).items():
        change.set_in("times", name, at, keep=name not in OVERWRITTEN_TIMES)


class DynamoClaims(ClaimNotes):
    """Termination records in the table `leeward`."""

    def __init__(self, table: DynamoTable, clock: Clock, deployment: str) -> None:
        super().__init__(table)
        self._clock = clock
        self._deployment = deployment

    def read_all(self, instances: Iterable[str]) -> Mapping[str, TerminationRecord]:
        """Read the records with BatchGetItem, a hundred at a time."""
        return {
            instance_of(item["pk"]): record_of(item)
            for item in self._table.get_all(map(record_key, instances), consistent=True)
        }

    def claim(
        self,
        subject: Subject,
        cause: Cause,
        now: datetime,
        known: TerminationRecord | None = None,
        *,
        also: Sequence[Cause] = (),
    ) -> TerminationRecord:
        """Open, join or reopen the record. A repeat after a lost answer finds its cause in the record and adds nothing.

        A record that is reopened starts a new period. It keeps the causes of earlier ones (the same event must not open
        it twice) and a plan or replacement whose launch is still to be offset. Raises AwsUnavailableError after too
        many lost races. A record that is known to be open is joined first: the condition of that write fails where
        it has been closed since, or has the cause.
        """
        if known is not None and known.status is Status.OPEN and known.moved_to(subject) is None:
            joined = self._join(known, None, cause, now)
            if joined is not None:
                return joined
        for lost in range(ATTEMPTS):
            if lost:
                self._clock.sleep(PAUSE_SECONDS * lost)
            record = self._claim_once(subject, cause, now, also)
            if record is not None:
                return record
        raise AwsUnavailableError(f"dynamodb:UpdateItem on {record_key(subject.instance)}: lost {ATTEMPTS} races")

    def begin_attempt(self, instance: str, after: int, *, taken: int = 0) -> TerminationRecord:
        """Begin the attempt after `after`; a repeat finds it already begun. Raises ObjectGoneError without a record."""
        item = self._table.update(
            record_key(instance),
            "SET #attempt = :next, #namesTaken = #namesTaken + :taken, #blockedBy = :unblocked "
            "REMOVE #times.#draining, #times.#until, #times.#evicting, #times.#drained, #times.#moved, #times.#retry, "
            "#times.#unreached, #failure",
            condition="#attempt = :after AND #status = :open",
            values={
                ":next": after + (taken or 1),
                ":taken": taken,
                ":after": after,
                ":open": Status.OPEN.value,
                ":unblocked": [],
            },
        )
        return record_of(item) if item else self._present(instance)

    def close(
        self,
        instance: str,
        *,
        version: int,
        outcome: Outcome,
        now: datetime,
        times: Mapping[str, datetime] | None = None,
    ) -> None:
        """Close it if no cause joined since `version`; closing again with the same version and outcome is a no-op."""
        late = times_item({} if times is None else times)
        added = "".join(f", #times.#{name} = if_not_exists(#times.#{name}, :{name}At)" for name in late)
        closed = self._table.update(
            record_key(instance),
            "SET #status = :closed, #outcome = :outcome, #times.#closed = :now, #expires = :expires"
            f"{added} REMOVE #open, #token",
            condition="#version = :version AND #status = :open",
            values={
                **{f":{name}At": at for name, at in late.items()},
                ":closed": Status.CLOSED.value,
                ":outcome": outcome.value,
                ":now": format_instant(now),
                ":expires": _epoch(now + KEPT),
                ":version": version,
                ":open": Status.OPEN.value,
            },
        )
        if closed is not None:
            return
        record = self._present(instance)
        if (record.status, record.version, record.outcome) != (Status.CLOSED, version, outcome):
            found = f"{record.status.value} version {record.version}"
            raise RecordChangedError(f"{instance}: expected open version {version}, found {found}")

    def withdraw(self, instance: str, cause: str) -> TerminationRecord:
        """Mark a cause of an open record as taken back, unless the group was asked to terminate the instance; a repeat
        finds it marked and changes nothing.
        """
        item = self._table.update(
            record_key(instance),
            "SET #causes.#cause.#withdrawn = :true, #version = #version + :one",
            condition="#status = :open AND attribute_exists(#causes.#cause) "
            "AND attribute_not_exists(#causes.#cause.#withdrawn) AND attribute_not_exists(#times.#terminating)",
            names={"#cause": cause},
            values={":true": True, ":one": 1, ":open": Status.OPEN.value},
        )
        return record_of(item) if item else self._present(instance)

    def carried(self, record: TerminationRecord) -> Mapping[str, Any]:
        """Return the record's item."""
        from leeward.adapters.aws.whole_items import whole_item  # late: a cold start that carries nothing needs none

        return whole_item(replace(record, token=None))

    def restored(self, document: Mapping[str, Any]) -> TerminationRecord:
        """Return the record of such an item."""
        return record_of(document)

    def open_instances(self) -> Sequence[str]:
        """Return the instances of all open records, from the sparse index, which may lag by seconds."""
        return tuple(instance_of(pk) for pk in self._table.open_keys(TERMINATION))

    def once(self, key: str, lasts: timedelta, now: datetime) -> bool:
        """Return True for the first caller within the span; the TTL deletes late, so the span is compared as well.

        A caller whose answer got lost recognizes its own mark when botocore repeats the write.
        """
        mark = new_mark()
        written, there = self._table.put(
            {"pk": once_key(key), "expires": _epoch(now + lasts), "by": mark},
            condition="attribute_not_exists(pk) OR #expires <= :now",
            values={":now": int(now.timestamp())},
        )
        return written or (there is not None and there.get("by") == mark)

    def count(self, key: str, number: int, now: datetime) -> int:
        """Add to the slot of the present half minute. One update adds, removes the slots before the last one and
        returns the rest; those that a long pause left behind are removed by the next call that finds many.
        """
        slot = int(now.timestamp() // COUNTED.total_seconds())
        old = [f"s{slot - past}" for past in (2, 3)]
        item = self._added(count_key(key), f"s{slot}", number, old, now)
        slots = {int(name[1:]): int(value) for name, value in item.items() if name.startswith("s")}
        left = [f"s{past}" for past in slots if past < slot - 1]
        if len(left) > MOST_SLOTS:
            self._added(count_key(key), f"s{slot}", 0, left, now)
        return sum(value for past, value in slots.items() if past >= slot - 1)

    def _added(self, pk: str, slot: str, number: int, without: Sequence[str], now: datetime) -> Mapping[str, Any]:
        names = {"#slot": slot, **{f"#old{place}": name for place, name in enumerate(without)}}
        removed = ", ".join(name for name in names if name != "#slot")
        item = self._table.update(
            pk,
            f"ADD #slot :number SET #expires = :expires REMOVE {removed}",
            values={":number": number, ":expires": _epoch(now + KEPT)},
            names=names,
        )
        return item or {}

    def _claim_once(
        self, subject: Subject, cause: Cause, now: datetime, also: Sequence[Cause]
    ) -> TerminationRecord | None:
        """Claim once; None when another claim was faster. The write comes first: usually there is no record, and a
        write that loses returns the present one.
        """
        item = new_record(subject, cause, now, deployment=self._deployment, also=also)
        written, there = self._table.put(item, condition="attribute_not_exists(pk)")
        if written or there is None:
            return record_of(item) if written else None
        record = record_of(there)
        if record.knows(cause.id):
            return record
        if record.status is Status.OPEN:
            return self._join(record, record.moved_to(subject), cause, now)
        return self._open_again(record, subject, cause, now)

    def _join(
        self, record: TerminationRecord, moved: Subject | None, cause: Cause, now: datetime
    ) -> TerminationRecord | None:
        """Add the cause to the period that was read, and the subject of an instance that has moved to another group.
        None when the record was closed or reopened since.
        """
        item = self._table.update(
            record_key(record.instance),
            "SET #causes.#cause = :cause, #version = #version + :one"
            f"{', #subject = :subject REMOVE #seen' if moved else ''}",
            condition="#status = :open AND #period = :period AND "
            "(attribute_not_exists(#causes.#cause) OR attribute_exists(#causes.#cause.#withdrawn))",
            names={"#cause": cause.id},
            values={
                ":cause": cause_item(cause, now, period=record.period),
                ":one": 1,
                ":open": Status.OPEN.value,
                ":period": record.period,
                **({":subject": encode(moved)} if moved else {}),
            },
        )
        return record_of(item) if item else None

    def _open_again(
        self, record: TerminationRecord, subject: Subject, cause: Cause, now: datetime
    ) -> TerminationRecord | None:
        """Start the next period. None when another claim was faster."""
        period = record.period + 1
        keeps_launch = not record.surge_settled
        item = self._table.update(
            record_key(subject.instance),
            "SET #status = :open, #open = :termination, #attempt = :next, #namesTaken = :attempt, "
            "#version = #version + :one, "
            "#subject = :subject, #causes.#cause = :cause, #times = :times, #heartbeats = :none, #period = :period, "
            "#surgePeriod = :surgePeriod, #blockedBy = :unblocked, #evicted = :zero, "
            "#reboots = if_not_exists(#reboots, :none) "
            "REMOVE #outcome, #token, #expires, #failure, #seen, #boot"
            f"{'' if keeps_launch else ', #replacement, #plan'}",
            condition="#status = :closed AND #attempt = :attempt",
            names={"#cause": cause.id},
            values={
                ":open": Status.OPEN.value,
                ":closed": Status.CLOSED.value,
                ":termination": TERMINATION,
                ":attempt": record.attempt,
                ":next": record.attempt + 1,
                ":one": 1,
                ":period": period,
                ":surgePeriod": record.surge_period if keeps_launch else period,
                ":subject": encode(subject),
                ":cause": cause_item(cause, now, period=period),
                ":times": times_item({"claimed": now}),
                ":none": {},
                ":unblocked": [],
                ":zero": 0,
            },
        )
        return record_of(item) if item else None


def _epoch(moment: datetime) -> int:
    """Return seconds as DynamoDB's TTL reads them, rounded up."""
    return math.ceil(moment.timestamp())
