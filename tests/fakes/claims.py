"""The table's termination records in memory, with the table's conditional writes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from threading import RLock

from leeward.errors import ObjectGoneError, RecordChangedError
from leeward.model.termination import Cause, Outcome, Replacement, Status, Subject, TerminationRecord
from tests.fakes.calls import Calls

ATTEMPT_CLOCKS = frozenset({"draining", "drained", "retry"})


class FakeClaims(Calls):
    """`records` by instance id. `hand_over_token` is the state machine's own conditional write at a pause."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[str, TerminationRecord] = {}
        self.once_until: dict[str, datetime] = {}
        self._lock = RLock()

    def read(self, instance: str) -> TerminationRecord | None:
        """As it stands."""
        self._call("read")
        return self.records.get(instance)

    def claim(self, subject: Subject, cause: Cause, now: datetime) -> TerminationRecord:
        """Open, join, open again, or give back what a known cause finds."""
        with self._lock:
            self._call("claim")
            old = self.records.get(subject.instance)
            if old is None:
                record = TerminationRecord(
                    subject=subject, status=Status.OPEN, attempt=1, version=1, causes=(cause,), times={"claimed": now}
                )
            elif any(known.id == cause.id for known in old.causes):
                record = old
            elif old.status is Status.OPEN:
                record = replace(old, causes=(*old.causes, cause), version=old.version + 1)
            else:
                record = _opened_again(old, subject, cause, now)
            self.records[subject.instance] = record
            return record

    def begin_attempt(self, instance: str, after: int) -> TerminationRecord:
        """Only whoever still sees `after` on an open record raises it."""
        with self._lock:
            self._call("begin_attempt")
            old = self._present(instance)
            if old.attempt == after and old.status is Status.OPEN:
                times = {name: at for name, at in old.times.items() if name not in ATTEMPT_CLOCKS}
                self.records[instance] = replace(old, attempt=after + 1, times=times, blocked_by=())
            return self.records[instance]

    def note(
        self,
        instance: str,
        *,
        times: Mapping[str, datetime] | None = None,
        heartbeats: Mapping[str, datetime] | None = None,
        replacement: Replacement | None = None,
        blocked_by: Sequence[str] | None = None,
        evicted: int = 0,
        node: str | None = None,
    ) -> None:
        """Version, causes and status stay; a time that is set stays, except `retry`."""
        with self._lock:
            self._call("note")
            old = self._present(instance)
            fresh = {name: at for name, at in (times or {}).items() if name == "retry" or name not in old.times}
            self.records[instance] = replace(
                old,
                times={**old.times, **fresh},
                heartbeats={**old.heartbeats, **(heartbeats or {})},
                replacement=replacement or old.replacement,
                blocked_by=old.blocked_by if blocked_by is None else tuple(blocked_by),
                pods_evicted=old.pods_evicted + evicted,
                subject=replace(old.subject, node=node) if node else old.subject,
            )

    def close(self, instance: str, *, version: int, outcome: Outcome, now: datetime) -> None:
        """Only at the version that the caller read; closing again the same way is done already."""
        with self._lock:
            self._call("close")
            there = self._present(instance)
            if (there.status, there.version, there.outcome) == (Status.CLOSED, version, outcome):
                return
            closed = self._present(instance)
            if (closed.status, closed.version, closed.outcome) == (Status.CLOSED, version, outcome):
                return
            old = self._at_version(instance, version)
            times = {**old.times, "closed": now}
            self.records[instance] = replace(old, status=Status.CLOSED, outcome=outcome, times=times, token=None)

    def open_instances(self) -> Sequence[str]:
        """Without the real index's lag."""
        self._call("open_instances")
        return tuple(name for name, record in self.records.items() if record.status is Status.OPEN)

    def once(self, key: str, lasts: timedelta, now: datetime) -> bool:
        """True for the first within the span."""
        with self._lock:
            self._call("once")
            if self.once_until.get(key, now) > now:
                return False
            self.once_until[key] = now + lasts
            return True

    def hand_over_token(self, instance: str, *, version: int, token: str) -> None:
        """What the pause of the state machine writes; a join in between makes it fail and the run goes round again."""
        with self._lock:
            self.records[instance] = replace(self._at_version(instance, version), token=token)

    def _present(self, instance: str) -> TerminationRecord:
        if instance not in self.records:
            raise ObjectGoneError(f"no termination record of {instance}")
        return self.records[instance]

    def _at_version(self, instance: str, version: int) -> TerminationRecord:
        record = self._present(instance)
        if record.version != version or record.status is not Status.OPEN:
            raise RecordChangedError(f"{instance}: expected open version {version}, found {record.version}")
        return record


def _opened_again(old: TerminationRecord, subject: Subject, cause: Cause, now: datetime) -> TerminationRecord:
    return TerminationRecord(
        subject=subject,
        status=Status.OPEN,
        attempt=old.attempt + 1,
        version=old.version + 1,
        causes=(*old.causes, cause),
        times={"claimed": now},
        replacement=old.replacement,
    )
