"""Label selectors and node selector terms, held against the rules of the Kubernetes documentation written out again."""

import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from fuzz.mutations import ODD_TEXTS, mutated_json, mutated_text
from fuzz.reduction import smaller_json
from fuzz.target import Disagreement, Target
from leeward.adapters.folder.schema import SchemaError, check_of
from leeward.errors import InvalidInputError
from leeward.scheduling.selectors import LabelRequirement, LabelSelector, NodeTerm, selector

KEYS = ("app", "gen", "topology.kubernetes.io/zone", "team", "metadata.name", "x")
VALUES = ("", "web", "db", "1", "5", "+5", "-3", "007", "9223372036854775807", "9223372036854775808", "5.0")
NOT_NUMBERS = ("1_0", " 5", "5 ", "\u0663", "\uff11", "0x5", "1e3", "--5", "-", "5\n")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INT64 = re.compile(r"[+-]?[0-9]+")


class Selectors(Target[dict[str, Any]]):
    """Selector of pods, terms of nodes, and the labels that they are asked about."""

    name = "selectors"
    goal = 3_000_000
    short = 6_000

    def generate(self, chance: Random) -> dict[str, Any]:
        """Return a selector, a node term and labels; in a third of the cases with something else in them."""
        raw = {
            "selector": {"matchLabels": _labels(chance), "matchExpressions": _lines(chance, OPERATORS[:4])},
            "term": {"matchExpressions": _lines(chance, OPERATORS), "matchFields": _lines(chance, OPERATORS[:2])},
            "labels": [_labels(chance) for _ in range(4)],
        }
        kind = chance.randrange(6)
        if kind < 4:
            return raw
        part = ("selector", "term")[kind % 2]
        return {**raw, part: mutated_json(chance, raw[part])}

    def check(self, value: dict[str, Any]) -> None:
        """Hold the answers about each set of labels against the documentation's, where the shape is a selector's."""
        labels = value["labels"]
        if _has_shape("selector", value["selector"]):
            _hold_selector(value["selector"], labels)
        if _has_shape("nodeTerm", value["term"]):
            _hold_term(value["term"], labels)

    def smaller(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield values with one part less."""
        return (one for one in smaller_json(value) if isinstance(one, dict) and one.keys() == value.keys())


def _has_shape(name: str, raw: Any) -> bool:
    try:
        check_of(name)(raw, "")
    except SchemaError:
        return False
    return True


def _hold_selector(raw: Mapping[str, Any], labels: list[dict[str, str]]) -> None:
    read = selector(raw, {})
    lines = _lines_of(raw)
    turned = {
        "matchLabels": dict(reversed((raw.get("matchLabels") or {}).items())),
        "matchExpressions": [*reversed(raw.get("matchExpressions") or ()), *(raw.get("matchExpressions") or ())],
    }
    if selector(turned, {}) != read:
        raise Disagreement(f"order: found two selectors, expected one for {json.dumps(raw)[:200]}")
    for own in labels:
        if read.matches(own) != all(_holds(line, own) for line in lines):
            raise Disagreement(f"selector: found {read.matches(own)}, expected otherwise for {own} of {lines}")
        if read.pair is not None and read.matches(own) and own.get(read.pair[0]) != read.pair[1]:
            raise Disagreement(f"pair: found {read.pair}, expected it in {own}")
    if read.empty != (not lines) or LabelSelector(nothing=True).matches({}):
        raise Disagreement(f"empty: found {read.empty}, expected {not lines}")


def _hold_term(raw: Mapping[str, Any], labels: list[dict[str, str]]) -> None:
    try:
        read = NodeTerm.from_json(raw)
    except InvalidInputError:
        return
    lines, fields = raw.get("matchExpressions") or [], raw.get("matchFields") or []
    for own in labels:
        name = own.get("app", "node-1")
        want = bool(lines or fields) and all(_holds(line, own) for line in lines)
        want = want and all(_holds(line, {"metadata.name": name}) for line in fields)
        if read.matches(name, own) != want:
            raise Disagreement(f"term: found {not want}, expected {want} for {own} of {lines} and {fields}")
    for line in lines:
        LabelRequirement.from_json(line)


def _lines_of(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    pairs = (raw.get("matchLabels") or {}).items()
    equal = [{"key": key, "operator": "In", "values": [value]} for key, value in pairs]
    return [*equal, *(raw.get("matchExpressions") or [])]


def _holds(line: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a line holds: "Labels and Selectors" and "Assigning Pods to Nodes" of the documentation."""
    key, values = line["key"], line.get("values") or []
    match line["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return not (key in labels and labels[key] in values)
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    if key not in labels or len(set(values)) != 1:
        return False
    have, bound = labels[key], values[0]
    if not (_INT64.fullmatch(have) and _INT64.fullmatch(bound) and len(have) < 4000 and len(bound) < 4000):
        return False
    if any(not -(2**63) <= int(number) < 2**63 for number in (have, bound)):
        return False
    return int(have) > int(bound) if line["operator"] == "Gt" else int(have) < int(bound)


def _lines(chance: Random, operators: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_line(chance, operators) for _ in range(chance.choice((0, 1, 1, 2, 3)))]


def _line(chance: Random, operators: tuple[str, ...]) -> dict[str, Any]:
    operator = chance.choice(operators)
    count = chance.choice((1, 1, 1, 0, 2)) if operator in {"Gt", "Lt"} else chance.choice((0, 1, 2, 3))
    return {"key": chance.choice(KEYS), "operator": operator, "values": [_value(chance) for _ in range(count)]}


def _labels(chance: Random) -> dict[str, str]:
    return {chance.choice(KEYS): _value(chance) for _ in range(chance.choice((0, 1, 2, 3, 5)))}


def _value(chance: Random) -> str:
    match chance.randrange(12):
        case 0:
            return chance.choice(NOT_NUMBERS)
        case 1:
            return chance.choice(ODD_TEXTS)
        case 2:
            return mutated_text(chance, chance.choice(VALUES))
        case 3:
            return str(chance.randrange(-(2**65), 2**65))
    return chance.choice(VALUES)
