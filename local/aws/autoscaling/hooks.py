"""Lifecycle hooks as they are put on groups. ``waits`` handles the instances that a hook holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MAXIMUM_WAIT_SECONDS = 172_800  # 48 hours
MAXIMUM_HEARTBEATS = 100


class Transition(StrEnum):
    """Transitions of the lifecycle at which a hook can hold an instance."""

    LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
    TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


class Result(StrEnum):
    """Results with which a hook can be answered."""

    CONTINUE = "CONTINUE"
    ABANDON = "ABANDON"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """Identity of one group in one region of one account."""

    account: str
    region: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Lifecycle hook; times are in seconds."""

    name: str
    transition: Transition
    heartbeat_timeout: int = 3600
    default_result: Result = Result.ABANDON
    target_arn: str | None = None
    role_arn: str | None = None
    metadata: str | None = None

    @property
    def global_timeout(self) -> int:
        """Longest time that heartbeats can hold an instance: 48 hours or 100 heartbeat time-outs, whichever is less."""
        return min(MAXIMUM_WAIT_SECONDS, MAXIMUM_HEARTBEATS * self.heartbeat_timeout)


class HookBook:
    """Hooks of all groups."""

    def __init__(self) -> None:
        self._hooks: dict[GroupKey, dict[str, Hook]] = {}

    def put(self, group: GroupKey, hook: Hook) -> None:
        """Add a hook, or replace the one of its name."""
        self._hooks.setdefault(group, {})[hook.name] = hook

    def get(self, group: GroupKey, name: str) -> Hook | None:
        """Return the hook of that name, if the group has it."""
        return self._hooks.get(group, {}).get(name)

    def of(self, group: GroupKey, transition: Transition | None = None) -> tuple[Hook, ...]:
        """Return the group's hooks, of one transition or of both."""
        hooks = self._hooks.get(group, {}).values()
        return tuple(hook for hook in hooks if transition is None or hook.transition is transition)

    def remove(self, group: GroupKey, name: str) -> None:
        """Remove a hook; without one nothing happens."""
        self._hooks.get(group, {}).pop(name, None)

    def forget(self, group: GroupKey) -> None:
        """Drop everything about a group."""
        self._hooks.pop(group, None)
