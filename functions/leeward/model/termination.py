"""Record of one node's termination: the table's item for an instance while, and some days after, it leaves.

The cluster, the group and the execution hold everything else; losing the table loses no node. With it the options of a
drain, the reboot that may stand for a replacement, and the detach deadline that follows from the causes of the present
period. The time-out of a lifecycle hook is no deadline: heartbeats extend ours, and `leeward.termination.deadlines`
says when another team's counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from leeward.model.capacity import Settlement, SurgeInstance, SurgeOwner
from leeward.model.codec import APART, named
from leeward.model.group import HookResult
from leeward.model.instance import CapacityType
from leeward.model.seen import Seen

NEVER = timedelta.max
MOST_A_DAY = 2  # reboots of one node by Leeward; what a third would be for needs another machine
DAY = timedelta(days=1)
AHEAD = timedelta(minutes=5)  # for the claim, a cold start and the settling of the empty node
BACK_WITHIN = timedelta(minutes=15)  # from the reboot until the node has to be Ready; then it is replaced
OVERDUE = timedelta(minutes=5)  # EC2 takes an instance within seconds of the moment that it has announced


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """Flags of one drain. None: as the policy says."""

    evict_unmanaged: bool | None = None
    delete_local_data: bool | None = None
    ignore_daemon_sets: bool = True
    disable_eviction: bool = False
    grace_seconds: int | None = None
    skip_wait_for_delete: timedelta | None = None  # how long past its deletion deadline a pod is waited for
    keep: bool = False  # the instance stays in service, and its node cordoned, once the pods have left
    # the cause is a disruption run, so that `safe-to-evict: "true"` lifts the policy's refusals; each step reads it
    # from the record's causes, so it is not kept
    voluntary: bool = field(metadata=APART, default=False)
    # as `terminationGracePeriod` sets one; the table keeps it with the cause that brings it
    deadline: datetime | None = field(metadata=APART, default=None)


BY_POLICY = DrainOptions()  # a call without flags


class RebootBy(StrEnum):
    """Callers of a reboot. `ec2`: its scheduled event reboots the instance; `group`: its Auto Scaling group does, to
    replace its root volume. The run waits for either.
    """

    LEEWARD = "leeward"
    EC2 = "ec2"
    GROUP = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboot:
    """Reboot that a cause asks for. `condition`, `status`: the Node's condition that it is to end, empty if none is."""

    by: RebootBy
    condition: str = ""
    status: str = ""


def drain_begins(reboot: datetime, drain: timedelta) -> datetime:
    """Return when the drain begins for a reboot that EC2 makes: `drain`, the longest that it may take, and some minutes
    before that. A node that is drained earlier serves nothing in between.
    """
    return reboot - drain - AHEAD


def reboots_of_a_day(reboots: Iterable[datetime], now: datetime) -> int:
    """Return the number of reboots within the last day."""
    return sum(now - at < DAY for at in reboots)


class CauseKind(StrEnum):
    """Causes of a termination. The first eight come from messages, `manual` from a manual start, `surplus` from a
    surge instance that is still to be offset (docs/designs/capacity-ledger.md), `upgrade` from its group's upgrade,
    `expired` to `underutilized` from disruption runs, by their methods; `unhealthy` and `node_deleted` from the
    minute reconciler, because no event reports either; `evacuation` from a zone that an operator evacuates. `other`
    is a kind that a newer version has written: it terminates the node like any cause, without urgency.
    """

    SPOT_INTERRUPTION = "spot_interruption"
    REBALANCE_RECOMMENDATION = "rebalance_recommendation"
    SCHEDULED_CHANGE = "scheduled_change"
    CAPACITY_RESERVATION = "capacity_reservation"
    CAPACITY_BLOCK = "capacity_block"
    STATE_CHANGE = "state_change"
    ASG_TERMINATE = "asg_terminate"
    REPLACE_ROOT_VOLUME = "replace_root_volume"
    MANUAL = "manual"
    SURPLUS = "surplus"
    UPGRADE = "upgrade"
    EXPIRED = "expired"
    DRIFTED = "drifted"
    EMPTY = "empty"
    UNDERUTILIZED = "underutilized"
    UNHEALTHY = "unhealthy"
    NODE_DELETED = "node_deleted"
    EVACUATION = "evacuation"
    OTHER = "other"

    @classmethod
    def _missing_(cls, _: object) -> CauseKind:
        """Return `other` for a newer version's kind: the node is terminated, not held until the record expires."""
        return cls.OTHER


