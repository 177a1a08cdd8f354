"""Whole numbers as Kubernetes' Go code reads them from text."""

import re

_WHOLE_NUMBER = re.compile(r"[+-]?0*([0-9]{1,19})")
LEAST, GREATEST = -(2**63), 2**63 - 1


def parse_int(text: str) -> int | None:
    """Return the number as strconv.ParseInt(text, 10, 64) reads it: a sign, ASCII digits, 64 bits; None for every
    other text, also for blanks, `1_000` and digits of other scripts, which Python's `int` takes.
    """
    found = _WHOLE_NUMBER.fullmatch(text)
    if found is None:
        return None
    value = -int(found[1]) if text[0] == "-" else int(found[1])
    return value if LEAST <= value <= GREATEST else None
