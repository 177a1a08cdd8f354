"""`ports.records.Claims` in memory: the records with the table's conditional writes, including those of the state
machine."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Unpack

from leeward.adapters.aws.record_items import record_of
from leeward.adapters.aws.whole_items import whole_item
from leeward.errors import ObjectGoneError, RecordChangedError
from leeward.model.seen import Seen
from leeward.model.termination import Cause, LaunchPlan, Outcome, Replacement, Status, Subject, TerminationRecord
from leeward.ports.records import COUNTED, AttemptProgress, ClaimProgress
from simulation.aws.wire import Wire
from simulation.journal import Journal
from simulation.open_index import OpenIndex

CLOCKS_OF_AN_ATTEMPT = frozenset({"draining", "until", "evicting", "unreached", "drained", "moved", "retry"})
OVERWRITTEN_TIMES = frozenset({"retry", "moved", "missed"})
KEPT = timedelta(days=7)  # the time-to-live of a closed record


def _nothing() -> None:
    pass


def _in_time() -> timedelta:
    return timedelta(0)


class SimClaims:
    """Termination records. `records` by instance id; `changed` is called after each write."""

    def __init__(self, changed: Callable[[], None] = _nothing, deployment: str = "") -> None:
        self.deployment = deployment
        self.records: dict[str, TerminationRecord] = {}
        self.closed_ever = 0
        self.plans = Journal[tuple[str, LaunchPlan]]()
        self._once: dict[str, datetime] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self.index = OpenIndex()
        self._late: dict[str, datetime] = {}  # time at which an expired item is deleted
        self._changed = changed
        self.wire = Wire()

    def read(self, instance: str) -> TerminationRecord | None:
        """Return the instance's current record."""
        there = self.records.get(instance)
        return None if there is None else self.wire.parsed(instance, there)

    def read_all(self, instances: Iterable[str]) -> Mapping[str, TerminationRecord]:
        """Return the current records of the instances."""
        return {name: self.wire.parsed(name, self.records[name]) for name in instances if name in self.records}

    def claim(
        self,
        subject: Subject,
        cause: Cause,
        now: datetime,
        known: TerminationRecord | None = None,
        *,
        also: Sequence[Cause] = (),
    ) -> TerminationRecord:
        """Open, join or reopen the record, or return the one that knows the cause already."""
        del known  # it saves a call and changes nothing else
        there, present = self.records.get(subject.instance), self.read(subject.instance)
        if present is not None and present.knows(cause.id):
            return present
        if there is not None:  # one that was taken back joins again
            there = replace(there, earlier_causes=tuple(one for one in there.earlier_causes if one.id != cause.id))
        if there is None:
            fresh = TerminationRecord(
                subject=subject,
                deployment=self.deployment,
                status=Status.OPEN,
                attempt=1,
                version=1,
                causes=(cause, *also),
                times={"claimed": now},
            )
        elif there.status is Status.OPEN:
            moved = there.moved_to(subject)
            fresh = replace(there, causes=(*there.causes, cause), version=there.version + 1)
            fresh = replace(fresh, subject=moved, seen=None) if moved else fresh
        else:
            fresh = _opened_again(there, subject, cause, now)
        return self._parsed(self._put(fresh))

    def begin_attempt(self, instance: str, after: int, *, taken: int = 0) -> TerminationRecord:
        """Raise the attempt, only for a caller that still sees `after` on an open record."""
        there = self._present(instance)
        if there.attempt != after or there.status is not Status.OPEN:
            return self._parsed(there)
        times = {name: at for name, at in there.times.items() if name not in CLOCKS_OF_AN_ATTEMPT}
        attempt, names = after + (taken or 1), there.names_taken + taken
        begun = replace(there, attempt=attempt, names_taken=names, times=times, blocked_by=(), failure="")
        return self._parsed(self._put(begun))

    def note(self, instance: str, **progress: Unpack[ClaimProgress]) -> TerminationRecord:
        """Record progress. Version, causes and status stay; a time that is set stays, but for OVERWRITTEN_TIMES."""
        there = self._present(instance)
        noted = replace(
            there,
            times=_with_times(there, progress.get("times")),
            heartbeats={**there.heartbeats, **(progress.get("heartbeats") or {})},
            offsets={**(progress.get("offsets") or {}), **there.offsets},
            boot=there.boot or progress.get("boot") or "",
            seen=progress.get("seen") or there.seen,
        )
        return self._parsed(self._put(noted))

    def note_attempt(self, instance: str, attempt: int, **progress: Unpack[AttemptProgress]) -> TerminationRecord:
        """Record progress the same way, while the record is in this attempt."""
        there = self._present(instance)
        if attempt != there.attempt:
            return self._parsed(there)
        blocked_by, node = progress.get("blocked_by"), progress.get("node")
        noted = replace(
            there,
            times=_with_times(there, progress.get("times")),
            blocked_by=there.blocked_by if blocked_by is None else tuple(blocked_by),
            pods_evicted=progress.get("evicted") or there.pods_evicted,
            subject=replace(there.subject, node=node) if node else there.subject,
            boot=there.boot or progress.get("boot") or "",
            seen=progress.get("seen") or there.seen,
        )
        return self._parsed(self._put(noted))

    def withdraw(self, instance: str, cause: str) -> TerminationRecord:
        """Move a cause of an open record to the earlier ones, unless the termination was requested; it decides nothing
        any more.
        """
        there = self._present(instance)
        withdrawn = tuple(replace(one, withdrawn=True) for one in there.causes if one.id == cause)
        if there.status is not Status.OPEN or not withdrawn or "terminating" in there.times:
            return self._parsed(there)
        causes = tuple(one for one in there.causes if one.id != cause)
        earlier = (*there.earlier_causes, *withdrawn)
        return self._parsed(self._put(replace(there, causes=causes, earlier_causes=earlier, version=there.version + 1)))

    def note_reboot(self, instance: str, boot: str, at: datetime) -> bool:
        """Record a reboot; true for the first call about this boot."""
        there = self._present(instance)
        if boot in there.reboots or there.status is not Status.OPEN:
            return False
        self._put(replace(there, reboots={**there.reboots, boot: at}))
        return True

    def forget_reboot(self, instance: str, boot: str) -> None:
        """Remove a reboot that was refused."""
        there = self._present(instance)
        self._put(replace(there, reboots={key: at for key, at in there.reboots.items() if key != boot}))

    def failed(self, instance: str, why: str) -> None:
        """Record the failure of the present attempt."""
        self._put(replace(self._present(instance), failure=why))

    def saw(self, instance: str, seen: Seen) -> None:
        """Overwrite what was last seen of the instance."""
        self._put(replace(self._present(instance), seen=seen))

    def surge(self, instance: str, deployment: str, scaled: bool | None) -> None:
        """Write one replica surge of the record, or remove it."""
        there = self._present(instance)
        surges = {key: done for key, done in there.surges.items() if key != deployment}
        self._put(replace(there, surges=surges if scaled is None else {**surges, deployment: scaled}))

    def begin_plan(
        self, instance: str, plan: LaunchPlan, *, version: int, seen: Seen | None = None
    ) -> TerminationRecord:
        """Write the record's launch plan unless it has one, or a cause has joined."""
        there = self._present(instance)
        if there.plan is not None or there.version != version:
            return self._parsed(there)
        self.plans.append((instance, plan))
        return self._parsed(self._put(replace(there, plan=plan, seen=seen or there.seen)))

    def replaced(self, instance: str, replacement: Replacement, now: datetime) -> TerminationRecord:
        """Write the outcome of the launch, unless another instance was launched."""
        there = self._present(instance)
        launched = there.replacement.launched if there.replacement else ()
        if launched and launched != replacement.launched:
            return self._parsed(there)
        times = _with_times(there, {"replacement": now})
        return self._parsed(self._put(replace(there, replacement=replacement, times=times)))

    def carried(self, record: TerminationRecord) -> Mapping[str, Any]:
        """Return the record's item, as the table's adapter does."""
        return whole_item(replace(record, token=None))

    def restored(self, document: Mapping[str, Any]) -> TerminationRecord:
        """Return the record of such an item."""
        return record_of(document)

    def plan(self, instance: str, plan: LaunchPlan) -> None:
        """Overwrite the record's launch plan."""
        self._put(replace(self._present(instance), plan=plan))
        self.plans.append((instance, plan))

    def close(
        self,
        instance: str,
        *,
        version: int,
        outcome: Outcome,
        now: datetime,
        times: Mapping[str, datetime] | None = None,
    ) -> None:
        """Close the record, only at the version that the caller read; closing it again the same way has no effect."""
        there = self._present(instance)
        if (there.status, there.version, there.outcome) == (Status.CLOSED, version, outcome):
            return
        there = self._open_at(instance, version)
        late = {"closed": now, **_with_times(there, times)}
        self.closed_ever += 1
        self._put(replace(there, status=Status.CLOSED, outcome=outcome, times=late, token=None))

    def open_instances(self) -> Sequence[str]:
        """Return the instances of all open records, as the index has them."""
        return self.index.read()

    def once(self, key: str, lasts: timedelta, now: datetime) -> bool:
        """Return true for the first call within the span."""
        if self._once.get(key, now) > now:
            return False
        self._once[key] = now + lasts
        return True

    def count(self, key: str, number: int, now: datetime) -> int:
        """Add to the counter; half minutes are counted as a whole."""
        slot = int(now.timestamp() // COUNTED.total_seconds())
        slots = self._counts.setdefault(key, {})
        slots[slot] = slots.get(slot, 0) + number
        return slots[slot] + slots.get(slot - 1, 0)

    def hand_over_token(self, instance: str, *, version: int, token: str) -> None:
        """Write the token as the state machine's pause does. Raises RecordChangedError when the version has
        moved on.
        """
        there = self.records.get(instance)
        if there is None or there.version != version:
            raise RecordChangedError(f"{instance}: the conditional request failed")
        self._put(replace(there, token=token))

    def expire(self, now: datetime, lag: Callable[[], timedelta] = _in_time) -> None:
        """Apply time to live: delete closed records and spent `once` items, each as late as `lag` says."""
        closed = {name: one.times.get("closed", now) for name, one in self.records.items() if _is_closed(one)}
        for name, until in [(name, at + KEPT) for name, at in closed.items()]:
            if until < now and self._is_deleted(f"record {name}", now, lag):
                del self.records[name]
        for key, until in list(self._once.items()):
            if until <= now and self._is_deleted(f"once {key} {until}", now, lag):
                del self._once[key]

    def _is_deleted(self, item: str, now: datetime, lag: Callable[[], timedelta]) -> bool:
        if item not in self._late:
            self._late[item] = now + lag()
        if self._late[item] > now:
            return False
        del self._late[item]
        return True

    def _put(self, record: TerminationRecord) -> TerminationRecord:
        self.records[record.instance] = record
        self.index.put(record.instance, is_open=record.status is Status.OPEN)
        self.wire.written(record.instance)
        self._changed()
        return record

    def _parsed(self, record: TerminationRecord) -> TerminationRecord:
        return self.wire.parsed(record.instance, record)

    def _present(self, instance: str) -> TerminationRecord:
        if instance not in self.records:
            raise ObjectGoneError(f"no termination record of {instance}")
        return self.records[instance]

    def _open_at(self, instance: str, version: int) -> TerminationRecord:
        record = self._present(instance)
        if record.version != version or record.status is not Status.OPEN:
            raise RecordChangedError(f"{instance}: expected open version {version}, found {record.version}")
        return record


def _with_times(there: TerminationRecord, times: Mapping[str, datetime] | None) -> dict[str, datetime]:
    kept = there.times.keys() - OVERWRITTEN_TIMES
    return {**there.times, **{name: at for name, at in (times or {}).items() if name not in kept}}


def _opened_again(there: TerminationRecord, subject: Subject, cause: Cause, now: datetime) -> TerminationRecord:
    """Return the record of the next period: of the earlier ones their causes, offsets and raised replicas stay, and a
    launch that is not settled.
    """
    period = there.period + 1
    fresh = TerminationRecord(
        subject=subject,
        deployment=there.deployment,
        status=Status.OPEN,
        attempt=there.attempt + 1,
        names_taken=there.attempt,
        version=there.version + 1,
        causes=(cause,),
        times={"claimed": now},
        offsets=there.offsets,
        surges=there.surges,
        reboots=there.reboots,
        period=period,
        earlier_causes=there.all_causes,
        surge_period=period,
    )
    if there.surge_settled:
        return fresh
    return replace(fresh, replacement=there.replacement, plan=there.plan, surge_period=there.surge_period)


def _is_closed(record: TerminationRecord) -> bool:
    return record.status is Status.CLOSED