VOLUNTARY = (CauseKind.EXPIRED, CauseKind.DRIFTED, CauseKind.EMPTY, CauseKind.UNDERUTILIZED)  # of disruption runs


class Status(StrEnum):
    """Status of a record. `open`: an execution must finish it. `closed`: the instance is gone or back in service."""

    OPEN = "open"
    CLOSED = "closed"


class Outcome(StrEnum):
    """Outcomes of a closed record."""

    TERMINATED = "terminated"
    KEPT = "kept"  # its pods have left, and that was all that was asked for: the node stays cordoned
    REBOOTED = "rebooted"  # it is back in service after a reboot
    RETURNED_TO_SERVICE = "returned-to-service"  # PodEvictionFailure: the node is back in service


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Reason to terminate."""

    id: str = field(metadata=APART)  # the same on every redelivery of its event, so that a duplicate adds nothing
    kind: CauseKind
    at: datetime
    # when EC2 takes the instance, when the hook times out, or the `--deadline` of a manual drain, by kind; the
    # functions below say which of them count
    deadline: datetime | None = None
    reason: str = ""
    hook: str | None = None  # the lifecycle hook that waits for Leeward, if one brought this cause
    hook_ours: bool = False
    hook_default: HookResult | None = None  # result of the hook when it times out, None if not known
    force: bool = False  # pods that do not leave in time are deleted, whatever the policy says
    options: DrainOptions | None = None  # flags of a manual drain
    # of a state change, EC2's state when it was asked about the message; empty if it was not asked, or reported
    # another
    state: str = ""
    surge: SurgeInstance | None = None  # of a surplus, the surge instance that this termination has to offset
    reboot: Reboot | None = None  # the instance stays, and is rebooted once its pods have left
    # number of instances that EC2 takes and that were claimed within about a minute, this one among them; 0 where
    # EC2 takes none
    together: int = 0
    awaits_launch: bool = False  # of an upgrade that requests the offset of a launch later: the empty node waits for it
    withdrawn: bool = False  # AWS or its operator has taken it back: it decides nothing, and may join again

    @property
    def keeps(self) -> bool:
        """True if it asks for a drain alone."""
        return self.options is not None and self.options.keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Instance that terminates, as it was when it was claimed. `policy`: the name of the one that selected its group,
    empty if the claim did not read it. `state`: EC2's state then, empty if EC2 was not asked; `networks` as
    `model.instance.Instance` has them.
    """

    instance: str
    cluster: str
    group: str | None
    zone: str
    subnet: str
    instance_type: str
    capacity_type: CapacityType
    node: str | None = None  # name of its Node, None if it never joined
    policy: str = ""
    state: str = ""
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Result of the request for another instance. `launched` empty: none of ours, `reason` says why; else it says why
    it is where it is. `no_capacity`: refused for lack of capacity in that place alone, another may have it. `refused`:
    LaunchInstances does not serve the group, in any place (`model.launch_refusal`).
    """

    launched: tuple[str, ...] = ()
    reason: str = ""
    subnet: str = ""
    no_capacity: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOption:
    """Subnet that was chosen for the replacement, the sentence that says why, the free addresses that it needs."""

    subnet: str
    zone: str
    why: str
    ips: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """Places in which the replacement may be launched: `options` still open, the first is the one being tried.

    Written before the first try and whenever one was refused, so that a step that is run again tries the same subnet
    with the same client token. `refused`: LaunchInstances' refusals so far. `nowhere`: why no option is left.
    """

    options: tuple[LaunchOption, ...] = ()
    refused: tuple[str, ...] = ()
    nowhere: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationRecord:
    """Claim of one deployment on an instance. An open record without causes is cancelled."""

    subject: Subject
    status: Status
    attempt: int  # grows with every new execution
    version: int  # grows with every cause that joins
    causes: tuple[Cause, ...] = field(metadata=APART)  # those of the present period, and nothing else decides
    # By name: claimed, tainted, replacement, draining, until (when its drain gives up), drained, terminating,
    # terminated, removed, closed, retry; `evicting`: its load balancers have deregistered it, or were not waited
    # for; `begun`: the first drain of the period, from which a terminationGracePeriod counts; `held`: first
    # heartbeat; `moved`: when a pod of it last left or was terminating; `unreached`: when the load balancers' API
    # was first not reached; `refused`: when AWS did not take the requests that come before the drain; `answered`:
    # our hooks were completed.
    times: Mapping[str, datetime] = field(default_factory=dict)
    replacement: Replacement | None = None  # outlives its period while it is not settled in `offsets`
    plan: LaunchPlan | None = None
    # surge instance that this termination had to offset -> how that was settled, decided once: by its own end, or
    # by that of another instance
    offsets: Mapping[SurgeInstance, Settlement] = field(metadata=APART, default_factory=dict)
    blocked_by: tuple[str, ...] = ()
    pods_evicted: int = field(metadata=named("evicted"), default=0)
    heartbeats: Mapping[str, datetime] = field(default_factory=dict)  # hook name -> last heartbeat
    token: str | None = None
    outcome: Outcome | None = None
    failure: str = ""  # why the present attempt failed
    # Deployment (namespace/name) that has a second replica for now -> whether that is known to be so, or only about
    # to be
    surges: Mapping[str, bool] = field(default_factory=dict)
    period: int = 1  # grows whenever a closed record is opened again
    # of earlier periods, and those that were taken back: they identify duplicates and serve reports
    earlier_causes: tuple[Cause, ...] = field(metadata=APART, default=())
    surge_period: int = 1  # the period in which `plan` and `replacement` were made
    deployment: str = ""
    names_taken: int = 0  # attempts that were skipped, because a closed execution of an earlier record had the name
    seen: Seen | None = None  # last observation of EC2 and Auto Scaling, in this period
    boot: str = ""  # boot id of the node when its drain began, where the period asks for a reboot
    # boot id before a reboot that Leeward has requested -> when; no boot is ended twice, and the reboots of a day
    # are counted across periods
    reboots: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def instance(self) -> str:
        """EC2 instance id, the record's key."""
        return self.subject.instance

    @property
    def forced(self) -> bool:
        """True if one of its causes asks for force."""
        return any(cause.force for cause in self.causes)

    @property
    def options(self) -> DrainOptions | None:
        """Flags that count: those of the last manual drain that gave any, with the earliest deadline of all."""
        given = [cause.options for cause in self.causes if cause.options is not None]
        manual = (cause.deadline for cause in self.causes if cause.kind is CauseKind.MANUAL)
        deadline = min((moment for moment in manual if moment is not None), default=None)
        if deadline is not None:
            return replace(given[-1] if given else BY_POLICY, deadline=deadline)
        return given[-1] if given else None

    @property
    def keeps(self) -> bool:
        """True if a cause asks for a drain alone and none for more than a reboot: the instance stays, cordoned."""
        return any(cause.keeps for cause in self.causes) and all(
            cause.keeps or cause.reboot is not None for cause in self.causes
        )

    @property
    def awaits_launch(self) -> bool:
        """True if an upgrade alone requests the termination, and has still to request which launch it offsets."""
        requested = all(cause.awaits_launch for cause in self.causes)
        return requested and bool(self.causes)

    @property
    def reboot(self) -> Reboot | None:
        """Reboot that the last cause asks for, None if another cause asks for anything else."""
        wanted = [cause.reboot for cause in self.causes if cause.reboot is not None]
        return wanted[-1] if wanted and len(wanted) == len(self.causes) else None

    @property
    def rebooting(self) -> tuple[str, datetime] | None:
        """Boot id before the reboot that was requested in this period, and when; None before that."""
        began = self.times.get("claimed")
        requested = ((at, boot) for boot, at in self.reboots.items() if began is None or at >= began)
        last = max(requested, default=None)
        return None if last is None else (last[1], last[0])

    @property
    def all_causes(self) -> tuple[Cause, ...]:
        """Causes of all periods, oldest first: for duplicates, the ledger and reports, never for a decision."""
        return (*self.earlier_causes, *self.causes)

    @property
    def launch_name(self) -> str:
        """Part of the client token of the launch for this instance. Each period in which one is made has another: the
        launch of an earlier period is settled, and this one is not.
        """
        return self.instance if self.surge_period == 1 else f"{self.instance}-{self.surge_period}"

    @property
    def surge(self) -> SurgeInstance | None:
        """Surge instance that was launched for this one."""
        if self.replacement is None or not self.replacement.launched:
            return None
        return SurgeInstance(owner=SurgeOwner.TERMINATION, instance=self.replacement.launched[0])

    @property
    def surge_settled(self) -> bool:
        """True if nothing is left to offset of the launch that was made, or may have been made, for this instance."""
        return not self.launching and (self.surge is None or self.surge in self.offsets)

    def moved_to(self, subject: Subject) -> Subject | None:
        """Return the subject where the instance has moved to the group that `subject` names, None where it has not:
        hooks are answered to the group that holds it. A launch or an offset counts in the group in which it was made.
        """
        same = (subject.cluster, subject.group) == (self.subject.cluster, self.subject.group)
        if same or subject.group is None or not self.surge_settled or any(cause.surge for cause in self.causes):
            return None
        return replace(subject, node=subject.node or self.subject.node)

    @property
    def launching(self) -> bool:
        """True if a launch may have been made whose outcome is not recorded."""
        return self.replacement is None and self.plan is not None and bool(self.plan.options)

    @property
    def tries(self) -> int:
        """Number of executions that were started for the record: attempts whose name was taken are not among them."""
        return self.attempt - self.names_taken

    def has(self, *kinds: CauseKind) -> bool:
        """Return whether one of these kinds is among the causes of the present period."""
        return any(cause.kind in kinds for cause in self.causes)

    def knows(self, cause: str) -> bool:
        """Return whether a cause with this id has joined, in whatever period."""
        return any(known.id == cause and not known.withdrawn for known in self.all_causes)


