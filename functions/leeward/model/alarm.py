"""CloudWatch alarms that guard voluntary work, and what one reading of them means.

Decides when alarms hold. In ALARM they do. INSUFFICIENT_DATA does not: an alarm on errors has no data while there are
no errors, and a new alarm has none at first; who wants missing data to hold sets the alarm's `treat missing data` to
`breaching`. An alarm that does not exist, or cannot be read, holds: the operator relies on it, and to continue without
it is the one mistake that a guard must not make. Source: CloudWatch, "Alarm states"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from leeward.model.times import format_instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Metric or composite alarm. `since`: when it entered its present state, None where that is not known."""

    name: str
    ringing: bool
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmReading:
    """Result of one reading. `ringing`: those in ALARM; `missing`: names that CloudWatch does not know; `unreadable`:
    why none could be read. All three in the order of the names that were asked for.
    """

    ringing: tuple[Alarm, ...] = ()
    missing: tuple[str, ...] = ()
    unreadable: str = ""

    @property
    def holds(self) -> str:
        """Return why nothing may start, as a sentence; empty if it may."""
        if self.unreadable:
            return f"its alarms cannot be read ({self.unreadable}): it holds until they can"
        said = [f"alarm {one.name} is in ALARM{_since(one)}" for one in self.ringing]
        said += [f"alarm {name} does not exist: create it, or take it out of the policy" for name in self.missing]
        return "; ".join(said)


def reading_of(names: Iterable[str], known: Mapping[str, Alarm]) -> AlarmReading:
    """Return the reading of these names. `known`: the alarms that CloudWatch has, by name."""
    wanted = tuple(dict.fromkeys(names))
    return AlarmReading(
        ringing=tuple(known[name] for name in wanted if name in known and known[name].ringing),
        missing=tuple(name for name in wanted if name not in known),
    )


def _since(alarm: Alarm) -> str:
    return f" since {format_instant(alarm.since)}" if alarm.since is not None else ""
