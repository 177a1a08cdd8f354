"""Limits that a service model states: required members, types, lengths, patterns and closed sets of values.

botocore's own validation checks required members and types before it sends a request, and no other limit.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from local.aws.fis.errors import invalid


@functools.cache
def _model() -> Any:
    return botocore.session.get_session().get_service_model("fis")


def check(operation: str, given: Mapping[str, Any]) -> None:
    """Check a request against the model of its operation. Raises Refused."""
    shape = _model().operation_model(operation).input_shape
    report = ParamValidator().validate(given, shape)
    broken = [report.generate_report()] if report.has_errors() else list(_broken(shape, given, ""))
    if broken:
        raise invalid("; ".join(broken))


def _broken(shape: Any, value: Any, path: str) -> Iterator[str]:
    """Return one sentence for each limit that the value exceeds."""
    if shape.type_name == "structure":
        for name, member in value.items():
            yield from _broken(shape.members[name], member, f"{path}{name}")
        return
    low, high = shape.metadata.get("min", 0), shape.metadata.get("max")
    if shape.type_name in {"string", "list", "map"} and not low <= len(value) <= (len(value) if high is None else high):
        yield f"{path}: found a length of {len(value)}, expected {low} to {high}"
    if shape.type_name == "string":
        yield from _wrong_word(shape, value, path)
    elif shape.type_name == "list":
        for member in value:
            yield from _broken(shape.member, member, f"{path}[]")
    elif shape.type_name == "map":
        for key, member in value.items():
            yield from _broken(shape.key, key, f"{path} (key)")
            yield from _broken(shape.value, member, f"{path}.{key}.")


def _wrong_word(shape: Any, value: str, path: str) -> Iterator[str]:
    allowed, pattern = getattr(shape, "enum", None), shape.metadata.get("pattern", "")
    if allowed and value not in allowed:
        yield f"{path}: found {value}, expected one of {', '.join(allowed)}"
    if pattern and r"\p{" not in pattern and re.fullmatch(pattern, value) is None:  # re has no classes of Unicode
        yield f"{path}: found {value!r}, expected {pattern}"
