"""Quantities of Kubernetes, held against a reading of resource.Quantity's grammar that shares no code with ours."""

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random

from fuzz.mutations import ODD_CHARACTERS, ODD_TEXTS, mutated_text
from fuzz.target import Disagreement, Target, shorter_texts
from leeward.errors import InvalidInputError
from leeward.model.quantity import CPU, LARGEST, MEMORY, amount, written

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
# resource.Quantity's own words: `split` is the regular expression of its error, `NUMBER` its <number>
_SPLIT = re.compile(r"([+-]?[0-9.]++)([eEinumkKMGTP]*[-+]?[0-9]*)")
_NUMBER = re.compile(r"([0-9]+|[0-9]+\.[0-9]+|[0-9]+\.|\.[0-9]+)")
_FACTORS = {
    **{suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate(("n", "u", "m", "", "k", "M"), -3)},
    **{suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate(("G", "T", "P", "E"), 3)},
    **{suffix: Fraction(2) ** (10 * power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}


def expected(text: str) -> int | None:
    """Return the value by the documented grammar, in billionths, rounded away from zero; None for another text."""
    parts = _SPLIT.fullmatch(text)
    if parts is None:
        return None
    number, suffix = parts.groups()
    sign, digits = (-1 if number[0] == "-" else 1), number.lstrip("+-")
    if not _NUMBER.fullmatch(digits):
        return None
    value = Fraction(Decimal(f"0{digits}"))
    if suffix in _FACTORS:
        value *= _FACTORS[suffix]
    elif re.fullmatch(r"[eE][+-]?[0-9]+", suffix):
        exponent = Decimal(suffix[1:])
        if not -(2**63) <= exponent < 2**63:
            return None
        enough = len(text) + 100  # an exponent past it decides alone
        far = max(-enough, min(enough, int(exponent)))
        value *= Fraction(10) ** far
    else:
        return None
    return -sign * (-value * 10**9 // 1)


class Quantities(Target[str]):
    """Texts of quantities, right ones and nearly right ones."""

    name = "quantities"
    goal = 4_200_000
    short = 10_000

    def generate(self, chance: Random) -> str:
        """Return a quantity by the grammar, in three of five cases changed afterwards."""
        text = _number(chance) + _suffix(chance)
        match chance.randrange(10):
            case 0 | 1 | 2 | 3:
                return text
            case 4 | 5:
                at = chance.randrange(len(text) + 1)
                return text[:at] + chance.choice(ODD_CHARACTERS) + text[at + chance.randrange(2) :]
            case 6:
                return str(chance.choice((chance.random(), chance.random() * 10.0 ** chance.randrange(-30, 30))))
            case 7:
                return chance.choice(ODD_TEXTS) + chance.choice(SUFFIXES)
            case _:
                return mutated_text(chance, text)

    def check(self, value: str) -> None:
        """Hold both roundings of both units against the grammar, and the spelling of the amount against its value."""
        exact = expected(value)
        for resource, unit in ((CPU, 1000), (MEMORY, 1)):
            for down in (False, True):
                want = None if exact is None else _rounded(exact * unit, down)
                have = _amount(resource, value, down)
                if have != want:
                    raise Disagreement(f"{resource}: found {have}, expected {want} for {value[:100]!r} ({down=})")
                if have is not None and _amount(resource, written(resource, have), down) != have:
                    raise Disagreement(f"spelling: found {written(resource, have)!r}, expected one of {have}")

    def smaller(self, value: str) -> Iterator[str]:
        """Yield shorter texts."""
        return shorter_texts(value)


def _amount(resource: str, text: str, down: bool) -> int | None:
    try:
        return amount(resource, text, down=down)
    except InvalidInputError:
        return None


def _rounded(billionths: int, down: bool) -> int:
    whole = billionths // 10**9 if down or billionths < 0 else -(-billionths // 10**9)
    return max(-LARGEST, min(LARGEST, whole))


def _number(chance: Random) -> str:
    sign = chance.choice(("", "", "", "-", "+"))
    whole, fraction = _digits(chance), _digits(chance)
    return sign + chance.choice((whole, whole, f"{whole}.{fraction}", f"{whole}.", f".{fraction}"))


def _digits(chance: Random) -> str:
    count = chance.choice((1, 1, 2, 3, 5, 9, 18, 19, 20, 30, 60, 200))
    digits = str(chance.randrange(10**count))
    return chance.choice(("", "", "", "0", "000")) + digits + chance.choice(("", "", "000", "0" * 30))


def _suffix(chance: Random) -> str:
    if chance.random() < 0.7:
        return chance.choice(SUFFIXES)
    power = chance.choice((0, 3, 5, 9, 18, 40, 400, 99_999, 2**31, 2**63 - 1, 2**63, 10**25))
    power = chance.choice((power, -power, chance.randrange(-30, 30)))
    return chance.choice("eE") + chance.choice(("", "+", "0", "0000")) + str(power)
