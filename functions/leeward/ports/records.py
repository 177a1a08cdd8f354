"""Ports to the DynamoDB table: termination, upgrade and disruption records, and the catalog of facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from leeward.disruption.record import DisruptionRecord
    from leeward.model.capacity import Settlement, SurgeInstance
    from leeward.model.facts import FactKind, NamedHooks, Sheet
    from leeward.model.nodegroup import NodeRepair
    from leeward.model.pause import PauseRecord
    from leeward.model.seen import Seen
    from leeward.model.subnet import IpReservation, Pool, Reservations
    from leeward.model.termination import Cause, LaunchPlan, Outcome, Replacement, Subject, TerminationRecord
    from leeward.model.zonal_shift import ZonalShifts, ZoneRecord
    from leeward.policy.document import AppliedPolicies
    from leeward.upgrade.record import UpgradeRecord

COUNTED = timedelta(seconds=30)  # length of the slots of a counter, of which two are summed


class _ProgressOfAny(TypedDict, total=False):
    """Progress that any step may write; what is absent or None stays as it is."""

    times: Mapping[str, datetime] | None  # those already set are kept, except `retry`, `moved` and `missed`
    boot: str | None  # kept where it is set
    seen: Seen | None


class ClaimProgress(_ProgressOfAny, total=False):
    """Progress of a termination, as `Claims.note` writes it."""

    heartbeats: Mapping[str, datetime] | None
    offsets: Mapping[SurgeInstance, Settlement] | None  # those already set are kept


class AttemptProgress(_ProgressOfAny, total=False):
    """Progress of one attempt, as `Claims.note_attempt` writes it."""

    blocked_by: Sequence[str] | None
    evicted: int  # pods evicted in this period so far; 0 leaves the number
    node: str | None


class Claims(Protocol):
    """The table's termination records. Writes are conditional: the loser reads again."""

    def read(self, instance: str) -> TerminationRecord | None:
        """Return the record, strongly consistent."""
        ...

    def read_all(self, instances: Iterable[str]) -> Mapping[str, TerminationRecord]:
        """Return the records that exist, open and closed, by instance, strongly consistent; one
        call reads a hundred.
        """
        ...

    def claim(
        self,
        subject: Subject,
        cause: Cause,
        now: datetime,
        known: TerminationRecord | None = None,
        *,
        also: Sequence[Cause] = (),
    ) -> TerminationRecord:
        """Open a record with its first cause, or join an open one (version + 1 unless the cause is known).

        A closed record is reopened with attempt + 1 when the cause is new to it; else it is returned closed. `known`:
        the record as the caller has just read it; one that is open is joined with one call instead of two. `also`: more
        causes of a record that is new; they do not join another.
        """
        ...

    def begin_attempt(self, instance: str, after: int, *, taken: int = 0) -> TerminationRecord:
        """Set attempt = `after` + (`taken`, else 1) if it still is `after` and the record is open; return the record as
        it then stands either way.

        A new attempt (also one that `claim` opens) resets its clocks: the times draining, until, evicting, drained,
        moved and retry, `blocked_by` and `failure` are removed, everything else stays. `taken`: number of names that
        belong to executions of earlier records; `names_taken` grows by as many.
        """
        ...

    def note(self, instance: str, **progress: Unpack[ClaimProgress]) -> TerminationRecord:
        """Write progress and return the record as it then stands; never touches version, causes or status. Raises
        ObjectGoneError.
        """
        ...

    def note_attempt(self, instance: str, attempt: int, **progress: Unpack[AttemptProgress]) -> TerminationRecord:
        """Write progress of one attempt, as `note` does, and return the record as it then stands. Writes nothing once
        another attempt has begun: a step may outlive its execution, and its clocks are not those of the next one.
        Raises ObjectGoneError.
        """
        ...

    def note_reboot(self, instance: str, boot: str, at: datetime) -> bool:
        """Write that a reboot ends the boot with this id; True for the first caller alone, which then requests it."""
        ...

    def forget_reboot(self, instance: str, boot: str) -> None:
        """Remove a reboot that EC2 has refused. Raises ObjectGoneError."""
        ...

    def failed(self, instance: str, why: str) -> None:
        """Write why the present attempt does not succeed. Raises ObjectGoneError."""
        ...

    def saw(self, instance: str, seen: Seen) -> None:
        """Overwrite the observed state of EC2 and Auto Scaling. Raises ObjectGoneError."""
        ...

    def surge(self, instance: str, deployment: str, scaled: bool | None) -> None:
        """Write whether one Deployment (namespace/name) has a second replica because of this termination; None removes
        it. Other Deployments stay: two steps may write at the same time. Raises ObjectGoneError.
        """
        ...

    def begin_plan(
        self, instance: str, plan: LaunchPlan, *, version: int, seen: Seen | None = None
    ) -> TerminationRecord:
        """Write where the replacement is to be launched, unless a plan is there or a cause has joined since `version`;
        return the record as it then stands. Raises ObjectGoneError.
        """
        ...

    def plan(self, instance: str, plan: LaunchPlan) -> None:
        """Overwrite where the replacement is to be launched. Raises ObjectGoneError."""
        ...

    def replaced(self, instance: str, replacement: Replacement, now: datetime) -> TerminationRecord:
        """Write the outcome of the launch, unless another step has written another launched instance; return the record
        as it then stands, with the replacement that counts. Raises ObjectGoneError.
        """
        ...

    def close(
        self,
        instance: str,
        *,
        version: int,
        outcome: Outcome,
        now: datetime,
        times: Mapping[str, datetime] | None = None,
    ) -> None:
        """Close the record if no cause joined since `version`, with more of its times. Raises RecordChangedError."""
        ...

    def withdraw(self, instance: str, cause: str) -> TerminationRecord:
        """Take the cause with this id out of the present causes of an open record (version + 1) and return the record
        as it then stands. It stays among the earlier ones, and joins again where it is claimed again. Nothing is taken
        out once the time `terminating` is noted: the instance ends in any case. Raises ObjectGoneError.
        """
        ...

    def carried(self, record: TerminationRecord) -> Mapping[str, Any]:
        """Return the record as a state machine carries it to the next step, without its task token. Calls nothing."""
        ...

    def restored(self, document: Mapping[str, Any]) -> TerminationRecord:
        """Return the record of `carried`. Calls nothing. Raises NewerRecordError for a document of another version."""
        ...

    def open_instances(self) -> Sequence[str]:
        """Return the instances of all open records, from an index that may lag by seconds."""
        ...

    def once(self, key: str, lasts: timedelta, now: datetime) -> bool:
        """Return True for the first caller of this key within the span: deduplicates Health events and the like."""
        ...

    def count(self, key: str, number: int, now: datetime) -> int:
        """Add to the counter of this key, and return what was added within the last `COUNTED` to twice that, this
        number among it. Calls that overlap are all counted: the last of them gets the whole sum.
        """
        ...


