"""View of a world's lifecycle hooks (`hook_view.HookView`)."""

from collections.abc import Sequence, Set
from math import inf

from leeward.model.group import LAUNCHING, HookResult, LifecycleHook
from leeward.policy.document import ClusterPolicies
from simulation.aws.fleet import SimFleet
from simulation.aws.hook_waits import global_time_out
from simulation.hook_view import Hold
from simulation.system import System
from simulation.timeline import Timeline


class ShownHooks:
    """View over the models of its subclass."""

    timeline: Timeline
    deployed: list[tuple[float, ClusterPolicies]]  # policies, and since when they are in force
    fleet: SimFleet
    system: System

    @property
    def waiting(self) -> Set[tuple[str, str, str]]:
        """Waiting actions as (group, hook, instance)."""
        return self.fleet.waiting.keys()

    @property
    def completed_hooks(self) -> Sequence[tuple[str, str, str, bool]]:
        """Answers of ours that had an effect."""
        return self.system.groups.completed

    @property
    def timed_out(self) -> Sequence[tuple[str, str, str]]:
        """Actions without an answer as (group, hook, instance)."""
        return self.fleet.timed_out

    @property
    def heartbeats(self) -> Sequence[tuple[str, str, str, bool]]:
        """Heartbeats of ours that had an effect."""
        return self.system.groups.heartbeats

    def holds(self, instance: str) -> Sequence[Hold]:
        """Return the holds of every group's hooks; those of another team that was answered too: no event reports the
        answer.
        """
        waiting = [
            self._hold(
                action.hook, action.since, action.timer.when if action.timer else self.timeline.now(), action.default
            )
            for (_, _, held), action in self.fleet.waiting.items()
            if held == instance
        ]
        there = self.fleet.instances.get(instance)
        hooks = self.fleet.groups[there.group].hooks.values() if there is not None else ()
        for hook, default in hooks:
            since = self.fleet.waited_since(hook.group, hook.name, instance)
            waits = (hook.group, hook.name, instance) in self.fleet.waiting
            if since is not None and not waits and not self.ours(hook.name, hook.group):
                waiting.append(self._hold(hook, since, since + hook.heartbeat_timeout, default))
        return waiting

    def _hold(self, hook: LifecycleHook, since: float, ends: float, default: HookResult) -> Hold:
        launching, timeout = hook.transition == LAUNCHING, hook.heartbeat_timeout
        ours = self.ours(hook.name, hook.group)
        return Hold(
            hook=hook.name, ours=ours, launching=launching, since=since, timeout=timeout, ends=ends, default=default
        )

    def event_came(self, group: str, hook: str, instance: str) -> float:
        """Return when the bus delivered it, since the action began."""
        since, heard = self.fleet.waited_since(group, hook, instance), self.system.bus.heard.get(instance, inf)
        return inf if since is None or heard < since else heard

    def refused_since(self, at: float) -> float:
        """Return none: the deployment's own account has no role to refuse."""
        del at
        return 0.0

    def unnamed_since(self, at: float, group: str, hook: str) -> float:
        """Return the seconds between changes of the policies in which the one of the group did not name it."""
        there, now = self.fleet.groups.get(group), self.timeline.now()
        if there is None or (group, hook) in self.system.groups.put:
            return 0.0
        ends = [*(begin for begin, _ in self.deployed[1:]), now]
        return sum(
            max(end - max(begin, at), 0.0)
            for (begin, policies), end in zip(self.deployed, ends, strict=True)
            if (policy := policies.selecting(group, there.tags)) is None or hook not in policy.interruption.hooks
        )

    def time_out(self, group: str, hook: str) -> float:
        """Return the time-out, infinite for a hook that the group no longer has."""
        known = self.fleet.groups[group].hooks.get(hook)
        return inf if known is None else known[0].heartbeat_timeout

    def held_to_the_end(self, group: str, hook: str, instance: str) -> bool:
        """Return whether the global time-out, counted from the action's begin, has passed."""
        since = self.fleet.waited_since(group, hook, instance)
        known = self.fleet.groups[group].hooks.get(hook) if group in self.fleet.groups else None
        if since is None or known is None:
            return False
        return self.timeline.now() >= since + global_time_out(known[0].heartbeat_timeout)

    @property
    def misdirected(self) -> Sequence[tuple[str, str, str]]:
        """Heartbeats as (group, hook, instance)."""
        return self.system.groups.misdirected

    def ours(self, hook: str, group: str) -> bool:
        """Return whether fn sync put it there, or the group's policy names it."""
        there = self.fleet.groups.get(group)
        named = there is not None and any(one.name == hook for one in getattr(there.plan, "hooks", ()))
        return named or (group, hook) in self.system.groups.put

    def ends(self, hook: str, group: str) -> bool:
        """Return whether it is a terminate hook of ours."""
        return self.ours(hook, group) and not any(
            known.name == hook for known, _ in self.fleet.groups[group].hooks_for(LAUNCHING)
        )
