"""The record of an upgrade, from which a stopped, failed or timed-out execution that is started again resumes where
it was.

The record is the lease as well: one for each group. Everything else is read from the group and the cluster at each
step. Writes are conditional on `version`, and come before the calls that they announce."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from leeward.model.capacity import SurgeInstance, SurgeOwner
from leeward.model.launch import LaunchTemplateRef
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.surge.sizes import Strategy


class ControlRequest(StrEnum):
    """Request of the operator."""

    RUN = "run"
    PAUSE = "pause"
    ABORT = "abort"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRequest:
    """Request of the start: at most one target, else the launch template of the group as it stands."""

    image: str = ""  # id, alias or SSM parameter
    template_version: str = ""
    kubernetes: str = ""  # version
    force: bool = False  # pods that stay are deleted
    overrides: tuple[str, ...] = ()  # codes of blockers that shall not stop it
    automatic: str = ""  # image for which `update.auto` has started it

    @property
    def names_a_target(self) -> bool:
        """True if it names what the nodes shall become."""
        return bool(self.image or self.template_version or self.kubernetes or self.automatic)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """New nodes that one call launches, all in one subnet."""

    zone: str
    subnet: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLaunch:
    """New instance launched ahead whose offset is not settled."""

    zone: str = ""  # whose old nodes it replaces
    offset_by: str | None = None  # instance whose termination is requested to offset it, None while there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedLaunch:
    """End of a new instance before an old node offset its launch."""

    zone: str
    at: datetime
    cause: str  # Auto Scaling's sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedHold:
    """Hold of an upgrade, for its notification."""

    kind: str  # a word of `control.Hold`
    since: datetime
    why: str
    until: datetime | None = None  # when it ends by itself; None: a person or a later event has to end it


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRecord:
    """One upgrade of one group."""

    group: str
    target: UpgradeTarget
    strategy: Strategy
    desired: int  # desired size before
    maximum: int  # MaxSize as its owner chose it
    began: datetime
    cluster: str = ""
    version: int = 0  # of the item in the table
    previous: UpgradeTarget | None = None  # what a rollback returns to
    control: ControlRequest = ControlRequest.RUN
    # counts
    launched: int = 0  # new nodes launched ahead
    gone: int = 0  # old nodes terminated with decrement
    finished: int = 0  # old nodes that are gone in whatever way
    started: int = 0  # old nodes whose drain has begun
    taken_back: int = 0  # those of them whose termination was not requested after all
    # failures of this start
    failed: tuple[str, ...] = ()  # old instances (names of nodes do as well) whose drain has failed, once for each time
    reasons: Mapping[str, str] = field(default_factory=dict)  # why
    # phases
    cordoned: bool = False  # the gate has opened
    canary_done: datetime | None = None  # when the last canary node was finished
    ended: datetime | None = None
    error: str = ""
    warnings: tuple[str, ...] = field(default=())
    surge: int = 0  # the most new nodes that are not offset
    zones: Mapping[str, int] = field(default_factory=dict)  # members in each zone at the start
    request: UpgradeRequest = field(default_factory=UpgradeRequest)
    execution: str = ""  # holds the lease
    attempt: int = 0  # number of that execution in this upgrade
    rolling_back: bool = False
    prepared: bool = False  # the target is known, its version made
    pointed: bool = False  # the group launches the target, or others have changed that since
    pointed_at: tuple[LaunchTemplateRef, ...] = ()  # every version at which the upgrade has pointed the group
    own: LaunchTemplateRef | None = None  # what the group launched before, None where that was the target
    checked: bool = False  # pre-flight has been passed
    # changes of the group that are undone at the end
    suspended: bool = False  # Leeward has suspended AZRebalance
    # ledger
    ordered: int = 0  # calls that have asked for launches
    orders: Mapping[str, LaunchOrder] = field(default_factory=dict)  # those whose answer is not recorded yet, by number
    ahead: Mapping[str, OpenLaunch] = field(default_factory=dict)  # new instances; offset or written off: removed
    under_way: Mapping[str, str] = field(default_factory=dict)  # old instance to terminate -> tag (see `cause_id`)
    ended_early: Mapping[str, EndedLaunch] = field(default_factory=dict)  # new instances, of this start
    taken: tuple[str, ...] = ()  # instances that others took out with decrement, each of which has settled a launch
    owed: int = 0  # how many more of these have still to settle a launch, which has to be made first
    early: tuple[
        str, ...
    ] = ()  # old instances that started before the launch that they offset, which is assigned later
    others_seen: datetime | None = None  # first observation that another writer has changed the group's size
    others_scaled: datetime | None = None  # since when: the remaining nodes terminate without decrement
    short: Mapping[str, str] = field(default_factory=dict)  # subnet without capacity, zone without addresses -> message
    refusal: str = ""  # why LaunchInstances does not serve this group
    wanted: int = 0  # desired size that was set instead
    raised: int = 0  # instances of that size that have not come yet
    counted: tuple[str, ...] = ()  # members at the new version that are none of these: there before, or counted since
    sized: datetime | None = None  # since when `desired` is what others want, None: `began`
    # managed node group
    update: str = ""  # EKS' id of its update
    tries: int = 0  # updates of this upgrade that have ended before it
    given_up: tuple[str, ...] = ()  # new instances that never joined; their termination is requested
    then: tuple[str, ...] = ()  # groups whose upgrades follow this one, in order, to the same target as asked for
    proven: datetime | None = None  # since when a new node is Ready in each zone; the gate waits for no later ones
    # present phase
    phase_since: datetime | None = None
    why: str = ""  # sentence why it ended
    wait_key: str = ""  # what is waited for, by which a step recognizes that it has moved
    alarm: str = ""  # why its alarms hold it, as last read, empty if they do not
    rang: datetime | None = None  # when one was last seen in ALARM
    awaited: int = 0  # pods left on the nodes that are waited for, when that began
    requested_by: str = ""  # who has made the last start or request, empty for `update.auto`
    hold: NotedHold | None = None  # why nothing new starts now
    stopped: datetime | None = None  # when its execution ended without a step that could record an end

    @property
    def runs(self) -> bool:
        """True between a start and its end, which a step or the end of its execution records."""
        return self.ended is None and self.stopped is None

    @property
    def resumable(self) -> bool:
        """True if it has not ended well: the next start resumes where it was."""
        return self.ended is None or bool(self.error)

    @property
    def alive(self) -> int:
        """Number of new nodes launched ahead and not offset, including those of open orders."""
        return len(self.ahead) + sum(order.count for order in self.orders.values())

    @property
    def explained(self) -> int:
        """Desired size of the group where no other actor has changed it since the sizes were measured."""
        return self.desired + len(self.ahead) + self.raised

    @property
    def unassigned(self) -> tuple[str, ...]:
        """New instances that no termination is requested to offset."""
        return tuple(new for new, surge in self.ahead.items() if surge.offset_by is None)

    @property
    def assigned(self) -> Mapping[str, str]:
        """New instance -> the instance whose termination is requested to offset it."""
        return {new: surge.offset_by for new, surge in self.ahead.items() if surge.offset_by is not None}

    def with_offsets(self, offsets: Mapping[str, str | None]) -> "UpgradeRecord":
        """Return the record in which these new instances are offset by these instances, or by none yet."""
        changed = {new: replace(self.ahead[new], offset_by=by) for new, by in offsets.items()}
        return replace(self, ahead={**self.ahead, **changed})

    @property
    def in_sizes(self) -> bool:
        """True if launches or decrements of this upgrade are in the group's sizes, not changes of others alone."""
        return bool(self.ahead or self.orders or self.raised or self.under_way)

    @property
    def measured(self) -> datetime:
        """Moment since which changes of the group's size are by others."""
        return self.sized or self.began

    @property
    def stamp(self) -> str:
        """Part of names and tokens that distinguishes this upgrade from every other one of the group."""
        return f"{self.began:%Y%m%dT%H%M%S}"