def execution_name(instance: str, attempt: int) -> str:
    """Return the execution's name. Deterministic, so that every claimant and joiner starts the same execution (at most
    80 characters).
    """
    return f"{instance}-{attempt}"


ABRUPT = (CauseKind.SPOT_INTERRUPTION, CauseKind.CAPACITY_RESERVATION)  # two minutes after the warning
TAKEN = (*ABRUPT, CauseKind.CAPACITY_BLOCK)  # EC2 ends the instance at the deadline, whatever runs there


def taken_at(record: TerminationRecord, now: datetime) -> datetime | None:
    """Return when EC2 ends the instance by itself, None while no warning announces it. A warning that has not come true
    has no effect any more: it was replayed or forged, or EC2 has kept the instance.
    """
    moments = (cause.deadline for cause in record.causes if cause.kind in TAKEN and not _is_overdue(cause, now))
    return min((moment for moment in moments if moment is not None), default=None)


def is_abrupt(record: TerminationRecord, now: datetime) -> bool:
    """Return whether EC2 takes the instance within minutes, by a warning that may still come true."""
    return any(cause.kind in ABRUPT and not _is_overdue(cause, now) for cause in record.causes)


def _is_overdue(cause: Cause, now: datetime) -> bool:
    return cause.kind in ABRUPT and cause.deadline is not None and now - cause.deadline > OVERDUE


