"""EC2 and Auto Scaling at work: launches, terminations, spot reclaims, health checks. Notifies listeners of what
becomes of instances.

`hook_waits.py` contains the hooks that hold an instance, `scaling.py` how a group reaches its size, `notices.py` what
AWS announces, `warm_pool.py` and `detachment.py` members that leave a group without an end. Requests of the product
arrive through `ports/`; events by chance through the world."""

from collections.abc import Callable, Iterable
from random import Random

from leeward.model import well_known
from leeward.model.group import LAUNCHING, TERMINATING, HookResult
from simulation.aws import activities, events
from simulation.aws.compute import (
    IN_SERVICE,
    LEAVING,
    LEAVING_WAIT,
    PENDING,
    PENDING_PROCEED,
    PENDING_WAIT,
    PROCEEDING,
    SUBNET_SIZE,
    WARM,
    Plan,
    SimGroup,
    SimInstance,
    group_of,
)
from simulation.aws.detachment import Detachment
from simulation.aws.hook_waits import HookWaits
from simulation.aws.listeners import Listeners
from simulation.aws.notices import Notices
from simulation.aws.reboots import Reboots
from simulation.aws.scaling import Scaling
from simulation.aws.warm_pool import WarmPools
from simulation.faults import Injector
from simulation.timeline import Timeline

HEALTH_CHECK = 30.0  # seconds until a group sees that EC2 has ended a member
POOL = "WarmPool"
REMEMBERED = 3600.0  # how long EC2 describes a terminated instance


