"""Keys of `spec.disruption` with Karpenter's older names, its budgets, and every recurring window.

Decides what may be written; `leeward.budgets.disruption_budgets` decides how many nodes a budget then allows."""

import re
from datetime import timedelta
from typing import Any

from leeward.policy.document import NO_DISRUPTION, Budget, DisruptionPolicy, DisruptionReason, Window
from leeward.policy.durations import LONGEST, WIDEST_SPREAD, parse_spread
from leeward.policy.fields import NEVER, Section, duration_expected, whole_number
from leeward.policy.schedule import parse_schedule, zone

CONSOLIDATION_POLICIES = ("WhenEmptyOrUnderutilized", "WhenEmpty", "Balanced", NEVER)
COUNT_OR_SHARE = "a count such as 5 or a share such as 10%, at most 100%"
_COUNT_OR_SHARE = re.compile(r"(\d{1,9})(%?)", re.ASCII)
_SECOND = timedelta(seconds=1)


def disruption(spec: Section) -> DisruptionPolicy:
    """Read `spec.disruption`, with Karpenter's older names in seconds. Without the section nothing is disrupted."""
    if not spec.has("disruption"):
        return NO_DISRUPTION
    default = DisruptionPolicy()
    with spec.section("disruption") as section:
        policy = section.word("consolidationPolicy", default.consolidation_policy, CONSOLIDATION_POLICIES)
        after = _with_alias(section, "consolidateAfter", "ttlSecondsAfterEmpty", default.consolidate_after, 0)
        expire, jitter = _expiry(section, default)
        if policy == NEVER and section.has("ttlSecondsAfterEmpty"):
            section.refuse("ttlSecondsAfterEmpty", "nothing, as consolidationPolicy Never keeps empty nodes")
        per_hour, percent = _minimum_savings(section, default)
        spot, types = _spot_to_spot(section, default)
        return DisruptionPolicy(
            consolidation_policy=policy,
            consolidate_after=after,
            expire_after=expire,
            expire_jitter=jitter,
            drift=section.boolean("drift", default.drift),
            savings_per_hour=per_hour,
            savings_percent=percent,
            cooldown=section.duration("cooldown", default.cooldown),
            alarms=section.texts("alarms"),
            spot_to_spot=spot,
            spot_to_spot_minimum_types=types,
            architecture=section.word("architecture", default.architecture, ("same", "any")),
            budgets=_budgets(section, default.budgets),
            do_not_disrupt=section.boolean("doNotDisrupt", default.do_not_disrupt),
        )


def _with_alias(section: Section, key: str, alias: str, default: timedelta | None, low: int) -> timedelta | None:
    """Read a duration or Never, or its older name in whole seconds; both at once contradict each other."""
    after = section.duration_or(key, default, NEVER, low * _SECOND)
    seconds = _alias(section, key, alias, low)
    return after if seconds is None else seconds


def _alias(section: Section, key: str, alias: str, low: int) -> timedelta | None:
    """Read the older name of a key in whole seconds; both at once contradict each other."""
    seconds = section.integer(alias, None, low, 9_000_000_000)
    if section.has(key) and section.has(alias):
        section.refuse(alias, f"only one of {key} and {alias}")
    return None if seconds is None else seconds * _SECOND


def _expiry(section: Section, default: DisruptionPolicy) -> tuple[timedelta | None, int]:
    """Read `expireAfter` or its older name as the age, None for Never, and its spread in percent."""
    expected = f"{NEVER} or {duration_expected(_SECOND, LONGEST)}, with a spread of 1% to {WIDEST_SPREAD}%: 720h±10%"
    entered = section.read("expireAfter", (default.expire_after, default.expire_jitter), _age, expected)
    seconds = _alias(section, "expireAfter", "ttlSecondsUntilExpired", 1)
    return entered if seconds is None else (seconds, 0)


def _age(value: Any) -> tuple[timedelta | None, int]:
    """Parse Never, or an age of at least a second with its spread. Raises ValueError."""
    if value == NEVER:
        return None, 0
    age, percent = parse_spread(value)
    if age < _SECOND:
        raise ValueError("out of range")
    return age, percent


def _minimum_savings(disruption_section: Section, default: DisruptionPolicy) -> tuple[float, float]:
    with disruption_section.section("minimumSavings") as section:
        return (
            section.number("perHour", default.savings_per_hour, 0),
            section.number("percent", default.savings_percent, 0, 100),
        )


def _spot_to_spot(disruption_section: Section, default: DisruptionPolicy) -> tuple[bool, int]:
    with disruption_section.section("spotToSpot") as section:
        return (
            section.boolean("enabled", default.spot_to_spot),
            section.integer("minimumTypes", default.spot_to_spot_minimum_types, 1),
        )


def _budgets(disruption_section: Section, default: tuple[Budget, ...]) -> tuple[Budget, ...]:
    sections = disruption_section.sections("budgets")
    return default if sections is None else tuple(_budget(section) for section in sections)


def _budget(entered: Section) -> Budget:
    with entered as section:
        nodes, percent = section.read("nodes", (0, False), count_or_share, COUNT_OR_SHARE)
        if not section.has("nodes"):
            section.refuse("nodes", COUNT_OR_SHARE)
        return Budget(
            nodes=nodes,
            percent=percent,
            window=_window(section, needed=False),
            reasons=section.texts("reasons", tuple(DisruptionReason)),
            zone=section.text("zone", None),
        )


def windows(section: Section, key: str) -> tuple[Window, ...]:
    """Read a list of spans of time, each with schedule and duration."""
    found: list[Window] = []
    for entered in section.sections(key) or ():
        with entered as item:
            window = _window(item, needed=True)
            found += [window] if window else []
    return tuple(found)


def _window(section: Section, *, needed: bool) -> Window | None:
    """Read a window: `schedule` and `duration` belong together; `timeZone` goes with them."""
    cron_line = 'a cron line of five fields such as "0 9 * * mon-fri", or a macro such as @daily'
    schedule = section.read("schedule", None, parse_schedule, cron_line)
    duration = section.duration("duration", None, timedelta(microseconds=1))
    time_zone = section.read("timeZone", "UTC", _zone_name, "an IANA time zone such as Europe/Berlin")
    has_schedule, has_duration = section.has("schedule"), section.has("duration")
    if has_duration and not has_schedule:
        section.refuse("schedule", f"{cron_line}: duration needs a schedule")
    elif has_schedule and not has_duration:
        section.refuse("duration", "a duration such as 8h: schedule needs a duration")
    elif needed and not has_schedule:
        section.refuse("schedule", cron_line)
        section.refuse("duration", "a duration such as 8h")
    elif section.has("timeZone") and not has_schedule:
        section.refuse("timeZone", "none without schedule and duration")
    if schedule is None or duration is None:
        return None
    return Window(schedule=schedule, duration=duration, time_zone=time_zone)


def count_or_share(value: Any) -> tuple[int, bool]:
    """Parse `5`, `"5"` or `"10%"` as (number, whether it is a share). Raises ValueError."""
    if not isinstance(value, str):
        return whole_number(value, 0, 999_999_999), False
    match = _COUNT_OR_SHARE.fullmatch(value)
    if match is None or (match[2] and int(match[1]) > 100):
        raise ValueError("neither a count nor a share")
    return int(match[1]), bool(match[2])


def _zone_name(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    zone(value)
    return value