class PastTerminations(Protocol):
    """The table's termination records as a whole, for reports of the command line."""

    def of_cluster(self, cluster: str) -> Sequence[TerminationRecord]:
        """Return all records of the cluster, open and closed; closed ones are kept for a week. Reads the whole table:
        one call for each megabyte.
        """
        ...


class Upgrades(Protocol):
    """The table's records of upgrades, one for each group: its lease. Writes are conditional: the loser reads again."""

    def read(self, group: str) -> UpgradeRecord | None:
        """Return the group's latest record, open or ended, strongly consistent."""
        ...

    def read_all(self, groups: Iterable[str]) -> Mapping[str, UpgradeRecord]:
        """Return the latest records of many groups, by group; those without a record are left out."""
        ...

    def write(self, record: UpgradeRecord) -> UpgradeRecord | None:
        """Return the record with version + 1, written if the version that it carries is still the newest (0: there is
        no record, or the last one has ended); None when another writer was faster.
        """
        ...

    def keep_plan(self, group: str, document: Mapping[str, Any]) -> None:
        """Overwrite the pre-flight findings of the group's latest upgrade; the document has JSON types alone."""
        ...

    def plan(self, group: str) -> Mapping[str, Any] | None:
        """Return the document of `keep_plan`, None where there is none."""
        ...


