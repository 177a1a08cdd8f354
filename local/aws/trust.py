"""Trust policy of a role, evaluated for one caller: the statements and conditions that a member stack writes.

An operator or key that is not known refuses: the emulator must not be more generous than IAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_EQUALS = {"ArnEquals", "StringEquals"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks for the role, and with which external id."""

    arn: str
    external_id: str | None


def trusts(policy: Mapping[str, Any] | None, caller: Caller) -> bool:
    """Return whether a statement allows sts:AssumeRole; a role that does not exist trusts no caller."""
    return any(_allows(one, caller) for one in (policy or {}).get("Statement", ()))


def _allows(statement: Mapping[str, Any], caller: Caller) -> bool:
    account = caller.arn.split(":")[4]
    principals = _many((statement.get("Principal") or {}).get("AWS"))
    named = {caller.arn, f"arn:aws:iam::{account}:root", account} & set(principals)
    return (
        statement.get("Effect") == "Allow"
        and "sts:AssumeRole" in _many(statement.get("Action"))
        and bool(named)
        and all(
            operator in _EQUALS and _known(key, caller) in _many(wanted)
            for operator, keys in (statement.get("Condition") or {}).items()
            for key, wanted in keys.items()
        )
    )


def _known(key: str, caller: Caller) -> str | None:
    return {"aws:PrincipalArn": caller.arn, "sts:ExternalId": caller.external_id}.get(key)


def _many(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)