class SimFleet:
    """Every instance and group. `waiting` by (group, hook, instance); `timed_out` lists those without an answer."""

    def __init__(
        self, plans: Iterable[Plan], cluster: str, timeline: Timeline, injector: Injector, random: Random, to: Listeners
    ) -> None:
        self.instances: dict[str, SimInstance] = {}
        self.groups: dict[str, SimGroup] = {}
        self.served: dict[str, str] = {}  # group -> the cluster that its nodes join
        self.homes: dict[str, str] = {}  # instance -> the group that has launched it, never forgotten
        self.add(plans, cluster)
        self.subnet_size = SUBNET_SIZE
        self._timeline, self._injector, self._random, self._to = timeline, injector, random, to
        self._waits = HookWaits(timeline, self.emit_id, to, self.answer)
        self.waiting, self.timed_out = self._waits.waiting, self._waits.timed_out
        self.stop_waits = self._waits.stop
        self.notices, self.warm_pools = Notices(self, timeline, to), WarmPools(self, timeline, to)
        self.detachment = Detachment(self, timeline, to)
        self.reboots = Reboots(timeline, injector.random("reboots"), to)
        self.scaling = Scaling(self, self.warm_pools, timeline, injector, to.said)
        self._numbers = 0
        self.protects: Callable[[SimInstance], bool] = lambda _: False  # true if a new one is protected from scale-in
        self.named: Callable[[SimInstance], str] = lambda _: ""  # the name of its Node, empty for one of its own

    def add(self, plans: Iterable[Plan], cluster: str) -> None:
        """Add the groups of a cluster."""
        for plan in plans:
            self.groups[plan.name], self.served[plan.name] = group_of(plan, cluster), cluster

    def populate(self) -> None:
        """Bring every group to its size, in service and joined, as if it had been so for long."""
        for group in self.groups.values():
            for number in range(group.desired):
                zone = group.plan.zones[number % len(group.plan.zones)]
                member = self._new(group, zone)
                member.state, member.lifecycle, member.joined = "running", IN_SERVICE, True
                self._to.joined(member)

    def launch(self, group: SimGroup, zone: str) -> SimInstance:
        """Launch a new member; it boots, waits for launch hooks and joins the cluster in its own time."""
        member = self._new(group, zone)
        never = self._injector.happens("instance never joins", self._injector.faults.never_joins, "boot")
        never = never or member.version in group.template.bad
        self.boot(group, member, never=never)
        self._to.changed()
        return member

    def terminate(self, member: SimInstance, *, decrement: bool, by_us: bool = False) -> None:
        """Run TerminateInstanceInAutoScalingGroup, for any caller. An instance that is already leaving leaves once."""
        if member.leaving:
            return
        group = self.groups[member.group]
        sizes = (group.desired, group.desired - 1) if decrement else None
        group.desired -= decrement
        if decrement:
            (group.book.paid if by_us else group.book.taken_by_owner)()
        group.history.asked(member.id, self._timeline.now(), sizes=sizes)
        self.begin_terminating(member)

    def launched_by(self, instance: str) -> str:
        """Return the group that has launched the instance, also after it was detached; empty for an unknown
        instance.
        """
        found = self.instances.get(instance)
        return found.group if found is not None else ""

    def unhealthy(self, member: SimInstance) -> None:
        """Report the instance unhealthy by a user's health check: the group terminates and replaces it."""
        self.end_member(member, activities.UNHEALTHY)

    def resize(self, group: SimGroup, desired: int) -> None:
        """Run SetDesiredCapacity of an owner: the group launches, or chooses which members to terminate."""
        group.history.resized(group.desired, desired, self._timeline.now())
        group.book.resized_by_owner()
        group.desired = desired
        self.reconcile_soon(group)

    def updated(self, group: SimGroup, desired: int) -> None:
        """Set a larger desired size by UpdateAutoScalingGroup."""
        limits = (group.minimum, group.maximum)
        group.history.updated(limits, group.desired, desired, self._timeline.now())
        group.desired = desired
        self.reconcile_soon(group)

    def end_member(self, member: SimInstance, cause: str) -> None:
        """Terminate a member for a reason of the group's own, so that it launches another; not while Terminate is
        suspended, nor one that waits in its warm pool: it is no member.
        """
        if member.lifecycle == WARM:
            return
        if not member.leaving and "Terminate" in self.groups[member.group].suspended:
            self.groups[member.group].postponed[member.id] = cause
        elif not member.leaving:
            self.groups[member.group].history.left(member.id, cause, self._timeline.now())
            self.begin_terminating(member)

    def begin_terminating(self, member: SimInstance) -> None:
        """Begin the termination that the group has decided; terminate hooks hold the instance first."""
        group = self.groups[member.group]
        member.lifecycle = LEAVING
        self._waits.stop(group.name, member.id)  # a launch hook's answer means nothing any more
        if not self._wait(group, member, TERMINATING, LEAVING_WAIT):
            self._timeline.after(1, lambda: self._proceed(member), "group ends it")
        self.reconcile_soon(group)
        self._to.changed()

    def answer(self, group: str, hook: str, instance: str, result: HookResult) -> bool:
        """Apply an answer, or the default after a time-out. False when nothing waits."""
        action = self._waits.answer(group, hook, instance, result)
        if action is None:
            return False
        if not self._waits.holds(group, instance):
            self._answered(self.instances[instance], action.hook.transition, result)
        self._to.changed()
        return True

    def heartbeat(self, group: str, hook: str, instance: str) -> bool:
        """Restart the time-out of a lifecycle action. False when nothing waits."""
        return self._waits.heartbeat(group, hook, instance)

    def has_waited(self, group: str, hook: str, instance: str) -> bool:
        """Return whether the hook has ever held the instance."""
        return (group, hook, instance) in self._waits.begun

    def waited_since(self, group: str, hook: str, instance: str) -> float | None:
        """Return when the hook last began to hold the instance."""
        return self._waits.begun.get((group, hook, instance))

    def end_instance(self, member: SimInstance, *, direct: bool = False) -> None:
        """Terminate the instance at EC2. `direct`: without its group, which notices at its next health check."""
        if member.gone and member.state != "stopped":
            return
        member.state, member.ended_at = "shutting-down", self._timeline.now()
        member.direct = member.direct or direct
        self.emit(events.state_change, member.id, "shutting-down")
        self._to.ended(member)
        ends = self._random.uniform(*self.groups[member.group].ends)
        self._timeline.after(ends, lambda: self._terminated(member), "instance terminated")
        if direct:
            self._timeline.after(HEALTH_CHECK, lambda: self.end_member(member, activities.HEALTH), "health check")
        self._to.changed()

    def reconcile_soon(self, group: SimGroup) -> None:
        """Make the group check its size in some seconds."""
        self.scaling.look_soon(group)

    def emit_id(self) -> str:
        """Return an event id, the same in every run of a seed."""
        return f"{self._random.getrandbits(128):032x}"

    def emit(self, build: Callable[..., events.Event], *what: object) -> None:
        """Emit an event of now with an id of its own."""
        self._to.emit(build(self.emit_id(), *what, self._timeline.instant()))

    def _new(self, group: SimGroup, zone: str) -> SimInstance:
        self._numbers += 1
        member = SimInstance(
            id=f"i-{self._numbers:017x}",
            group=group.name,
            zone=zone,
            type=group.type_of(self._numbers),
            spot=group.plan.spot,
            tags={**group.tags, well_known.GROUP_TAG: group.name},
            launched=self._timeline.now(),
            version=group.version,
            image=group.template.image(group.version),
            renamed=group.renames,
        )
        member.protected, member.called = self.protects(member), self.named(member)
        self.instances[member.id] = group.members[member.id] = member
        self.homes[member.id] = group.name
        return member

    def boot(self, group: SimGroup, member: SimInstance, *, never: bool = False) -> None:
        """Make the instance run and join the cluster in its own time; `never`: it does not join."""
        boots = self._random.uniform(*group.boots)
        self._timeline.after(boots, lambda: self._booted(member, never), "instance booted")

    def _booted(self, member: SimInstance, never: bool) -> None:
        if member.gone:
            return
        member.state = "running"
        if not never:
            joins = self.groups[member.group].joins
            self._timeline.after(self._random.uniform(*joins), lambda: self._join(member), "node joins")
        group = self.groups[member.group]
        if member.lifecycle == PENDING and not self._wait(group, member, LAUNCHING, PENDING_WAIT):
            self._in_service(member)
        self._to.changed()

    def _join(self, member: SimInstance) -> None:
        if member.state == "running":
            member.joined = True
            self._to.joined(member)
            self._to.changed()

    def _in_service(self, member: SimInstance) -> None:
        member.lifecycle = IN_SERVICE
        group = self.groups[member.group]
        for old, new in list(group.replacing.items()):
            if new == member.id:
                del group.replacing[old]
                self.end_member(self.instances[old], activities.REBALANCED)
        self.reconcile_soon(group)

    def _wait(self, group: SimGroup, member: SimInstance, transition: str, lifecycle: str) -> bool:
        """Start the hooks of that transition; return whether one holds the instance from now on."""
        held = self._waits.begin(group, member.id, transition, to=POOL if member.returns else "")
        if held:
            member.lifecycle = lifecycle
        return held

    def _answered(self, member: SimInstance, transition: str, result: HookResult) -> None:
        if transition == LAUNCHING and result is HookResult.CONTINUE and member.lifecycle == PENDING_WAIT:
            member.lifecycle = PENDING_PROCEED
            self._timeline.after(1, lambda: self._admit(member), "group takes it in")
            return
        member.lifecycle = LEAVING if transition == LAUNCHING else PROCEEDING
        self._timeline.after(1, lambda: self._proceed(member), "group ends it")

    def _admit(self, member: SimInstance) -> None:
        if member.lifecycle == PENDING_PROCEED:
            self._in_service(member)
            self._to.changed()

    def _proceed(self, member: SimInstance) -> None:
        group = self.groups[member.group]
        if member.returns and not member.gone:
            self.warm_pools.stop(group, member)
            return
        for old in [old for old, new in group.replacing.items() if member.id in {old, new}]:
            del group.replacing[old]  # one whose replacement went first stays
        self.end_instance(member)
        self._let_go(member)
        self.reconcile_soon(group)
        self._to.changed()

    def _let_go(self, member: SimInstance) -> None:
        """Remove the instance from its group, which lists it until EC2 has terminated it."""
        if member.state != "terminated":
            self._timeline.after(1, lambda: self._let_go(member), "group waits for EC2")
            return
        member.lifecycle = None
        self.groups[member.group].members.pop(member.id, None)
        self._to.changed()

    def _terminated(self, member: SimInstance) -> None:
        member.state = "terminated"
        self.emit(events.state_change, member.id, "terminated")
        self._timeline.after(REMEMBERED, lambda: self._forget(member), "EC2 forgets it")
        self._to.changed()

    def _forget(self, member: SimInstance) -> None:
        if member.lifecycle is None:
            self.instances.pop(member.id, None)
        else:
            self._timeline.after(REMEMBERED, lambda: self._forget(member), "EC2 forgets it")
