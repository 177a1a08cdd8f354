"""Decisions of Choice and Wait states: which way, and how long."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from leeward.model.times import parse_instant
from simulation.machine.execution import EXPRESSION, NO_CHOICE, RUNTIME, StatesError

Value = Callable[[Any], Any]  # of a field of the state


def chosen(definition: Mapping[str, Any], value: Value) -> Mapping[str, Any]:
    """Return the first choice whose condition holds, else the state itself with its default as Next.

    Raises StatesError: a condition that is neither true nor false, or nothing holds and there is no default.
    """
    for choice in definition["Choices"]:
        holds = value(choice["Condition"])
        if not isinstance(holds, bool):
            raise StatesError(EXPRESSION, f"{choice['Condition']} is no condition, found {holds!r}")
        if holds:
            found: Mapping[str, Any] = choice
            return found
    if "Default" not in definition:
        raise StatesError(NO_CHOICE, "no choice holds and there is no default")
    return {**definition, "Next": definition["Default"]}


def seconds_of(definition: Mapping[str, Any], value: Value, now: datetime) -> float:
    """Return the state's Seconds, or those until its Timestamp; a time that has passed is no wait. Raises StatesError
    for negative Seconds.
    """
    if "Seconds" in definition:
        seconds = float(value(definition["Seconds"]))
        if seconds < 0:
            raise StatesError(RUNTIME, f"Seconds: found {seconds}, expected none below 0")
        return seconds
    return max(0.0, (parse_instant(value(definition["Timestamp"])) - now).total_seconds())
