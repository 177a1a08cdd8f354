"""EC2 and Auto Scaling as data: instances, groups, waiting lifecycle actions. `fleet.py` runs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from leeward.model import well_known
from leeward.model.group import LAUNCHING, TERMINATING, Group, GroupInstance, HookResult, LifecycleHook
from leeward.model.instance import CapacityType, Instance
from leeward.model.launch import LaunchSource, LaunchTemplateRef, Override
from simulation.aws.activities import History
from simulation.aws.books import Book
from simulation.aws.templates import PROPAGATED, SimTemplate, launched_look, template_of
from simulation.timeline import Entry

PENDING, PENDING_WAIT, PENDING_PROCEED = "Pending", "Pending:Wait", "Pending:Proceed"
IN_SERVICE, STANDBY, WARM = "InService", "Standby", "Warmed:Stopped"
LEAVING, LEAVING_WAIT, PROCEEDING = "Terminating", "Terminating:Wait", "Terminating:Proceed"


class Plan(Protocol):
    """Description of one group of a fleet."""

    @property
    def name(self) -> str: ...
    @property
    def zones(self) -> Sequence[str]: ...
    @property
    def spot(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def maximum(self) -> int: ...
    @property
    def capacity_rebalance(self) -> bool: ...
    @property
    def instance_type(self) -> str: ...
    @property
    def foreign_hook(self) -> bool: ...
    @property
    def selected(self) -> bool: ...


@dataclass(slots=True, kw_only=True)
class SimInstance:
    """One EC2 instance. `lifecycle` None: no group holds it. `joined`: its Node is (or was) in the cluster."""

    id: str
    group: str
    zone: str
    type: str
    spot: bool
    tags: Mapping[str, str]
    launched: float
    version: str = "1"  # of its group's launch template
    image: str = ""
    state: str = "pending"
    lifecycle: str | None = PENDING
    joined: bool = False
    protected: bool = False  # from scale-in
    returns: bool = False  # to its group's warm pool, once it has left the group
    called: str = ""  # the name of its Node where that is not its own
    ended_at: float | None = None
    direct: bool = False  # EC2 or its owner ended it without asking the group
    reservation: str = ""  # capacity reservation that it was launched into
    impaired: float | None = None  # time since which its system status check fails
    renamed: str = ""  # by its boot script
    _reported: GroupInstance | None = None

    @property
    def leaving(self) -> bool:
        """True if its group is terminating it, or has."""
        return self.lifecycle is None or self.lifecycle.startswith(LEAVING)

    @property
    def gone(self) -> bool:
        """True if it has stopped or is shutting down: nothing runs there any more."""
        return self.state in {"stopped", "shutting-down", "terminated"}

    @property
    def node(self) -> str:
        """Name of its Node."""
        return self.called or f"node-{self.id}"

    def as_member(self) -> GroupInstance:
        """Return the instance as its group describes it. The answer is cached: a large group is described often, and
        few of its members have changed since.
        """
        lifecycle = self.lifecycle or ""
        if self._reported is None or self._reported.lifecycle != lifecycle:
            template = _template(self.group, self.version)
            self._reported = GroupInstance(
                id=self.id,
                zone=self.zone,
                lifecycle=lifecycle,
                type=self.type,
                template=template,
                protected=self.protected,
            )
        return self._reported

    def described(self) -> Instance:
        """Return the instance as DescribeInstances describes it."""
        return Instance(
            id=self.id,
            state=self.state,
            type=self.type,
            zone=self.zone,
            subnet=subnet_of(self.zone),
            capacity_type=CapacityType.SPOT if self.spot else CapacityType.ON_DEMAND,
            tags=self.tags,
            image=self.image,
            launched=datetime.fromtimestamp(self.launched, UTC),
            reservation=self.reservation,
            look=launched_look(self.renamed),
        )


@dataclass(slots=True, kw_only=True)
class Waiting:
    """Lifecycle action that waits for its answer."""

    hook: LifecycleHook
    default: HookResult
    instance: str
    token: str
    since: float
    timer: Entry | None = None


@dataclass(slots=True, kw_only=True)
class SimGroup:
    """One Auto Scaling group. Sizes change; `members` are instance ids in the order of launch. `replacing`: old -> new
    of CapacityRebalance. `version`: of the template, a number; `postponed`: instance -> why it is terminated once
    Terminate is resumed.
    """

    plan: Plan
    tags: Mapping[str, str]
    desired: int
    maximum: int
    template: SimTemplate
    version: str = "1"
    minimum: int = 0
    renames: str = ""  # name that the boot script of its instances gives them
    registers: Mapping[str, Any] = field(default_factory=dict)  # fields of its Nodes that no template names
    user_data: str = ""  # of every version of its template, in base64
    hooks: dict[str, tuple[LifecycleHook, HookResult]] = field(default_factory=dict)
    members: dict[str, SimInstance] = field(default_factory=dict)
    boots: tuple[float, float] = (15, 40)  # seconds from the launch until it runs, the least and the most
    joins: tuple[float, float] = (10, 30)  # and from then until its node joins
    ends: tuple[float, float] = (10, 40)  # from shutting-down until it is terminated
    replacing: dict[str, str] = field(default_factory=dict)
    suspended: set[str] = field(default_factory=set)
    postponed: dict[str, str] = field(default_factory=dict)
    history: History = field(default_factory=History)
    book: Book = field(default_factory=Book)
    overrides: tuple[Override, ...] = ()  # of a mixed instances policy; members take their types by turns
    next_zone: str = ""  # in which it launches next, where it may choose; empty for the emptiest
    deleted: bool = False  # the API does not know it any more
    _source: LaunchSource | None = None

    @property
    def name(self) -> str:
        """Name of the group."""
        return self.plan.name

    def type_of(self, number: int) -> str:
        """Return the type of the fleet's instance with that number; of an override with requirements, the plan's type
        is EC2's choice.
        """
        named = self.overrides[number % len(self.overrides)].instance_type if self.overrides else ""
        return named or self.plan.instance_type

    @property
    def staying(self) -> list[SimInstance]:
        """Members that count for the desired size."""
        members = self.members.values()
        return [m for m in members if not m.leaving and m.lifecycle != STANDBY and m.id not in self.replacing]

    def point_at(self, version: str) -> None:
        """Make the group launch that version from now on."""
        self.version, self._source = version, None

    @property
    def source(self) -> LaunchSource:
        """Launch source of the group, as its description names it."""
        if self._source is None:
            self._source = LaunchSource(template=self.template.ref(self.version), overrides=self.overrides)
        return self._source

    def hooks_for(self, transition: str) -> list[tuple[LifecycleHook, HookResult]]:
        """Return the hooks of one transition, with their default results."""
        return [pair for pair in self.hooks.values() if pair[0].transition == transition]

    def described(self) -> Group:
        """Return the group as DescribeAutoScalingGroups describes it."""
        members = self.members.values()
        return Group(
            name=self.name,
            tags=self.tags,
            minimum=self.minimum,
            maximum=self.maximum,
            desired=self.desired,
            zones=tuple(self.plan.zones),
            subnets=tuple(subnet_of(zone) for zone in self.plan.zones),
            instances=tuple([m.as_member() for m in members]),
            capacity_rebalance=self.plan.capacity_rebalance,
            launch=self.source,
            propagated=frozenset(PROPAGATED),
            suspended=tuple(sorted(self.suspended)) if self.suspended else (),
        )


@lru_cache(maxsize=256)
def _template(group: str, version: str) -> LaunchTemplateRef:
    return template_of(group).ref(version)


SUBNET_SIZE = 4091  # free addresses of an empty /20


def subnet_of(zone: str) -> str:
    """Return the id of the zone's subnet: one subnet a zone."""
    return f"subnet-{zone}"


