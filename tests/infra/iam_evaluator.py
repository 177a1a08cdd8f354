"""Evaluation of a role's statements for one request, as IAM documents it: an allow is needed, a deny wins.

Only what the statements of this stack use: wildcards in actions and resources, the condition operators below. An
operator that is not known fails. Source: IAM user guide, "Policy evaluation logic" and "IAM JSON policy elements:
Condition operators"."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.infra.template import Statement

Values = Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call on one resource. `context`: condition key -> value or values; a missing key is absent in the request."""

    action: str
    resource: str = "*"
    context: Mapping[str, str | Values] = field(default_factory=dict)


def allows(statements: Iterable[Statement], request: Request) -> bool:
    """Return whether some statement allows the request. The stack's roles have no Deny."""
    return any(_applies(statement, request) for statement in statements)


def denies(statements: Iterable[Statement], request: Request) -> bool:
    """Return whether a Deny of a resource's policy holds against the request, whatever the caller's own policies allow.
    Every Deny of this stack names all principals.
    """
    return any(statement.effect == "Deny" and _applies(statement, request) for statement in statements)


def _applies(statement: Statement, request: Request) -> bool:
    return (
        any(_like(pattern.lower(), request.action.lower()) for pattern in statement.actions)
        and any(_like(pattern, request.resource) for pattern in statement.resources)
        and all(
            _holds(operator, wanted if isinstance(wanted, list) else [wanted], request.context.get(key))
            for operator, keys in statement.conditions.items()
            for key, wanted in keys.items()
        )
    )


def _holds(operator: str, wanted: Values, found: str | Values | None) -> bool:
    qualifier, _, plain = operator.rpartition(":")
    if plain == "Null":
        return (found is None) == (wanted[0] == "true")
    negated = plain.removesuffix("IfExists") in {"StringNotEquals", "ArnNotEquals", "StringNotLike", "ArnNotLike"}
    if found is None:
        return qualifier == "ForAllValues" or negated or plain.endswith("IfExists")
    values = [found] if isinstance(found, str) else list(found)
    matches = [any(_matches(plain.removesuffix("IfExists"), one, value) for one in wanted) for value in values]
    if negated:
        return not any(matches)
    return all(matches) if qualifier == "ForAllValues" else any(matches)


def _matches(operator: str, wanted: str, value: str) -> bool:
    match operator:
        case "StringEquals" | "StringNotEquals":
            return wanted == value
        case "Bool":
            return wanted == value.lower()
        case "StringLike" | "ArnLike" | "ArnEquals" | "ArnNotEquals" | "ArnNotLike" | "StringNotLike":
            return _like(wanted, value)
    raise AssertionError(f"unknown condition operator {operator}")


def _like(pattern: str, value: str) -> bool:
    return re.fullmatch("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern), value) is not None
