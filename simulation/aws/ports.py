"""`ports.compute.Instances` and `ports.autoscaling.Groups` over the simulated fleet: the product's requests to EC2 and
Auto Scaling."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from leeward.adapters.aws.instances import EMPTY_LASTS
from leeward.adapters.cache import RecentlyEmpty
from leeward.errors import InvalidInputError
from leeward.model.group import LAUNCHING, Group, HookResult, LifecycleHook, ScalingActivity
from leeward.model.instance import Instance, cluster_of
from leeward.model.instance_status import Impairment, ScheduledEvent
from leeward.model.lifecycle import may_be_ended
from leeward.model.termination import Replacement
from leeward.ports.clock import Clock
from simulation.aws.compute import SimGroup, subnet_of
from simulation.aws.fleet import SimFleet
from simulation.faults import Injector
from simulation.journal import Journal

FULLY_FORMED = "ValidationError: You must use a valid fully-formed launch template"
TOKENS = 1000  # client tokens that are remembered: AWS forgets them after some hours too


class SimInstances:
    """`ports.compute.Instances`. Each environment (of `environment`) keeps empty answers, as a sandbox does."""

    def __init__(self, fleet: SimFleet, clock: Clock | None = None, environment: Callable[[], str] = str) -> None:
        self._fleet, self._environment = fleet, environment
        self._no_events = defaultdict[str, RecentlyEmpty](lambda: RecentlyEmpty(clock, EMPTY_LASTS))
        self._no_impaired = defaultdict[str, RecentlyEmpty](lambda: RecentlyEmpty(clock, EMPTY_LASTS))

    def describe(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """Return the instances that EC2 knows."""
        known = self._fleet.instances
        return {name: known[name].described() for name in ids if name in known}

    def block_ends(self) -> Mapping[str, datetime]:
        """Return the ends of the fleet's Capacity Blocks that have not ended."""
        return self._fleet.notices.blocks()

    def in_reservations(self, reservations: Iterable[str]) -> Mapping[str, str]:
        """Return the instances in these reservations."""
        wanted = frozenset(reservations)
        return {m.id: m.reservation for m in self._fleet.instances.values() if m.reservation in wanted and not m.gone}

    def reboot(self, instance: str) -> None:
        """Reboot an instance that runs."""
        self._fleet.reboots.request(self._fleet.instances.get(instance))

    def scheduled_events(self, *, recent: bool = False) -> Mapping[str, tuple[ScheduledEvent, ...]]:
        """Return the scheduled events of instances that run."""
        return self._no_events[self._environment()].get(self._scheduled_events, recent=recent)

    def impaired(self, *, recent: bool = False) -> Mapping[str, Impairment]:
        """Return the instances whose system status check fails."""
        return self._no_impaired[self._environment()].get(self._impaired, recent=recent)

    def _scheduled_events(self) -> Mapping[str, tuple[ScheduledEvent, ...]]:
        running = {m.id for m in self._fleet.instances.values() if m.state == "running"}
        return {name: listed for name, listed in self._fleet.notices.listed().items() if name in running}

    def _impaired(self) -> Mapping[str, Impairment]:
        failing = {m.id: m.impaired for m in self._fleet.instances.values() if m.state == "running"}
        return {
            name: Impairment(instance=name, checks=("system",), since=datetime.fromtimestamp(since, UTC))
            for name, since in failing.items()
            if since is not None
        }


