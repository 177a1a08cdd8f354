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
from leeward.upgrade.members import Target
from leeward.upgrade.surge.sizes import Strategy


class ControlRequest(StrEnum):
    """Request of the operator."""

    RUN = "run"
    PAUSE = "pause"
    ABORT = "abort"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRequest:
    """Request of the start: an image (id, alias or SSM parameter), a launch template version or a Kubernetes version,
    else the group's launch template as it stands. `overrides`: codes of blockers that shall not stop it. `automatic`:
    the image for which `update.auto` has started it.
    """

    image: str = ""
    template_version: str = ""
    kubernetes: str = ""
    force: bool = False
    overrides: tuple[str, ...] = ()
    automatic: str = ""

    @property
    def names_a_target(self) -> bool:
        """True if it names what the nodes shall become."""
        return bool(self.image or self.template_version or self.kubernetes or self.automatic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """New nodes that one call launches, all in one subnet."""

    zone: str
    subnet: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeNode:
    """New instance launched ahead whose offset is not settled. `zone`: the zone whose old nodes it replaces.
    `offset_by`: the instance whose termination is requested to offset it, None while there is none.
    """

    zone: str = ""
    offset_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedLaunch:
    """End of a new instance before an old node offset its launch: in which zone, when, and Auto Scaling's sentence."""

    zone: str
    at: datetime
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedHold:
    """Hold of an upgrade, for its notification: `kind`, a word of `control.Hold`; since when, why, and the moment at
    which it ends by itself, None where a person or a later event has to end it.
    """

    kind: str
    since: datetime
    why: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRecord:
    """One upgrade of one group. `desired`, `maximum`: the sizes before. `launched`: new nodes launched ahead, `gone`:
    old ones terminated with decrement, `finished`: old ones that are gone in whatever way, `started`: old ones whose
    drain has begun, `taken_back`: those of them whose termination was not requested after all, `failed`: ids of old
    instances (names of nodes do as well) whose drain has failed, once for each failure of this start, `reasons` why.
    `previous`: what a rollback returns to; `rolling_back`: that is under way. `canary_done`: when the last canary node
    was finished. `prepared`: the target is known, its version made; `pointed`: the group launches it, or others have
    changed that since; `pointed_at`: every version at which the upgrade has pointed the group; `own`: what the group
    launched before, None where that was the target.

    `surge`: the most new nodes that are not offset; `zones`: members in each zone at the start. `execution` holds the
    lease, the `attempt`th of this upgrade. `suspended`: Leeward has suspended AZRebalance; `raised_maximum`: it has
    raised MaxSize, to `raised_to` at the most, and after the end lowers it to `lowers_to`, unless that is 0. `checked`:
    pre-flight has been passed.

    The ledger: `ordered` calls have asked for launches; `orders` are those whose answer is not recorded yet (number ->
    order). `ahead`: new instances that are not offset yet; those that are offset or written off are removed.
    `under_way`: old instance whose termination is requested -> tag, part of the names of that request (see `cause_id`).
    `ended_early`: new instances that ended before an old node offset their launch, of this start; `taken`: instances
    that others took out with decrement, each of which has settled a launch; `owed`: how many more of these have still
    to settle one, which has to be launched first. `early`: old instances under way that started before the launch that
    they offset; it is assigned once it is made, to those first that have drained.
    `short`: subnets that lacked capacity at the last try, and zones without free addresses -> the message. `refusal`:
    why LaunchInstances does not serve this group; `wanted`: the desired size that was set instead. `others_scaled`:
    since when another writer has changed the group's size, so that the remaining nodes terminate without decrement;
    `others_seen`: the first observation of that. `proven`: since when a new node is Ready in each zone; those launched
    later are not waited for at the gate.
    `raised`: how many of the instances of a raised desired size have not come yet; `counted`: members at the new
    version that are none of these, because they were there before or have been counted since; `sized`: since when
    `desired` is what others want, None: `began`.
    `given_up`: new instances that never joined and whose termination is requested; they are not counted any more.
    `then`: groups whose upgrades follow this one, in order, to the same target as asked for.
    `update`: EKS' id of a managed group's update, `tries` those of this upgrade that have ended before it.
    `alarm`: why its alarms hold it, as last read, empty if they do not; `rang`: when one was last seen in ALARM.
    `phase_since`: when the present phase began; `why`: why it ended, in a sentence; `wait_key`: what is waited for, by
    which a step recognizes that it has moved; `awaited`: pods left on the nodes that are waited for, when that began.
    `requested_by`: who has made the last start or request, empty for `update.auto`; `hold`: why nothing new starts now;
    `stopped`: when its execution ended without a step that could record an end.
    """

    group: str
    target: Target
    strategy: Strategy
    desired: int
    maximum: int
    began: datetime
    cluster: str = ""
    version: int = 0
    previous: Target | None = None
    control: ControlRequest = ControlRequest.RUN
    launched: int = 0
    gone: int = 0
    finished: int = 0
    started: int = 0
    taken_back: int = 0
    failed: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    cordoned: bool = False
    canary_done: datetime | None = None
    ended: datetime | None = None
    error: str = ""
    warnings: tuple[str, ...] = field(default=())
    surge: int = 0
    zones: Mapping[str, int] = field(default_factory=dict)
    request: UpgradeRequest = field(default_factory=UpgradeRequest)
    execution: str = ""
    attempt: int = 0
    rolling_back: bool = False
    prepared: bool = False
    pointed: bool = False
    pointed_at: tuple[LaunchTemplateRef, ...] = ()
    own: LaunchTemplateRef | None = None
    checked: bool = False
    suspended: bool = False
    raised_maximum: bool = False
    raised_to: int = 0
    lowers_to: int = 0
    ordered: int = 0
    orders: Mapping[str, Order] = field(default_factory=dict)
    ahead: Mapping[str, SurgeNode] = field(default_factory=dict)
    under_way: Mapping[str, str] = field(default_factory=dict)
    ended_early: Mapping[str, EndedLaunch] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    owed: int = 0
    early: tuple[str, ...] = ()
    others_seen: datetime | None = None
    others_scaled: datetime | None = None
    short: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""
    wanted: int = 0
    raised: int = 0
    counted: tuple[str, ...] = ()
    sized: datetime | None = None
    update: str = ""
    tries: int = 0
    given_up: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    proven: datetime | None = None
    phase_since: datetime | None = None
    why: str = ""
    wait_key: str = ""
    alarm: str = ""
    rang: datetime | None = None
    awaited: int = 0
    requested_by: str = ""
    hold: NotedHold | None = None
    stopped: datetime | None = None

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
