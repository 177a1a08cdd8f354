"""The table's termination records: the simulation's, with calls counted, failures planned, and safe between threads."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from threading import RLock
from typing import Any, Unpack

from leeward.model.seen import Seen
from leeward.model.termination import Cause, LaunchPlan, Replacement, Subject, TerminationRecord
from leeward.ports.records import AttemptProgress, ClaimProgress
from simulation.aws.table import SimClaims
from tests.fakes.builders import DEPLOYMENT
from tests.fakes.calls import Calls


class FakeClaims(Calls):
    """`hand_over_token` is the state machine's own conditional write at a pause."""

    def __init__(self, deployment: str = DEPLOYMENT) -> None:
        super().__init__()
        self._table = SimClaims(deployment=deployment)
        self._lock = RLock()

    @property
    def records(self) -> dict[str, TerminationRecord]:
        """By instance id."""
        return self._table.records

    def read(self, instance: str) -> TerminationRecord | None:
        """As it stands."""
        self._call("read")
        return self._table.read(instance)

    def read_all(self, instances: Iterable[str]) -> Mapping[str, TerminationRecord]:
        """As they stand."""
        self._call("read_all")
        return self._table.read_all(instances)

    def claim(
        self,
        subject: Subject,
        cause: Cause,
        now: datetime,
        known: TerminationRecord | None = None,
        *,
        also: Sequence[Cause] = (),
    ) -> TerminationRecord:
        """Open, join, open again, or give back what a known cause finds."""
        with self._lock:
            self._call("claim")
            return self._table.claim(subject, cause, now, known, also=also)

    def begin_attempt(self, instance: str, after: int, *, taken: int = 0) -> TerminationRecord:
        """Only a caller that still sees `after` raises it."""
        with self._lock:
            self._call("begin_attempt")
            return self._table.begin_attempt(instance, after, taken=taken)

    def note(self, instance: str, **progress: Unpack[ClaimProgress]) -> TerminationRecord:
        """Version, causes and status stay; a time that is set stays, except `retry`, `moved`, `missed`."""
        with self._lock:
            self._call("note")
            return self._table.note(instance, **progress)

    def note_attempt(self, instance: str, attempt: int, **progress: Unpack[AttemptProgress]) -> TerminationRecord:
        """The same, while the record is in this attempt."""
        with self._lock:
            self._call("note_attempt")
            return self._table.note_attempt(instance, attempt, **progress)

    def withdraw(self, instance: str, cause: str) -> TerminationRecord:
        """It decides nothing any more."""
        with self._lock:
            self._call("withdraw")
            return self._table.withdraw(instance, cause)

    def note_reboot(self, instance: str, boot: str, at: datetime) -> bool:
        """True for the first."""
        with self._lock:
            self._call("note_reboot")
            return self._table.note_reboot(instance, boot, at)

    def forget_reboot(self, instance: str, boot: str) -> None:
        """EC2 has refused it."""
        with self._lock:
            self._call("forget_reboot")
            self._table.forget_reboot(instance, boot)

    def saw(self, instance: str, seen: Seen) -> None:
        """Over what was written before."""
        with self._lock:
            self._call("saw")
            self._table.saw(instance, seen)

    def failed(self, instance: str, why: str) -> None:
        """Of the present attempt."""
        with self._lock:
            self._call("failed")
            self._table.failed(instance, why)

    def surge(self, instance: str, deployment: str, scaled: bool | None) -> None:
        """One Deployment of the record."""
        with self._lock:
            self._call("surge")
            self._table.surge(instance, deployment, scaled)

    def begin_plan(
        self, instance: str, plan: LaunchPlan, *, version: int, seen: Seen | None = None
    ) -> TerminationRecord:
        """Unless one was written before, or a cause has joined."""
        with self._lock:
            self._call("begin_plan")
            return self._table.begin_plan(instance, plan, version=version, seen=seen)

    def replaced(self, instance: str, replacement: Replacement, now: datetime) -> TerminationRecord:
        """Unless another instance was launched."""
        with self._lock:
            self._call("replaced")
            return self._table.replaced(instance, replacement, now)

    def carried(self, record: TerminationRecord) -> Mapping[str, Any]:
        """As the table's adapter does; no call."""
        return self._table.carried(record)

    def restored(self, document: Mapping[str, Any]) -> TerminationRecord:
        """As the table's adapter does; no call."""
        return self._table.restored(document)

    def plan(self, instance: str, plan: LaunchPlan) -> None:
        """Over what was planned before."""
        with self._lock:
            self._call("plan")
            self._table.plan(instance, plan)

    def close(self, instance: str, **what: Any) -> None:
        """Only at the version that the caller read."""
        with self._lock:
            self._call("close")
            self._table.close(instance, **what)

    def open_instances(self) -> Sequence[str]:
        """Without the real index's lag."""
        self._call("open_instances")
        return self._table.open_instances()

    def once(self, key: str, lasts: timedelta, now: datetime) -> bool:
        """True for the first within the span."""
        with self._lock:
            self._call("once")
            return self._table.once(key, lasts, now)

    def count(self, key: str, number: int, now: datetime) -> int:
        """Counts as the table does."""
        with self._lock:
            self._call("count")
            return self._table.count(key, number, now)

    def hand_over_token(self, instance: str, *, version: int, token: str) -> None:
        """A join in between makes it fail, and the run goes round again."""
        with self._lock:
            self._table.hand_over_token(instance, version=version, token=token)