class SimGroups:
    """`ports.autoscaling.Groups`, and the requests through it that had an effect: launches (token, instance),
    decrements and terminations (instances), answers and heartbeats (group, hook, instance, True), hooks put (group,
    hook).
    """

    def __init__(self, fleet: SimFleet, injector: Injector) -> None:
        self._fleet, self._injector = fleet, injector
        self._by_token: dict[str, tuple[int, Replacement]] = {}  # the count that was asked for
        self.launches = Journal[tuple[str, str]]()
        self.decrements = Journal[str]()
        self.terminations = Journal[str]()
        self.completed = Journal[tuple[str, str, str, bool]]()
        self.heartbeats = Journal[tuple[str, str, str, bool]]()
        self.put: set[tuple[str, str]] = set()
        self.hooks_put = Journal[tuple[str, str]]()  # each time
        self.asked_for: set[str] = set()  # instances that we asked a group to end
        self.misdirected = Journal[tuple[str, str, str]]()  # heartbeats for an action that has never waited
        self._passed: set[tuple[str, str, str]] = set()  # no look tells: they left before the hook was put

    def describe(self, names: Iterable[str]) -> Mapping[str, Group]:
        """Return the groups that exist."""
        groups = self._fleet.groups
        return {name: groups[name].described() for name in names if name in groups and not groups[name].deleted}

    def of_clusters(self, clusters: Iterable[str]) -> Sequence[Group]:
        """Return the groups that carry the tags of these clusters."""
        wanted = tuple(clusters)
        groups = (group for group in self._fleet.groups.values() if not group.deleted)
        return tuple(group.described() for group in groups if cluster_of(group.tags, wanted))

    def lifecycle_of(self, instance: str) -> tuple[str, str] | None:
        """Return (group, state), None where no group holds the instance."""
        member = self._fleet.instances.get(instance)
        return None if member is None or member.lifecycle is None else (member.group, member.lifecycle)

    def hooks(self, group: str) -> Sequence[LifecycleHook]:
        """Return all hooks of the group."""
        there = self._fleet.groups.get(group)
        return tuple(hook for hook, _ in there.hooks.values()) if there else ()

    def put_hook(self, hook: LifecycleHook, *, default_result: HookResult) -> None:
        """Put a hook, overwriting the one of that name."""
        self._there(hook.group)
        self.put.add((hook.group, hook.name))
        self.hooks_put.append((hook.group, hook.name))
        hooks = self._fleet.groups[hook.group].hooks
        if hook.name not in hooks:
            self._passed.update((hook.group, hook.name, instance) for instance in self._leaving(hook.group))
        hooks[hook.name] = (hook, default_result)

    def _leaving(self, group: str) -> Iterator[str]:
        members = (one for one in self._fleet.instances.values() if one.group == group)
        return (one.id for one in members if (one.lifecycle or "").startswith("Terminating"))

    def delete_hook(self, *, group: str, hook: str) -> None:
        """Delete a hook. Instances that it holds proceed, except launches, which are abandoned."""
        known = self._there(group).hooks.get(hook)
        if known is None:
            return
        result = HookResult.ABANDON if known[0].transition == LAUNCHING else HookResult.CONTINUE
        for _, _, instance in [one for one in self._fleet.waiting if one[:2] == (group, hook)]:
            self._fleet.answer(group, hook, instance, result)
        del self._fleet.groups[group].hooks[hook]

    def complete(self, *, group: str, hook: str, instance: str, result: HookResult) -> bool:
        """Answer a lifecycle action. False when nothing waits."""
        waited = self._fleet.answer(group, hook, instance, result)
        if waited:
            self.completed.append((group, hook, instance, True))
        return waited

    def heartbeat(self, *, group: str, hook: str, instance: str) -> bool:
        """Heartbeat a lifecycle action. False when nothing waits."""
        waited = self._fleet.heartbeat(group, hook, instance)
        if waited:
            self.heartbeats.append((group, hook, instance, True))
        elif not self._fleet.has_waited(group, hook, instance) and (group, hook, instance) not in self._passed:
            self.misdirected.append((group, hook, instance))
        return waited

    def launch(self, *, group: str, subnet: str, token: str, count: int = 1) -> Replacement:
        """Run LaunchInstances: so many instances or fewer, the desired size grows by them; the same token gives the
        same instances.
        """
        if token in self._by_token:
            asked, answer = self._by_token[token]
            return answer if asked == count else Replacement(reason=f"IdempotentParameterMismatch: {asked} before")
        target = self._fleet.groups.get(group)
        if target is None or target.deleted:
            return Replacement(reason=f"ValidationError: no group {group}", refused=True)
        gone = f"{FULLY_FORMED}. The specified launch template, with template ID {target.template.id}, does not exist."
        unserved = gone if target.template.lacks(target.version) else getattr(target.plan, "refuses", "")
        if unserved:
            return Replacement(reason=unserved, refused=True)
        zone = next((zone for zone in target.plan.zones if subnet_of(zone) == subnet), None)
        if zone is None:
            return Replacement(reason=f"ValidationError: {subnet} is none of the group's", refused=True)
        if "Launch" in target.suspended or target.desired + count > target.maximum:
            refused = "Launch is suspended" if "Launch" in target.suspended else "MaxSize is reached"
            return Replacement(reason=f"ValidationError: {refused}", refused=True)
        launched = self._launched(target, zone, token, count)
        fewer = len(launched) < count
        reason = f"InsufficientInstanceCapacity: {len(launched)} of {count} in {zone}" if fewer else ""
        answer = Replacement(launched=launched, reason=reason, no_capacity=fewer)
        if launched:
            self._by_token[token] = (count, answer)
            if len(self._by_token) > TOKENS:
                del self._by_token[next(iter(self._by_token))]
        return answer

    def _launched(self, target: SimGroup, zone: str, token: str, count: int) -> tuple[str, ...]:
        """Launch until there is no capacity. Of several, each is recorded under the token and its number."""
        found: list[str] = []
        while len(found) < count and not self._injector.no_capacity(zone):
            target.desired += 1
            target.book.launched()
            found.append(self._fleet.launch(target, zone).id)
            self.launches.append((token if count == 1 else f"{token}/{len(found)}", found[-1]))
        return tuple(found)

    def terminate(self, *, instance: str, decrement: bool, anyway: bool = False) -> bool:
        """Terminate an instance. False when no group holds it, it is leaving, or its group keeps it. Raises
        InvalidInputError (a TerminalError) below MinSize.
        """
        member = self._fleet.instances.get(instance)
        if member is None or member.leaving:
            return False
        if member.lifecycle is not None and not may_be_ended(member.lifecycle, anyway=anyway):
            return False
        group = self._fleet.groups[member.group]
        if decrement:
            if group.desired - 1 < group.minimum:
                raise InvalidInputError(f"ValidationError: {group.name} would fall below its MinSize")
            self.decrements.append(instance)
        self.terminations.append(instance)
        self.asked_for.add(instance)
        self._fleet.terminate(member, decrement=decrement, by_us=True)
        return True

    def _there(self, group: str) -> SimGroup:
        there = self._fleet.groups.get(group)
        if there is None or there.deleted:
            raise InvalidInputError(f"ValidationError: AutoScalingGroup name not found: {group}")
        return there

    def activities(self, group: str, since: datetime) -> Sequence[ScalingActivity]:
        """Return the group's activities since then, newest first."""
        there = self._fleet.groups.get(group)
        return there.history.since(since) if there else ()
