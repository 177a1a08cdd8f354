"""A join in a template's condition, by which a template asks whether a list parameter is empty: ministack compares the
function itself with the other side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ministack.services.cloudformation import changesets, engine, handlers, stacks

from local.aws.pins import expect_parameters

Conditions = dict[str, bool]


def install() -> None:
    """Carry joins out before conditions are evaluated, wherever ministack does that."""
    expect_parameters("ministack", engine._evaluate_conditions, "template", "params")
    evaluate = _with_joins(engine._evaluate_conditions)
    for module in (engine, changesets, handlers, stacks):
        module._evaluate_conditions = evaluate


def _with_joins(original: Callable[..., Conditions]) -> Callable[..., Conditions]:
    @functools.wraps(original)
    def evaluate(template: Mapping[str, Any], params: Mapping[str, Any]) -> Conditions:
        return original({**template, "Conditions": _joined(template.get("Conditions", {}), params)}, params)

    return evaluate


def _joined(value: Any, params: Mapping[str, Any]) -> Any:
    """Return the expression with the text of each join of a list parameter; ministack keeps a list as one text."""
    match value:
        case {"Fn::Join": [str(delimiter), {"Ref": str(name)}]} if name in params:
            return delimiter.join(params[name]["Value"].split(","))
        case dict():
            return {key: _joined(item, params) for key, item in value.items()}
        case list():
            return [_joined(item, params) for item in value]
    return value