def group_of(plan: Plan, cluster: str) -> SimGroup:
    """Build the group of a plan, tagged for the cluster; with another team's terminate hook where the plan has one."""
    tags = {well_known.CLUSTER_TAG_PREFIX + cluster: "owned", **PROPAGATED} | dict(getattr(plan, "tags", {}))
    group = SimGroup(plan=plan, tags=tags, desired=plan.size, maximum=plan.maximum, template=template_of(plan.name))
    group.minimum = getattr(plan, "minimum", 0)
    group.boots, group.joins = getattr(plan, "boots", None) or group.boots, getattr(plan, "joins", None) or group.joins
    group.overrides = tuple(Override(instance_type=one) for one in getattr(plan, "types", ()))
    for named in getattr(plan, "hooks", ()):
        transition, default = (LAUNCHING, HookResult.ABANDON) if named.launching else (TERMINATING, HookResult.CONTINUE)
        _put(group, named.name, transition, named.timeout, default)
    if plan.foreign_hook:
        abandons = getattr(plan, "foreign_abandons", False)
        _put(group, "their-hook", TERMINATING, 120, HookResult.ABANDON if abandons else HookResult.CONTINUE)
    return group


def _put(group: SimGroup, name: str, transition: str, timeout: int, default: HookResult) -> None:
    hook = LifecycleHook(name=name, group=group.name, transition=transition, heartbeat_timeout=timeout, default=default)
    group.hooks[name] = (hook, default)