class Disruptions(Protocol):
    """The table's records of runs, one for each cluster: its claim. Writes are conditional: the loser reads again."""

    def read(self, cluster: str) -> DisruptionRecord | None:
        """Return the cluster's latest record, open or ended, strongly consistent."""
        ...

    def write(self, record: DisruptionRecord) -> DisruptionRecord | None:
        """Return the record with version + 1, written if the version that it carries is still the newest of the same
        run (0: there is no record, or the last one has ended); None when another writer was faster.
        """
        ...


class PauseSwitches(Protocol):
    """The table's switches of `leeward pause`, one for each cluster. Writes are conditional: the loser reads again."""

    def read(self, cluster: str) -> PauseRecord:
        """Return the cluster's record, strongly consistent; one of version 0 where there is none."""
        ...

    def write(self, record: PauseRecord) -> PauseRecord | None:
        """Return the record with version + 1, written if the version that it carries is still the newest; None when
        another writer was faster.
        """
        ...


class PolicyStore(Protocol):
    """The table's policies that `leeward policy apply` has written, one record a cluster. Writes are conditional."""

    def read(self, cluster: str) -> AppliedPolicies:
        """Return the cluster's record, strongly consistent; one of version 0 where there is none."""
        ...

    def write(self, policies: AppliedPolicies) -> AppliedPolicies | None:
        """Return the record with version + 1, written if the version that it carries is still the newest; None when
        another writer was faster.
        """
        ...


class Catalog(Protocol):
    """Facts that fn sync has stored."""

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """Return all sheets of the cluster, with one call; a sheet that was never gathered is absent."""
        ...

    def sheet(self, cluster: str, kind: FactKind) -> Sheet | None:
        """Return one sheet of the cluster, None where it was never gathered."""
        ...

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """Overwrite the sheet, unless one of a later read is there."""
        ...

    def node_repair(self, cluster: str) -> Mapping[str, NodeRepair]:
        """Return EKS' node auto repair of the cluster's managed groups, by group, as far as fn sync has read it."""
        ...

    def named_hooks(self, cluster: str) -> Mapping[str, NamedHooks]:
        """Return the hooks that policies name, or named until lately, by group, as far as fn sync has read them."""
        ...

    def zonal_shifts(self, cluster: str) -> ZonalShifts:
        """Return the cluster's zonal shifts with the zones that its record closes, strongly consistent; none that was
        never kept.
        """
        ...

    def keep_zonal_shifts(self, cluster: str, sheet: Sheet) -> None:
        """Overwrite the sheet of zonal shifts as `keep` does: the only one that is not fn sync's."""
        ...

    def zone_record(self, cluster: str) -> ZoneRecord:
        """Return the cluster's evacuations, strongly consistent; of version 0 where there are none."""
        ...

    def write_zone_record(self, record: ZoneRecord, now: datetime) -> ZoneRecord | None:
        """Return the record with version + 1, written if the version that it carries is still the newest; None when
        another writer was faster.
        """
        ...

    def reservations(self, cluster: str) -> Reservations:
        """Return the addresses reserved by launches in progress, and which spot capacity is short;
        strongly consistent.
        """
        ...

    def mark_unavailable(self, cluster: str, pool: Pool, until: datetime) -> None:
        """Record that spot capacity is short; a repeat writes the same, reservations stay unchanged."""
        ...

    def reserve(self, cluster: str, instance: str, reservation: IpReservation, *, after: int) -> bool:
        """Record one reservation; False when the version is not `after` any more, or the response
        was lost: read again.
        """
        ...