def maintenance(record: TerminationRecord, now: datetime) -> tuple[datetime, ...]:
    """Return the dates of maintenance that is still ahead, earliest first: of each Health event the one announced last.
    AWS moves maintenance, usually to a later date, and messages come in any order. Of two announced at once the earlier
    counts. A date that has passed has no effect any more.
    """
    latest: dict[str, tuple[datetime, datetime]] = {}  # event -> (when it was announced, date)
    for cause in record.causes:
        if cause.kind is CauseKind.SCHEDULED_CHANGE and cause.deadline is not None:
            event = cause.id.partition("#")[0]  # the event's ARN; communication, date and instance follow
            announced, date = latest.get(event, (cause.at, cause.deadline))
            if cause.at > announced or (cause.at == announced and cause.deadline < date):
                announced, date = cause.at, cause.deadline
            latest[event] = announced, date
    return tuple(sorted(date for _, date in latest.values() if date > now))


def detach_deadline(record: TerminationRecord, now: datetime) -> datetime | None:
    """Return when EC2 takes the instance: the earliest of its warnings and of the maintenance that is ahead."""
    dates = (taken_at(record, now), *maintenance(record, now))
    return min((moment for moment in dates if moment is not None), default=None)


def known_deadline(record: TerminationRecord, now: datetime) -> datetime | None:
    """Return the deadline shown to people: the detach deadline, or the earlier one that a manual drain has set."""
    manual = record.options.deadline if record.options else None
    return min((moment for moment in (detach_deadline(record, now), manual) if moment is not None), default=None)
