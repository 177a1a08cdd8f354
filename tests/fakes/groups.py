"""Auto Scaling in memory: sizes, hooks that hold instances in Terminating:Wait and Pending:Wait, launches by token."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from leeward.model.group import (
    LAUNCHING,
    TERMINATING,
    Group,
    GroupInstance,
    HookResult,
    LifecycleHook,
    ScalingActivity,
)
from leeward.model.instance import cluster_of
from leeward.model.lifecycle import RETAINED, may_be_ended
from leeward.model.termination import Replacement
from tests.fakes.calls import Calls
from tests.fakes.clock import FakeClock
from tests.fakes.instances import FakeInstances

LEAVING = ("Terminating", "Terminated", "Detach", "Warmed:Terminating")


class FakeGroups(Calls):
    """`answered` lists completed actions as (group, hook, instance, result), `waiting` those that hold an instance.

    `launches` and `terminated` are what was asked of the group; `refuse_launch` is why LaunchInstances says no,
    `short_of_capacity` the subnets without capacity.
    With `instances`, an ended member is `shutting-down` at EC2. `on_launch` may add the new instance and node.
    `history` is the scaling history of all groups, as (group, activity).
    """

    def __init__(
        self,
        groups: Iterable[Group] = (),
        hooks: Iterable[LifecycleHook] = (),
        instances: FakeInstances | None = None,
        clock: FakeClock | None = None,
    ) -> None:
        super().__init__()
        self.clock = clock or FakeClock()
        self.history: list[tuple[str, ScalingActivity]] = []
        self.by_name = {group.name: group for group in groups}
        self.hooks_of: dict[str, list[LifecycleHook]] = {}
        for hook in hooks:
            self.hooks_of.setdefault(hook.group, []).append(hook)
        self.instances = instances
        self.waiting: set[tuple[str, str, str]] = set()
        self.answered: list[tuple[str, str, str, HookResult]] = []
        self.heartbeats: list[tuple[str, str, str]] = []
        self.launches: list[tuple[str, str, str]] = []
        self.terminated: list[tuple[str, bool]] = []
        self.refuse_launch: str | None = None
        self.short_of_capacity: set[str] = set()
        self.on_launch: Callable[[str, str, str], None] | None = None
        self._by_token: dict[str, tuple[int, Replacement]] = {}
        self._born = 0

    def describe(self, names: Iterable[str]) -> Mapping[str, Group]:
        """Those that exist."""
        self._call("describe")
        return {name: self.by_name[name] for name in names if name in self.by_name}

    def of_clusters(self, clusters: Iterable[str]) -> Sequence[Group]:
        """By cluster tags."""
        self._call("of_clusters")
        wanted = tuple(clusters)
        return tuple(group for group in self.by_name.values() if cluster_of(group.tags, wanted))

    def lifecycle_of(self, instance: str) -> tuple[str, str] | None:
        """(group, state)."""
        self._call("lifecycle_of")
        return self._where(instance)

    def hooks(self, group: str) -> Sequence[LifecycleHook]:
        """All of the group's."""
        self._call("hooks")
        return tuple(self.hooks_of.get(group, ()))

    def put_hook(self, hook: LifecycleHook, *, default_result: HookResult) -> None:
        """Overwrite by name."""
        self._call("put_hook")
        others = [old for old in self.hooks_of.get(hook.group, ()) if old.name != hook.name]
        self.hooks_of[hook.group] = [*others, hook]

    def delete_hook(self, *, group: str, hook: str) -> None:
        """What it holds goes on."""
        self._call("delete_hook")
        held = sorted(instance for where, name, instance in self.waiting if (where, name) == (group, hook))
        for instance in held:
            self.complete(group=group, hook=hook, instance=instance, result=HookResult.CONTINUE)
        self.hooks_of[group] = [one for one in self.hooks_of.get(group, ()) if one.name != hook]

    def complete(self, *, group: str, hook: str, instance: str, result: HookResult) -> bool:
        """False when nothing waits. The last answer, or one ABANDON, lets the instance go on."""
        self._call("complete")
        if (group, hook, instance) not in self.waiting:
            return False
        self.waiting.discard((group, hook, instance))
        self.answered.append((group, hook, instance, result))
        if result is HookResult.ABANDON:
            self.waiting = {action for action in self.waiting if action[2] != instance}
        if not any(action[2] == instance for action in self.waiting):
            self._proceed(group, instance, result)
        return True

    def heartbeat(self, *, group: str, hook: str, instance: str) -> bool:
        """False when nothing waits."""
        self._call("heartbeat")
        if (group, hook, instance) not in self.waiting:
            return False
        self.heartbeats.append((group, hook, instance))
        return True

    def launch(self, *, group: str, subnet: str, token: str, count: int = 1) -> Replacement:
        """Desired size + `count` and as many Pending instances; the same token gives the same instances."""
        self._call("launch")
        if token in self._by_token:
            asked, answer = self._by_token[token]
            return answer if asked == count else Replacement(reason=f"IdempotentParameterMismatch: {asked} before")
        target = self.by_name[group]
        refused = self.refuse_launch or ("MaxSize is reached" if target.desired + count > target.maximum else None)
        if refused:
            return Replacement(reason=refused, refused=True)
        if subnet in self.short_of_capacity:
            return Replacement(reason="InsufficientInstanceCapacity: none there", no_capacity=True)
        self.launches.append((group, subnet, token))
        self.by_name[group] = replace(target, desired=target.desired + count)
        answer = Replacement(launched=tuple(self._add(group, subnet) for _ in range(count)))
        self._by_token[token] = count, answer
        return answer

    def terminate(self, *, instance: str, decrement: bool, anyway: bool = False) -> bool:
        """False when no group holds it or it is leaving; terminate hooks hold it in Terminating:Wait."""
        self._call("terminate")
        where = self._where(instance)
        if where is None or not may_be_ended(where[1], anyway=anyway):
            return False
        group = where[0]
        if where[1] == RETAINED:
            self.terminated.append((instance, decrement))
            self._end(group, instance)
            return True
        desired = self.by_name[group].desired
        if decrement:
            self.by_name[group] = replace(self.by_name[group], desired=desired - 1)
        self.terminated.append((instance, decrement))
        shrunk = f", shrinking the capacity from {desired} to {desired - 1}" if decrement else ""
        self.begin_terminating(group, instance, f"taken out of service in response to a user request{shrunk}")
        return True

    def activities(self, group: str, since: datetime) -> Sequence[ScalingActivity]:
        """Newest first."""
        self._call("activities")
        return tuple(activity for name, activity in reversed(self.history) if name == group and activity.at >= since)

    def begin_terminating(
        self, group: str, instance: str, cause: str = "taken out of service in response to an EC2 health check"
    ) -> None:
        """The group ends an instance: by our call, scale-in, rebalancing or an unhealthy mark."""
        self.history.append((group, ScalingActivity(at=self.clock.now(), cause=f"instance {cause}.", leaves=instance)))
        hooks = [hook for hook in self.hooks_of.get(group, ()) if hook.transition == TERMINATING]
        if hooks:
            self.waiting |= {(group, hook.name, instance) for hook in hooks}
            self.set_lifecycle(group, instance, "Terminating:Wait")
        else:
            self._end(group, instance)

    def begin_launching(self, group: str, instance: str) -> None:
        """A launched instance waits for the group's launch hooks, if it has any."""
        hooks = [hook for hook in self.hooks_of.get(group, ()) if hook.transition == LAUNCHING]
        self.waiting |= {(group, hook.name, instance) for hook in hooks}
        self.set_lifecycle(group, instance, "Pending:Wait" if hooks else "InService")

    def set_lifecycle(self, group: str, instance: str, lifecycle: str) -> None:
        """The group's word for a member; one that it does not list yet is added."""
        target = self.by_name[group]
        if target.lifecycle_of(instance) is None:
            zone = target.zones[0] if target.zones else ""
            target = replace(target, instances=(*target.instances, GroupInstance(id=instance, zone=zone, lifecycle="")))
        members = tuple(replace(m, lifecycle=lifecycle) if m.id == instance else m for m in target.instances)
        self.by_name[group] = replace(target, instances=members)

    def refill(self, group: str) -> tuple[str, ...]:
        """What the group does by itself: launch until the desired size is reached again."""
        target = self.by_name[group]
        staying = [m for m in target.instances if not m.lifecycle.startswith(LEAVING)]
        subnets = target.subnets or ("",)
        return tuple(self._add(group, subnets[n % len(subnets)]) for n in range(target.desired - len(staying)))

    def _where(self, instance: str) -> tuple[str, str] | None:
        for group in self.by_name.values():
            state = group.lifecycle_of(instance)
            if state is not None:
                return group.name, state
        return None

    def _proceed(self, group: str, instance: str, result: HookResult) -> None:
        where = self._where(instance)
        if where is None:
            return
        if result is HookResult.ABANDON and where[1].startswith("Terminating") and self.by_name[group].retains:
            self.set_lifecycle(group, instance, RETAINED)
        elif where[1].startswith("Terminating") or result is HookResult.ABANDON:
            self._end(group, instance)
        else:
            self.set_lifecycle(group, instance, "InService")

    def _end(self, group: str, instance: str) -> None:
        target = self.by_name[group]
        self.by_name[group] = replace(target, instances=tuple(m for m in target.instances if m.id != instance))
        if self.instances is not None:
            self.instances.set_state(instance, "shutting-down")

    def _add(self, group: str, subnet: str) -> str:
        self._born += 1
        instance = f"i-{0xFACE0000 + self._born:x}"
        self.begin_launching(group, instance)
        if self.on_launch:
            self.on_launch(group, subnet, instance)
        return instance
