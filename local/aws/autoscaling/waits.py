"""Instances that lifecycle hooks hold: the open actions, their deadlines, and the result of the answers.

CONTINUE lets the other hooks of the transition finish; ABANDON ends the wait at once, as Auto Scaling documents. An
expired hook answers with its default result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from local.aws.autoscaling.hooks import GroupKey, Hook, Result, Transition


class NoActiveAction(Exception):
    """Error: no hook waits for this answer: wrong hook, wrong instance or token, or answered already."""


@dataclass(slots=True, kw_only=True)
class OpenAction:
    """Claim of one hook on one instance; times are monotonic seconds."""

    hook: Hook
    token: str
    heartbeat_deadline: float
    global_deadline: float

    @property
    def deadline(self) -> float:
        """Time at which the default result applies."""
        return min(self.heartbeat_deadline, self.global_deadline)


@dataclass(slots=True, kw_only=True)
class Wait:
    """Instance in Pending:Wait or Terminating:Wait, with the actions that are still open."""

    instance_id: str
    group: GroupKey
    transition: Transition
    actions: list[OpenAction]
    done: Callable[[Result], None]


class Waits:
    """Instances that are held, by instance id."""

    def __init__(self) -> None:
        self._waits: dict[str, Wait] = {}

    def begin(
        self,
        instance_id: str,
        group: GroupKey,
        hooks: Sequence[Hook],
        now: float,
        done: Callable[[Result], None],
    ) -> Wait:
        """Hold an instance for all of ``hooks`` (of one transition, at least one); ``done`` gets the outcome once."""
        actions = [
            OpenAction(
                hook=hook,
                token=str(uuid4()),
                heartbeat_deadline=now + hook.heartbeat_timeout,
                global_deadline=now + hook.global_timeout,
            )
            for hook in hooks
        ]
        wait = Wait(instance_id=instance_id, group=group, transition=hooks[0].transition, actions=actions, done=done)
        self._waits[instance_id] = wait
        return wait

    def answer(self, group: GroupKey, hook: str, *, instance_id: str | None, token: str | None, result: Result) -> None:
        """Record a hook's answer. Raises ``NoActiveAction``."""
        wait, action = self._find(group, hook, instance_id, token)
        self._settle(wait, action, result)

    def heartbeat(self, group: GroupKey, hook: str, *, instance_id: str | None, token: str | None, now: float) -> None:
        """Restart a hook's time-out, up to its global time-out. Raises ``NoActiveAction``."""
        _, action = self._find(group, hook, instance_id, token)
        action.heartbeat_deadline = now + action.hook.heartbeat_timeout

    def expire(self, now: float) -> None:
        """Apply the default result of every expired action."""
        for wait in list(self._waits.values()):
            for action in [action for action in wait.actions if action.deadline <= now]:
                if wait.instance_id in self._waits and action in wait.actions:
                    self._settle(wait, action, action.hook.default_result)

    def cancel(self, instance_id: str) -> None:
        """Drop a wait without an outcome: the instance left in another way."""
        self._waits.pop(instance_id, None)

    def held(self) -> list[Wait]:
        """Return the instances that are held now."""
        return list(self._waits.values())

    def _settle(self, wait: Wait, action: OpenAction, result: Result) -> None:
        wait.actions.remove(action)
        if result is Result.ABANDON or not wait.actions:
            self._waits.pop(wait.instance_id, None)
            wait.done(result)

    def _find(self, group: GroupKey, hook: str, instance_id: str | None, token: str | None) -> tuple[Wait, OpenAction]:
        for wait in self._waits.values():
            if wait.group != group or (instance_id and wait.instance_id != instance_id):
                continue
            for action in wait.actions:
                if action.hook.name == hook and (not token or action.token == token):
                    return wait, action
        raise NoActiveAction(instance_id or token or "null")
