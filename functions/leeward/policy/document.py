"""Shape of `kind: NodePolicy` and `kind: ClusterSettings`, with every default.

Field names are the document's, in Python's spelling; durations are timedeltas, `None` stands for `Never`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from math import ceil

from leeward.model.group import GroupFacts
from leeward.model.pause import NOT_PAUSED, Pauses
from leeward.policy.repair import DEFAULT_REPAIR, RepairPolicy

SHORTEST_TIMEOUT = 300  # seconds: the drain heartbeats at half of it; a lost event costs a reconciler run, not the pods
MOST_TIMEOUTS = 100  # Auto Scaling ends a hook after so many time-outs, and after 48 hours
LARGEST_SET = 350_000  # bytes of all documents together: an item of the table holds 400 KB, names and caller included


class Rebalance(StrEnum):
    """Response to a rebalance recommendation."""

    IGNORE = "ignore"
    CORDON = "cordon"
    REPLACE = "replace"


class DisruptionReason(StrEnum):
    """Reason of a disruption, as budgets name it. `Upgrade` is limited only by budgets that name it."""

    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNDERUTILIZED = "Underutilized"
    EXPIRED = "Expired"
    UPGRADE = "Upgrade"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSelector:
    """Selector of groups. Groups are OR'ed globs, tags AND'ed (empty value: the key alone), both AND'ed."""

    groups: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def selects(self, group: str, tags: Mapping[str, str]) -> bool:
        """Return whether the group matches by its name and its tags (docs/policy.md)."""
        return self.names(group) and all(key in tags and value in {"", tags[key]} for key, value in self.tags.items())

    def names(self, group: str) -> bool:
        """Return whether its group globs match, or it has none."""
        return not self.groups or any(group == pattern or fnmatchcase(group, pattern) for pattern in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Heartbeat of hooks. `interval` None is `auto` (half of the hook's own time-out)."""

    interval: timedelta | None = None
    until: timedelta = timedelta(hours=48)

    @property
    def timeout(self) -> timedelta:
        """HeartbeatTimeout of the hooks that sync puts on groups, in whole seconds. Auto Scaling ends a hook after a
        hundred time-outs, in spite of heartbeats: it has to be long enough that the group waits for `until`.
        """
        return timedelta(seconds=max(SHORTEST_TIMEOUT, ceil(self.until.total_seconds() / MOST_TIMEOUTS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionPolicy:
    """Policy for involuntary events."""

    enabled: bool = True
    rebalance: Rebalance = Rebalance.REPLACE
    heartbeat: Heartbeat = Heartbeat()
    hooks: tuple[str, ...] = ()  # existing hooks that Leeward answers
    waits_for_reboot: bool = False  # systemReboot: wait; a node that EC2 is going to reboot is not replaced
    drain_block_before: timedelta = timedelta(minutes=10)  # before EC2 terminates a Capacity Block's instances


SETTLES = timedelta(seconds=60)  # default of drain.settle, and the most that `auto` waits


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPolicy:
    """Drain of pods. The last three booleans are the document's evict|refuse, delete|refuse, evict|surge."""

    timeout: timedelta = timedelta(minutes=15)
    force: bool = False
    termination_grace_period: timedelta | None = None
    settle: timedelta | None = SETTLES  # None: auto, decided for each node (`termination.settling`)
    deregistration_timeout: timedelta = timedelta(minutes=5)
    volume_detach_timeout: timedelta = timedelta(minutes=6)
    evict_unmanaged: bool = True
    delete_local_data: bool = True
    surge_single_replicas: bool = False

    @property
    def longest(self) -> timedelta:
        """Longest time that a drain may take for its pods."""
        return max(self.timeout, self.termination_grace_period or self.timeout)

    @property
    def longest_settle(self) -> timedelta:
        """Longest time that an empty node may stay."""
        return SETTLES if self.settle is None else self.settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Recurring span of time: five-field cron `schedule` in `time_zone` (IANA), lasting `duration`."""

    schedule: str
    duration: timedelta
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """First `nodes` of an upgrade, then `bake`, during which no other node starts."""

    nodes: int = 0
    bake: timedelta = timedelta(minutes=10)


class OnAlarm(StrEnum):
    """Effect of an alarm in ALARM on an upgrade."""

    HOLD = "hold"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePolicy:
    """Node group upgrades. Exactly one of the two maxima of unavailable nodes is set."""

    max_unavailable: int | None = 1
    max_unavailable_percentage: int | None = None
    strategy: str = "DEFAULT"  # DEFAULT | MINIMAL | INCREMENTAL
    order: str = "waves"  # waves | random | zone | age
    max_surge: int | None = None  # new nodes beyond the old size at a time; None: as the strategy has it
    max_surge_percent: bool = False  # `max_surge` is in percent of the old size, rounded up
    terminate: str = "last"  # last | first
    canary: Canary = Canary()
    alarms: tuple[str, ...] = ()  # CloudWatch alarms, which hold the start of further nodes
    on_alarm: OnAlarm = OnAlarm.HOLD
    auto: timedelta | None = None  # an upgrade starts by itself once a newer image is known for so long
    windows: tuple[Window, ...] = ()
    image_owners: tuple[str, ...] = ()  # accounts whose images an upgrade may launch, beside this one and AWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Number of nodes that may be disrupted at once."""

    nodes: int = 10
    percent: bool = True  # `nodes` is a share, rounded up, else a count
    window: Window | None = None
    reasons: tuple[str, ...] = ()  # empty: Empty, Drifted, Underutilized and Expired, not Upgrade
    zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequirement:
    """One node requirement, Kubernetes' operators and Karpenter's minValues."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredTaint:
    """Taint that nodes of the group should carry."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredNode:
    """Node properties with which drift compares nodes."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[DesiredTaint, ...] = ()
    startup_taints: tuple[DesiredTaint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionPolicy:
    """Voluntary disruption."""

    present: bool = True  # False where the document has no such section, which switches all of it on
    consolidation_policy: str = "WhenEmptyOrUnderutilized"  # or WhenEmpty | Balanced | Never
    consolidate_after: timedelta | None = timedelta(minutes=5)
    expire_after: timedelta | None = None
    expire_jitter: int = 0  # percent of expire_after, up and down, by which the expiry of nodes is spread
    drift: bool = True
    savings_per_hour: float = 0.01  # dollars
    savings_percent: float = 5  # 0-100
    cooldown: timedelta = timedelta(minutes=10)
    alarms: tuple[str, ...] = ()  # CloudWatch alarms, which hold every command
    spot_to_spot: bool = False
    spot_to_spot_minimum_types: int = 15
    architecture: str = "same"  # or any: pods without a selector may be planned onto another CPU architecture
    budgets: tuple[Budget, ...] = (Budget(),)
    do_not_disrupt: bool = False


NO_DISRUPTION = DisruptionPolicy(present=False, consolidation_policy="Never", drift=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePolicy:
    """Source of a node template's labels and taints when both sources name a key."""

    precedence: str = "asg-tags"  # asg-tags | eks-api
    ttl: timedelta = timedelta(seconds=60)


class OnShift(StrEnum):
    """Action on a zonal shift. `hold`: nothing is launched or voluntarily removed in the zone."""

    HOLD = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePolicy:
    """One policy document."""

    name: str
    selector: GroupSelector
    interruption: InterruptionPolicy = InterruptionPolicy()
    drain: DrainPolicy = DrainPolicy()
    update: UpdatePolicy = UpdatePolicy()
    requirements: tuple[NodeRequirement, ...] = ()
    node: DesiredNode = DesiredNode()
    disruption: DisruptionPolicy = DisruptionPolicy()
    finalizer: bool = False
    repair: RepairPolicy = DEFAULT_REPAIR
    cni: Mapping[str, str] = field(default_factory=dict)
    template: TemplatePolicy = TemplatePolicy()
    on_shift: OnShift = OnShift.HOLD


DEFAULT_HEADER = "Leeward-Secret"


class WebhookFormat(StrEnum):
    """Shape of the webhook's calls."""

    JSON = "json"  # the event's detail
    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Receiver of a cluster's events. The value of `secret_arn`, in its version `secret_version` (None: the current one
    at the deployment), is the value of `header`, in `format` teams of the URL's parameter `sig`, in pagerduty of the
    body's `routing_key`; None sends no secret.
    """

    url: str
    format: WebhookFormat = WebhookFormat.JSON
    secret_arn: str | None = None
    secret_version: str | None = None
    header: str = DEFAULT_HEADER


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Switches of one cluster; they win over every policy."""

    name: str
    interruption: bool = True
    drift: bool = True
    consolidation: bool = True
    expiration: bool = True
    emptiness: bool = True
    freeze: tuple[Window, ...] = ()
    webhook: Webhook | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPolicies:
    """Settings and policies of one cluster, policies in their order, and the pauses in force there."""

    settings: ClusterSettings
    policies: tuple[NodePolicy, ...] = ()
    # version of the set that `leeward policy apply` has written, 0 where the deployment names the policies or none are
    applied: int = 0
    pauses: Pauses = NOT_PAUSED

    def policy_of(self, group: GroupFacts) -> NodePolicy | None:
        """Return the policy of the group; None: it is not selected, Leeward leaves it alone."""
        return self.selecting(group.name, group.tags)

    def selecting(self, group: str, tags: Mapping[str, str]) -> NodePolicy | None:
        """Return the first policy whose selector matches the group by its name and its tags."""
        return next((policy for policy in self.policies if policy.selector.selects(group, tags)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPolicies:
    """Applied policies of a cluster."""

    cluster: str
    version: int = 0  # 0 where none was ever applied
    documents: tuple[tuple[str, str], ...] = ()  # (`NN-NAME`, canonical JSON) in the order in which policies are tried
    by: str = ""  # ARN of the caller
    at: datetime | None = None

    @property
    def size(self) -> int:
        """Bytes of all documents."""
        return sum(len(text.encode()) for _, text in self.documents)
