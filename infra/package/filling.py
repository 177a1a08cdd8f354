"""Parameters in the place of markers, throughout a merged template.

A cluster's resources, and the list items that are about one cluster alone, exist under its condition. An IAM condition
names a cluster in a key (`aws:ResourceTag/kubernetes.io/cluster/NAME`), where CloudFormation takes no function: such a
policy document becomes a JSON text (`text.py`), which the property accepts as well.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from infra.package.parameters import LISTS, SCALARS, SLOTS, has
from infra.package.text import Part, joined, text
from infra.package.variants import NO_VALUE, if_, is_intrinsic

_SLOT = re.compile("|".join(SLOTS))
_LONGEST_FIRST = sorted({*SCALARS, *LISTS, *SLOTS}, key=len, reverse=True)
_MARKER = re.compile("|".join(map(re.escape, _LONGEST_FIRST)))


def slots_in(value: Any) -> set[str]:
    """Return the clusters' markers anywhere in a value, logical ids included."""
    return set(_SLOT.findall(json.dumps(value)))


def filled(value: Any, within: str = "") -> Any:
    """Return the value with parameters in the place of markers. `within`: cluster whose condition holds already."""
    match value:
        case str():  # a list's marker alone: the CDK writes a list of one item as that item
            return {"Ref": LISTS[value]} if value in LISTS else joined(parts(value))
        case list():
            return _list(value, within)
        case {"Fn::If": [condition, yes, no]}:
            return {"Fn::If": [condition, filled(yes, within), filled(no, within)]}
        case {"Fn::Join": ["", [*items]]}:
            return joined([part for item in items for part in parts(item)])
        case Mapping() if not is_intrinsic(value):
            return {key: _property(key, item, within) for key, item in value.items()}
    return value  # a number, or Ref and GetAtt: a logical id is no text


def parts(item: Any) -> list[Part]:
    """Return a text (or a function that makes one) as the items of a join, markers replaced."""
    if not isinstance(item, str):
        return [filled(item)]
    found: list[Part] = []
    end = 0
    for match in _MARKER.finditer(item):
        found += [item[end : match.start()], _reference(match[0])]
        end = match.end()
    return [part for part in (*found, item[end:]) if part != ""]


def _property(key: str, item: Any, within: str) -> Any:
    """Return a property; documents with a cluster in a key as text, the list of clusters in the environment too."""
    if _SLOT.search(key):
        raise ValueError(f"a cluster in the key {key}, in what is no policy document")
    if key == "PolicyDocument" and _names_cluster_in_key(item):
        return joined(text(item, parts))
    if key == "CLUSTERS":
        return _clusters(item)
    return filled(item, within)


def _names_cluster_in_key(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_SLOT.search(key) or _names_cluster_in_key(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_names_cluster_in_key, value))


def _clusters(value: Mapping[str, Any]) -> Any:
    """Return the JSON list of clusters that the functions read. The CDK has joined all of it into one text; the part
    of a cluster begins with its name.
    """
    pieces = [piece for item in value["Fn::Join"][1] for piece in _cut_at_clusters(item)]
    of_cluster: list[list[Any]] = []
    for piece in pieces:
        if isinstance(piece, str) and piece.startswith('{"name":'):
            of_cluster.append([])
        if of_cluster:
            of_cluster[-1].append(piece)
    items = [if_(has(slot), {"Fn::Join": ["", pieces]}) for slot, pieces in zip(SLOTS, of_cluster, strict=True)]
    return joined(text(items, parts, quoted=False))


def _cut_at_clusters(item: Any) -> Sequence[Any]:
    if not isinstance(item, str):
        return [item]
    cut = re.split(r'(?:^\[|,)(?={"name":)', item)
    return [piece.removesuffix("]") for piece in cut if piece]


def _list(items: Sequence[Any], within: str) -> Any:
    """Return a list: an item about one cluster under its condition, a list's marker replaced by the list."""
    for place, item in enumerate(items):
        if (found := _list_marker(item)) is not None:
            condition, marker = found
            others = [each for at, each in enumerate(items) if at != place]
            return _spliced(filled(others, within), condition, {"Ref": LISTS[marker]})
    taken = []
    for item in items:
        slots = slots_in(item)
        one = next(iter(slots)) if len(slots) == 1 else ""
        alone = bool(one) and one != within
        taken.append(if_(has(one), filled(item, one)) if alone else filled(item, within))
    return taken


def _list_marker(item: Any) -> tuple[str, str] | None:
    """Return (condition, marker) of an item that stands for a parameter with a list; no condition is ""."""
    match item:
        case {"Fn::If": [condition, value, absent]} if absent == NO_VALUE:
            inner = _list_marker(value)
            return (condition, inner[1]) if inner else None
        case {"Fn::Join": ["", [*_, str(last)]]}:  # the ARN of a parameter
            return next((("", marker) for marker in LISTS if last.endswith(f"parameter{marker}")), None)
        case str() if item in LISTS:
            return "", item
    return None


def _spliced(others: Any, condition: str, more: Mapping[str, str]) -> Any:
    """Return `others` and the items of a list parameter as one list."""
    if not others:
        return more
    both = {"Fn::Split": [",", {"Fn::Join": [",", [*others, {"Fn::Join": [",", more]}]]}]}
    return {"Fn::If": [condition, both, others]} if condition else both


def _reference(marker: str) -> Part:
    """Return what takes a marker's place in a text; a list stands there between the quotes of a JSON list's items."""
    if marker in LISTS:
        return {"Fn::Join": ['","', {"Ref": LISTS[marker]}]}
    return {"Ref": SCALARS.get(marker, marker)}
