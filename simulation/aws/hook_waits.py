"""Lifecycle actions that hold an instance until they are answered, or until their time-out takes the default result."""

from collections.abc import Callable

from leeward.model.group import HookResult
from simulation.aws import events
from simulation.aws.compute import SimGroup, Waiting
from simulation.aws.listeners import Listeners
from simulation.timeline import Timeline

LONGEST = 172_800.0  # seconds: 48 hours

Key = tuple[str, str, str]  # group, hook, instance
Answer = Callable[[str, str, str, HookResult], bool]


def global_time_out(heartbeat_timeout: float) -> float:
    """Return the seconds after which Auto Scaling takes the default result, however often the action was heartbeaten.

    Source: API reference of Amazon EC2 Auto Scaling, LifecycleHook.GlobalTimeout: 172800 seconds or 100 times the
    heartbeat time-out, whichever is smaller.
    """
    return min(LONGEST, 100 * heartbeat_timeout)


class HookWaits:
    """Waiting lifecycle actions. `waiting` by (group, hook, instance); `timed_out` lists those without an answer.
    `default` takes the answer that a time-out gives, like any other answer.
    """

    def __init__(self, timeline: Timeline, fresh_id: Callable[[], str], to: Listeners, default: Answer) -> None:
        self._timeline, self._id, self._to, self._default = timeline, fresh_id, to, default
        self.waiting: dict[Key, Waiting] = {}
        self.timed_out: list[Key] = []
        self.begun: dict[Key, float] = {}  # actions that have ever waited, since when

    def begin(self, group: SimGroup, instance: str, transition: str, *, to: str = "") -> bool:
        """Start every hook of the group for that transition; return whether there is one."""
        hooks = group.hooks_for(transition)
        for hook, default in hooks:
            token, since = self._id(), self._timeline.now()
            action = Waiting(hook=hook, default=default, instance=instance, token=token, since=since)
            self.waiting[group.name, hook.name, instance] = action
            self.begun[group.name, hook.name, instance] = since
            self._arm(action)
            event = events.lifecycle_action(self._id(), hook, instance, token, self._timeline.instant())
            event["detail"]["Destination"] = to or event["detail"]["Destination"]
            self._to.emit(event)
        return bool(hooks)

    def answer(self, group: str, hook: str, instance: str, result: HookResult) -> Waiting | None:
        """Remove and return the action that waited, None where nothing did. ABANDON ends the instance's other waits
        too.
        """
        action = self.waiting.pop((group, hook, instance), None)
        if action is None:
            return None
        if action.timer:
            action.timer.cancel()
        if result is HookResult.ABANDON:
            self.stop(group, instance)
        return action

    def heartbeat(self, group: str, hook: str, instance: str) -> bool:
        """Restart the time-out, up to the action's global time-out; False when nothing waits."""
        action = self.waiting.get((group, hook, instance))
        if action is None:
            return False
        self._arm(action)
        return True

    def holds(self, group: str, instance: str) -> bool:
        """Return whether any hook of the group still waits for the instance."""
        return any(key[0] == group and key[2] == instance for key in self.waiting)

    def stop(self, group: str, instance: str) -> None:
        """Cancel every wait for the instance without an answer."""
        for key in [key for key in self.waiting if key[0] == group and key[2] == instance]:
            timer = self.waiting.pop(key).timer
            if timer:
                timer.cancel()

    def _arm(self, action: Waiting) -> None:
        if action.timer:
            action.timer.cancel()
        hook, now = action.hook, self._timeline.now()
        ends = min(now + hook.heartbeat_timeout, action.since + global_time_out(hook.heartbeat_timeout))

        def timed_out() -> None:
            self._to.said(f"hook {hook.name} of {action.instance} timed out")
            self.timed_out.append((hook.group, hook.name, action.instance))
            self._default(hook.group, hook.name, action.instance, action.default)

        action.timer = self._timeline.at(ends, timed_out, "hook time-out")
