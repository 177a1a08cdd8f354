"""Part of the world's view about lifecycle hooks: which hold an instance, how each was answered (`view.WorldView`)."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from leeward.model.group import HookResult

HookCall = tuple[str, str, str, bool]  # group, hook, instance, whether it was us


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Lifecycle action that holds an instance: `ends` when its time-out gives `default`, in seconds since 1970."""

    hook: str
    ours: bool
    launching: bool
    since: float
    timeout: float
    ends: float
    default: HookResult


class HookView(Protocol):
    """Lifecycle hooks as they stand. Sequences only ever grow at their end."""

    def holds(self, instance: str) -> Sequence[Hold]:
        """Return the lifecycle actions that hold it."""
        ...

    @property
    def misdirected(self) -> Sequence[tuple[str, str, str]]:
        """Heartbeats of ours, as (group, hook, instance), for actions that have never waited."""
        ...

    @property
    def waiting(self) -> Set[tuple[str, str, str]]:
        """Every action that holds an instance, as (group, hook, instance)."""
        ...

    @property
    def completed_hooks(self) -> Sequence[HookCall]:
        """Answers that had an effect, and whether they were ours."""
        ...

    @property
    def timed_out(self) -> Sequence[tuple[str, str, str]]:
        """Every action without an answer in time, as (group, hook, instance)."""
        ...

    def event_came(self, group: str, hook: str, instance: str) -> float:
        """Return when the first event came that says that hooks keep the instance from ending; infinite if all were
        lost.
        """
        ...

    def refused_since(self, at: float) -> float:
        """Return the seconds since then in which the account of the cluster has refused its role."""
        ...

    def unnamed_since(self, at: float, group: str, hook: str) -> float:
        """Return the seconds since then in which no policy in force gave the hook to us; none of one that fn sync put
        there.
        """
        ...

    def time_out(self, group: str, hook: str) -> float:
        """Return the hook's HeartbeatTimeout in seconds."""
        ...

    def held_to_the_end(self, group: str, hook: str, instance: str) -> bool:
        """Return whether the action has waited for as long as Auto Scaling lets heartbeats keep it."""
        ...

    @property
    def heartbeats(self) -> Sequence[HookCall]:
        """Heartbeats that had an effect."""
        ...

    def ours(self, hook: str, group: str) -> bool:
        """Return whether the hook is ours to answer, by its origin: not by the product's own calculation."""
        ...

    def ends(self, hook: str, group: str) -> bool:
        """Return whether the hook is ours and its answer lets an instance end."""
        ...
