"""Quantities of Kubernetes (`100m`, `1.5Gi`, `2e3`) as whole numbers: CPU in thousandths, everything else in its unit.

`Amounts` are the resources that nodes offer and pods request: resource name -> whole number, so that sums are exact."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.raw_fields import parse_int
from leeward.model.visible import QUOTED, quoted

CPU, MEMORY, PODS, EPHEMERAL_STORAGE = "cpu", "memory", "pods", "ephemeral-storage"
Amounts = Mapping[str, int]
LARGEST = 2**63 - 1

_QUANTITY = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?"
)
_BINARY = {name: 1024**power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO = 10**9  # parts of one; a finer value is rounded away from zero
_FAR = 40  # places before or after the point: past any value that counts
_EXACT = 150  # digits; a longer number differs from the next one only past every place that counts


def amount(resource: str, text: object, *, down: bool = False) -> int:
    """Return the quantity as a whole number, rounded up as kube-scheduler rounds requests; `down` for a node's offer.

    Source: Kubernetes' resource.Quantity (serialisation format, ParseQuantity, Value), which keeps billionths, rounds
    away from zero and caps values larger than 2^63 - 1. A text without a digit (`.`, `Ki`), which its scanner takes for
    0 and its grammar does not have, is refused; so are blanks. Raises InvalidInputError naming the value found.
    """
    return _whole(resource, str(text), down)


@lru_cache(maxsize=4096)
def _whole(resource: str, text: str, down: bool) -> int:
    """Parse a quantity, cached: thousands of pods request the same few amounts."""
    billionths = _billionths(text)
    if billionths is None:
        name, expected = resource[:QUOTED], "a quantity such as 500m, 2 or 1.5Gi"
        raise InvalidInputError(f"{name}: found {quoted(text)}, expected {expected}")
    if resource == CPU:
        billionths *= 1000
    whole = billionths // _NANO if down else _away_from_zero(billionths, _NANO)
    return max(-LARGEST, min(LARGEST, whole))


def _billionths(text: str) -> int | None:
    """Return the value in billionths, capped far past `LARGEST`; None for a text that is no quantity."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    sign, whole, fraction, exponent, suffix = found.groups(default="")
    power = parse_int(exponent) if exponent else _POWERS_OF_TEN.get(suffix, 0)
    if power is None:
        return None
    digits = (whole + fraction).lstrip("0")
    places = power - len(fraction)  # the value is `digits` * 10^places * the binary factor
    if not digits:
        return 0
    if len(digits) + places > _FAR:
        value = LARGEST * _NANO
    elif len(digits) + places < -_FAR:
        value = 1
    else:
        value = _scaled(digits, places + 9, _BINARY.get(suffix, 1))
    if suffix in _BINARY:
        value = min(value, LARGEST * _NANO)
    return -value if sign == "-" else value


def _scaled(digits: str, places: int, factor: int) -> int:
    """Return `digits` * 10^places * factor, rounded up. Of many digits the last ones only say that there are some."""
    cut = digits[_EXACT:]
    number = int(digits[:_EXACT] + ("1" if cut.strip("0") else "0") * bool(cut)) * factor
    places += max(0, len(cut) - 1)
    return number * 10**places if places >= 0 else _away_from_zero(number, 10**-places)


def _away_from_zero(value: int, unit: int) -> int:
    return -(-value // unit) if value > 0 else value // unit


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
            if value % _BINARY[suffix] == 0:
                return f"{value // _BINARY[suffix]}{suffix}"
    return str(value)
