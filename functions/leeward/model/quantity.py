"""Quantities of Kubernetes (`100m`, `1.5Gi`, `2e3`) as whole numbers: CPU in thousandths, everything else in its unit.

`Amounts` are the resources that nodes offer and pods request: resource name -> whole number, so that sums are exact."""

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any

from leeward.errors import InvalidInputError

CPU, MEMORY, PODS, EPHEMERAL_STORAGE = "cpu", "memory", "pods", "ephemeral-storage"
Amounts = Mapping[str, int]
LARGEST = 2**63 - 1

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?")
_BINARY = {name: Decimal(1024) ** power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_DECIMAL = {name: Decimal(1000) ** power for power, name in enumerate(("k", "M", "G", "T", "P", "E"), 1)}
_SMALL = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1)}
_FACTORS = {**_BINARY, **_DECIMAL, **_SMALL}


def amount(resource: str, text: object, *, down: bool = False) -> int:
    """Return the quantity as a whole number, rounded up as kube-scheduler rounds requests; `down` for a node's offer.

    Source: Kubernetes' resource.Quantity (serialisation format), which caps values larger than 2^63 - 1. Raises
    InvalidInputError naming the value found.
    """
    return _whole(resource, str(text), down)


@lru_cache(maxsize=4096)
def _whole(resource: str, text: str, down: bool) -> int:
    """Parse a quantity, cached: thousands of pods request the same few amounts."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(f"{resource}: found {text!r}, expected a quantity such as 500m, 2 or 1.5Gi")
    number, exponent, suffix = found.groups(default="")
    value = Decimal(number + exponent) * _FACTORS[suffix]
    if resource == CPU:
        value *= 1000
    whole = int(value.to_integral_value(ROUND_FLOOR if down else ROUND_CEILING))
    return max(-LARGEST, min(LARGEST, whole))


def amounts(raw: Mapping[str, Any] | None, *, down: bool = False) -> dict[str, int]:
    """Parse a `requests`, `capacity` or `allocatable` mapping; absent counts as empty. Raises InvalidInputError."""
    return {name: amount(name, text, down=down) for name, text in (raw or {}).items()}


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    """Return the sum, by resource."""
    found: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            found[name] = found.get(name, 0) + value
    return found


def written(resource: str, value: int) -> str:
    """Format the amount in Kubernetes' own spelling: `1930m`, `3Gi`, `7`; memory and storage in the largest whole
    binary unit.
    """
    if resource == CPU:
        return str(value // 1000) if value % 1000 == 0 else f"{value}m"
    if resource in {MEMORY, EPHEMERAL_STORAGE} and value:
        for suffix in ("Ti", "Gi", "Mi", "Ki"):
            if value % int(_BINARY[suffix]) == 0:
                return f"{value // int(_BINARY[suffix])}{suffix}"
    return str(value)
