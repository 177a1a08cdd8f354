"""Worlds in which clocks change half an hour after the first arrival, and policies whose windows lie in the hour that
is skipped or repeated.

When a window is open is computed here from local times and their offsets, without the product's schedules."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from random import Random
from zoneinfo import ZoneInfo

from leeward.policy.document import NodePolicy, Window
from simulation.alarm_rules import AFTER, VALIDATED, Alarmed
from simulation.fleets import Fleet
from simulation.view import WorldView

BEFORE = timedelta(minutes=33)  # from the beginning of the world to the change
AGAIN, LONG = timedelta(minutes=70), timedelta(hours=3)  # from the change to a window in which all can end, its length
MINUTES = (15, 30, 50)  # that windows and freezes last
SHARE = 0.5  # of the worlds, in which all is frozen around the change; in the others upgrades have windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change of clocks: `hour` and `minutes` are local times that do not exist on that day, or exist twice."""

    zone: str
    at: datetime
    hour: int
    minutes: tuple[int, ...] = (0, 20, 40)


CHANGES = (
    Change(zone="Europe/Berlin", at=datetime(2026, 3, 29, 1, tzinfo=UTC), hour=2),
    Change(zone="Europe/Berlin", at=datetime(2026, 10, 25, 1, tzinfo=UTC), hour=2),
    Change(zone="America/New_York", at=datetime(2026, 3, 8, 7, tzinfo=UTC), hour=2),
    Change(zone="America/New_York", at=datetime(2026, 11, 1, 6, tzinfo=UTC), hour=1),
    Change(zone="Australia/Lord_Howe", at=datetime(2026, 4, 4, 15, tzinfo=UTC), hour=1, minutes=(30, 40, 50)),
    Change(zone="Australia/Lord_Howe", at=datetime(2026, 10, 3, 15, 30, tzinfo=UTC), hour=2, minutes=(0, 10, 20)),
)


def begin_of(seed: int) -> float:
    """Return the beginning of the world of a seed, in seconds since 1970."""
    return (_change(seed).at - BEFORE).timestamp()


def with_clock_change(fleet: Fleet, seed: int) -> Fleet:
    """Return the fleet with a freeze around the change, or with windows there for upgrades."""
    random, change = Random(f"{seed}/windows of the clock change"), _change(seed)
    again = change.at + AGAIN
    late = Window(schedule=f"{again.minute} {again.hour} * * *", duration=LONG)

    def window() -> Window:
        minutes = timedelta(minutes=random.choice(MINUTES))
        schedule = f"{random.choice(change.minutes)} {change.hour} * * *"
        return Window(schedule=schedule, duration=minutes, time_zone=change.zone)

    written = fleet.policies
    if random.random() < SHARE:
        settings = replace(written.settings, freeze=(window(),))
        return replace(fleet, policies=replace(written, settings=settings))
    policies = [
        replace(policy, update=replace(policy.update, windows=(window(), late)))
        if policy.update.auto is None
        else policy
        for policy in written.policies
    ]
    return replace(fleet, policies=replace(written, policies=tuple(policies)))


class Closed(Alarmed):
    """Rule that no node is started by an upgrade or a run in a freeze, nor by an upgrade outside of its windows."""

    def _holds_run(self, policy: NodePolicy, view: WorldView) -> Iterator[str]:
        del policy
        yield from _frozen(VALIDATED, view)

    def _holds_upgrade(self, policy: NodePolicy, view: WorldView) -> Iterator[str]:
        yield from _frozen(AFTER, view)
        windows = [window for window in policy.update.windows if _is_daily(window)]
        if windows and not any(is_open(one, view.now - late) for one in windows for late in (0.0, AFTER)):
            yield "outside of its windows"


def is_open(window: Window, now: float) -> bool:
    """Return whether a daily window is open. A start in the skipped hour comes at the change, one in the repeated hour
    in its first pass; the duration is elapsed time.
    """
    moment = datetime.fromtimestamp(now, UTC)
    days = (moment.astimezone(ZoneInfo(window.time_zone)).date() + timedelta(days=number) for number in (-1, 0, 1))
    minute, hour = map(int, window.schedule.split()[:2])
    starts = (_instant(datetime.combine(day, time(hour, minute)), window.time_zone) for day in days)
    return any(start <= moment < start + window.duration for start in starts)


def _instant(wall: datetime, name: str) -> datetime:
    """Return the first instant at which clocks show the time, or have passed it."""
    zone = ZoneInfo(name)
    offset = wall.replace(tzinfo=zone).utcoffset() or timedelta()
    instant = (wall - offset).replace(tzinfo=UTC)
    while instant.astimezone(zone).replace(tzinfo=None) > wall:
        before = instant - timedelta(minutes=1)
        if before.astimezone(zone).replace(tzinfo=None) < wall:
            break
        instant = before
    return instant


def _frozen(late: float, view: WorldView) -> Iterator[str]:
    for window in filter(_is_daily, view.policies.settings.freeze):
        if is_open(window, view.now) and is_open(window, view.now - late):
            yield f"in the freeze {window.schedule} of {window.time_zone}"


def _is_daily(window: Window) -> bool:
    minute, hour, *days = window.schedule.split()
    return minute.isdigit() and hour.isdigit() and days == ["*"] * 3


def _change(seed: int) -> Change:
    return Random(f"{seed}/clock change").choice(CHANGES)
