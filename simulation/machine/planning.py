"""Plan of the visit of a Map or Parallel state: the walks to make, how many at once, how many may fail."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulation.machine.execution import EXPRESSION, StatesError, within_limit
from simulation.machine.fan_out import AT_ONCE

Value = Callable[..., Any]  # of a field of the state: `value(field)`, and inside an iteration `value(field, item)`


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Path of one walk: its states, where it starts and with what. `item` is the context's `Map`."""

    states: Mapping[str, Any]
    start: str
    data: Any
    item: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Walks of one visit. `tolerated` is None where the first error is the error of all."""

    ways: Sequence[Way]
    at_once: int
    tolerated: int | None


def visit_of(definition: Mapping[str, Any], data: Any, value: Value) -> Visit:
    """Plan the visit. Raises StatesError for expressions without a value, for items that are no list, and for too much
    data.
    """
    if definition["Type"] == "Parallel":
        given = within_limit(value(definition["Arguments"]), "Arguments") if "Arguments" in definition else data
        branches = definition["Branches"]
        ways = [Way(states=branch["States"], start=branch["StartAt"], data=given) for branch in branches]
        return Visit(ways=ways, at_once=len(ways), tolerated=None)
    items = _items(value(definition["Items"]) if "Items" in definition else data)
    at_once = int(value(definition.get("MaxConcurrency", 0))) or AT_ONCE
    ways = [_iteration(definition, number, item, value) for number, item in enumerate(items)]
    return Visit(ways=ways, at_once=min(at_once, AT_ONCE), tolerated=_tolerated(definition, len(items), value))


def _items(found: Any) -> Sequence[Any]:
    if isinstance(found, list):
        return found
    if isinstance(found, dict):
        return [{"Key": key, "Value": value} for key, value in found.items()]
    raise StatesError(EXPRESSION, f"Items must be an array or an object, found {type(found).__name__}")


def _iteration(definition: Mapping[str, Any], number: int, item: Any, value: Value) -> Way:
    processor, context = definition["ItemProcessor"], {"Item": {"Index": number, "Value": item}}
    data = value(definition["ItemSelector"], context) if "ItemSelector" in definition else item
    return Way(states=processor["States"], start=processor["StartAt"], data=within_limit(data, "an item"), item=context)


def _tolerated(definition: Mapping[str, Any], count: int, value: Value) -> int | None:
    """Return the tolerated failures: the count or the percentage, whichever is reached first."""
    limits = []
    if "ToleratedFailureCount" in definition:
        limits.append(int(value(definition["ToleratedFailureCount"])))
    if "ToleratedFailurePercentage" in definition:
        limits.append(int(count * value(definition["ToleratedFailurePercentage"]) / 100))
    return min(limits) if limits else None
