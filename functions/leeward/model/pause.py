"""Pause switch: paused clusters and groups, with caller, reason and end.

Decides what a pause covers. A pause of the scope `voluntary` keeps disruption, repair and upgrades from beginning
anything; the scope `all` switches interruption handling off as well. Nodes that are draining finish under both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from leeward.model.times import format_instant

ANNOUNCED_EVERY = timedelta(days=1)  # a pause without an end


class PauseScope(StrEnum):
    """Work that a pause stops."""

    VOLUNTARY = "voluntary"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Pause of a cluster, or of one group of it. `by`: ARN of the caller; `group` empty: the whole cluster; `until`
    None: it has no end; `announced`: when its last event was made.
    """

    by: str
    why: str
    since: datetime
    announced: datetime
    group: str = ""
    until: datetime | None = None
    scope: PauseScope = PauseScope.VOLUNTARY

    def in_force(self, now: datetime) -> bool:
        """Return whether it has not ended by itself."""
        return self.until is None or now < self.until

    def unannounced(self, now: datetime) -> bool:
        """Return whether it has no end and its last event is a day old."""
        return self.until is None and now - self.announced >= ANNOUNCED_EVERY

    @property
    def end(self) -> str:
        """Words for its end."""
        return f"until {format_instant(self.until)}" if self.until is not None else "without an end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Pauses in force in one cluster. `unreadable`: why the switch could not be read for a minute; nothing voluntary
    begins then, and the last known pauses stay in force. `due`: one has ended or is to be announced again.
    """

    cluster: str = ""
    pauses: tuple[Pause, ...] = ()
    unreadable: str = ""
    due: bool = False

    def voluntary(self, group: str = "") -> str:
        """Return the reason why nothing voluntary begins in the group (empty: in the whole cluster); empty if it may
        begin.
        """
        unreadable = f"the pause switch cannot be read ({self.unreadable})" if self.unreadable else ""
        return self._reason(group, tuple(PauseScope)) or unreadable

    def everything(self, group: str = "") -> str:
        """Return the reason why interruptions are not handled in the group (empty: in the whole cluster) either; empty
        if they are.
        """
        return self._reason(group, (PauseScope.ALL,))

    def _reason(self, group: str, scopes: tuple[PauseScope, ...]) -> str:
        for pause in self.pauses:
            if pause.scope in scopes and pause.group in {"", group}:
                paused = f"group {pause.group}" if pause.group else f"cluster {self.cluster}"
                return f"{paused} is paused: {pause.why}"
        return ""


NOT_PAUSED = Pauses()


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRecord:
    """Item of one cluster: its pauses, also those that have ended by themselves and are not removed yet. `by`, `why`:
    ARN and reason of the last writer, empty if time alone has changed it; `version` 0: there is no item.
    """

    cluster: str
    version: int = 0
    pauses: tuple[Pause, ...] = ()
    by: str = ""
    why: str = ""

    def of_group(self, group: str) -> Pause | None:
        """Return the pause of the group, or of the cluster with an empty name."""
        return next((pause for pause in self.pauses if pause.group == group), None)

    def paused(self, pause: Pause) -> PauseRecord:
        """Return the record with this pause in place of the earlier one of the same group."""
        others = tuple(other for other in self.pauses if other.group != pause.group)
        pauses = sorted((*others, pause), key=lambda each: each.group)
        return replace(self, pauses=tuple(pauses), by=pause.by, why=pause.why)

    def resumed(self, group: str, by: str, why: str) -> PauseRecord:
        """Return the record without the pause of the group; with an empty name without any of the cluster."""
        left = tuple(pause for pause in self.pauses if group and pause.group != group)
        return replace(self, pauses=left, by=by, why=why)

    def kept(self, now: datetime) -> PauseRecord:
        """Return the record without pauses that have ended, and with those announced that are due; equal to this one
        if there is nothing to do.
        """
        pauses = tuple(
            replace(pause, announced=now) if pause.unannounced(now) else pause
            for pause in self.pauses
            if pause.in_force(now)
        )
        return self if pauses == self.pauses else replace(self, pauses=pauses, by="", why="")

    def in_force(self, now: datetime) -> Pauses:
        """Return the pauses in force."""
        pauses = tuple(pause for pause in self.pauses if pause.in_force(now))
        return Pauses(cluster=self.cluster, pauses=pauses, due=self.kept(now) is not self)
