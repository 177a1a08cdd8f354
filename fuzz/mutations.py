"""Changes of valid inputs: of texts, and of JSON values. Each follows from the chance that it is given."""

from collections.abc import Sequence
from random import Random
from typing import Any

ODD_CHARACTERS: Sequence[str] = (
    *"\x00\x01\x07\x08\t\n\r\x1b \x7f\x85\x9b\xa0\xad",
    *"'\"`\\<>&;:,.=#%$*!?|/-_+~^@()[]{}",
    *"\u0130\u0663\u200b\u202e\u2028\u2212\ud800\udfff\ufeff\uff11\U0001f680",
)
ODD_TEXTS: Sequence[str] = (
    "", " ", "0", "-0", "1", "-1", "1e309", "1e-400", "9" * 40, "9" * 5000, "0x1f", "1_000", "NaN", "Infinity", "null",
    "true", "~", "<<", "*x", "&x", "!!int x", "%s", "{}", "[]", "../../etc/passwd", "a" * 300, "i-0abc", "é" * 200,
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-05-01T12:00:00+23:59",
    "<script>alert(1)</script>", "\x1b]0;x\x07", "$Latest", "100%", "-5%", "1.5Gi", "1e0005", "Never", "node-1", "web",
)  # fmt: skip
ODD_NUMBERS: Sequence[int | float] = (
    0, 1, -1, 2, 7, 60, 100, 1000, 65536, -(2**31), 2**31, 2**53, -(2**53), 2**53 + 1, 2**63, -(2**63), 2**64, 10**30,
    10**400, 0.5, -0.0, 1.5, 1e-300, 1e300, 1e16, 0.1,
)  # fmt: skip
DEEPEST = 200


def mutated_text(chance: Random, text: str, others: Sequence[str] = ()) -> str:
    """Return the text after one to four changes; parts of `others` may come in."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        text = _changed(chance, text, others)
    return text


def _changed(chance: Random, text: str, others: Sequence[str]) -> str:
    start = chance.randrange(len(text) + 1)
    end = min(len(text), start + chance.choice((0, 1, 1, 2, 3, 5, 8, 20, 80)))
    part = text[start:end]
    match chance.randrange(10):
        case 0:
            middle = ""
        case 1:
            middle = part + part
        case 2:
            middle = part * chance.choice((3, 10, 40, 300))
        case 3 | 4:
            middle = chance.choice(ODD_CHARACTERS)
        case 5:
            middle = chance.choice(ODD_TEXTS)
        case 6:
            middle = part.swapcase()
        case 7:
            other = chance.choice(others) if others else text
            at = chance.randrange(len(other) + 1)
            middle = other[at : at + chance.choice((1, 3, 10, 40, 200))]
        case 8:
            middle = str(chance.choice(ODD_NUMBERS))
        case _:
            middle = part[::-1]
    return text[:start] + middle + text[end:]


def mutated_json(chance: Random, value: Any, times: int = 0) -> Any:
    """Return the value after a few changes somewhere inside; what is not changed is shared with `value`."""
    for _ in range(times or chance.choice((1, 1, 1, 2, 2, 3, 5))):
        value = _inside(chance, value, DEEPEST)
    return value


def odd_value(chance: Random, value: Any = None) -> Any:
    """Return a value that stands for `value` and mostly does not fit there."""
    match chance.randrange(9):
        case 0:
            return chance.choice((None, True, False, [], {}, [None], {"": None}, {"a": {}}, [[]]))
        case 1 | 2:
            return chance.choice(ODD_NUMBERS)
        case 3 | 4:
            return chance.choice(ODD_TEXTS)
        case 5:
            return [value]
        case 6:
            return {chance.choice(("x", "name", "key", "items", "")): value}
        case 7:
            return str(value) if not isinstance(value, str) else mutated_text(chance, value)
        case _:
            return _nested(chance, value)


def _nested(chance: Random, value: Any) -> Any:
    for _ in range(chance.choice((2, 5, 40, DEEPEST))):
        value = [value] if chance.random() < 0.5 else {"a": value}
    return value


def _inside(chance: Random, value: Any, depth: int) -> Any:
    """Return the value with one change, at a place that a walk from the root has chosen."""
    if depth and isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        return {**value, key: _inside(chance, value[key], depth - 1)}
    if depth and isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], _inside(chance, value[at], depth - 1), *value[at + 1 :]]
    if isinstance(value, dict) and chance.random() < 0.8:
        return _changed_mapping(chance, value)
    if isinstance(value, list) and chance.random() < 0.8:
        return _changed_list(chance, value)
    if isinstance(value, str) and chance.random() < 0.5:
        return mutated_text(chance, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and chance.random() < 0.3:
        return value + chance.choice((-1, 1, 10, -1000))
    return odd_value(chance, value)


def _changed_mapping(chance: Random, value: dict[str, Any]) -> dict[str, Any]:
    keys = list(value)
    if not keys:
        return {chance.choice(ODD_TEXTS): odd_value(chance)}
    key, other = chance.choice(keys), chance.choice(keys)
    match chance.randrange(5):
        case 0:
            return {name: inner for name, inner in value.items() if name != key}
        case 1:
            return {(mutated_text(chance, name) if name == key else name): inner for name, inner in value.items()}
        case 2:
            return {**value, key: value[other]}
        case 3:
            return {**value, chance.choice(ODD_TEXTS): odd_value(chance)}
        case _:
            return {**value, key: odd_value(chance, value[key])}


def _changed_list(chance: Random, value: list[Any]) -> list[Any]:
    if not value:
        return [odd_value(chance)]
    at = chance.randrange(len(value))
    match chance.randrange(5):
        case 0:
            return [*value[:at], *value[at + 1 :]]
        case 1:
            return [*value, value[at]]
        case 2:
            return value[::-1]
        case 3:
            return [*value[:at], odd_value(chance, value[at]), *value[at + 1 :]]
        case _:
            return [*value, *[value[at]] * chance.choice((1, 5, 30))]
