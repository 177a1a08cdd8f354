"""Label selectors (both spellings) and field selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .errors import bad_request
from .objects import Obj, labels_of

Predicate = Callable[[Obj], bool]

_REQUIREMENT = re.compile(
    r"^(?P<absent>!?)\s*(?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=|>|<)\s*(?P<value>[\w.-]*)|\s(?P<set>in|notin)\s*\((?P<values>[^)]*)\))?$"
)
_SPLIT = re.compile(r"(?:[^,(]|\([^)]*\))+")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt", "in": "In", "notin": "NotIn"}


def expression_matches(expression: Obj, labels: dict[str, str]) -> bool:
    """Match one `matchExpressions` entry; `NotIn` also matches when the key is missing, `Gt` and `Lt` compare
    integers.
    """
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
    match operator:
        case "In":
            return labels.get(key) in values if key in labels else False
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt":
            return _compares(operator, labels.get(key), values)
        case _:
            raise bad_request(f'"{operator}" is not a valid label selector operator')


def _compares(operator: str, have: str | None, values: list[str]) -> bool:
    try:
        left, right = int(have or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def label_selector_matches(selector: Obj | None, labels: dict[str, str]) -> bool:
    """Match a `metav1.LabelSelector`: None selects nothing, the empty one everything."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(expression_matches(expression, labels) for expression in selector.get("matchExpressions") or [])


def parsed_label_selector(text: str) -> list[Obj]:
    """Return the query parameter's spelling (`a=b,c!=d,e in (f,g),!h`) as expressions. Raises 400 if it does not
    parse.
    """
    expressions: list[Obj] = []
    for part in _SPLIT.findall(text):
        found = _REQUIREMENT.match(part.strip())
        if found is None:
            raise bad_request(f"unable to parse requirement: {part.strip()}")
        expressions.append(_expression(found.groupdict()))
    return expressions


def _expression(part: dict[str, Any]) -> Obj:
    if part["set"]:
        values = [value.strip() for value in part["values"].split(",")]
        return {"key": part["key"], "operator": _OPERATORS[part["set"]], "values": values}
    if part["op"]:
        return {"key": part["key"], "operator": _OPERATORS[part["op"]], "values": [part["value"]]}
    return {"key": part["key"], "operator": "DoesNotExist" if part["absent"] else "Exists"}


def parsed_field_selector(text: str) -> list[tuple[str, bool, str]]:
    """Return (path, equal?, value) for each term of `a=b,c!=d`. Raises 400 for a term without an operator."""
    terms = []
    for part in filter(None, (term.strip() for term in text.split(","))):
        found = re.match(r"^([^=!]+)(==|=|!=)(.*)$", part)
        if found is None:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        terms.append((found[1].strip(), found[2] != "!=", found[3].strip()))
    return terms


# What `pods` accept (registry/core/pod/strategy.go) and what every resource does; others are refused as the real
# server refuses them, because a client that relies on an unsupported field would only fail in production.
_FIELDS = {
    "pods": {
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    },
    "nodes": {"spec.unschedulable"},
    "namespaces": {"status.phase"},
    "replicasets": {"status.replicas"},
    "jobs": {"status.successful"},
    "events": {
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
        "reason", "reportingComponent", "source", "type",
    },
}  # fmt: skip


def matcher(resource: str, *, labels: str = "", fields: str = "", namespace: str | None = None) -> Predicate:
    """Return the predicate of a list or watch request. Raises 400 for selectors that do not parse or fields unknown."""
    expressions = parsed_label_selector(labels) if labels else []
    terms = parsed_field_selector(fields) if fields else []
    known = _FIELDS.get(resource, set()) | {"metadata.name", "metadata.namespace"}
    for path, _, _ in terms:
        if path not in known:
            raise bad_request(f"field label not supported: {path}")

    def matches(obj: Obj) -> bool:
        if namespace and obj["metadata"].get("namespace") != namespace:
            return False
        if any((field_text(obj, path) == value) is not equal for path, equal, value in terms):
            return False
        return all(expression_matches(expression, labels_of(obj)) for expression in expressions)

    return matches


def field_text(obj: Any, path: str) -> str:
    """Return the value at a dotted path as the field selector compares it: missing is empty, booleans are lower
    case.
    """
    if path == "source":
        path = "source.component"
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    if obj is None:
        return "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
    return str(obj).lower() if isinstance(obj, bool) else str(obj)


def only_name(terms: Iterable[tuple[str, bool, str]]) -> str | None:
    """Return the one name requested with `metadata.name=`, if any: lists by name need no scan."""
    return next((value for path, equal, value in terms if path == "metadata.name" and equal), None)