def tag_for(record: UpgradeRecord, number: int) -> str:
    """Return the tag of the `number`th termination request of this upgrade: never one that was used before."""
    return f"{record.stamp}.{number}"


def cause_id(record: UpgradeRecord, old: str) -> str:
    """Return the id of the cause with which the termination of an old instance that is under way was claimed."""
    return f"upgrade#{record.group}#{record.under_way[old]}"


def surge_of(record: UpgradeRecord, new: str, old: str) -> SurgeInstance:
    """Return the entry of a new instance in the ledger of an old one under way: each request is another entry."""
    return SurgeInstance(owner=SurgeOwner.UPGRADE, instance=new, request=record.under_way[old])


def launch_token(record: UpgradeRecord, number: str) -> str:
    """Return the client token of one order (at most 64 characters): a repeated call launches once."""
    return f"leeward-upgrade-{_digest(record)}-{number}"


def version_token(record: UpgradeRecord, image: str) -> str:
    """Return the client token of the launch template version that a start makes: a repeated step makes one. The next
    start has another, because it may copy another version, and EC2 answers the same token with a version that an owner
    may have deleted since.
    """
    return f"leeward-{record.stamp}-{record.attempt}-{image}"


def update_token(record: UpgradeRecord) -> str:
    """Return the client token of one update by EKS: a repeated call starts one; the next of this
    upgrade has another.
    """
    return f"leeward-update-{_digest(record)}-{record.tries}"


def _digest(record: UpgradeRecord) -> str:
    return sha256(f"{record.group}/{record.stamp}".encode()).hexdigest()[:16]
