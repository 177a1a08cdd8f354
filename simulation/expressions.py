"""The expressions of a state machine: JSONata between `{%` and `%}`, with `$states` bound as Step Functions binds it.

Paths and comparisons of a path with a literal or another path, which are most of them, are evaluated here, a hundred
times faster; anything else by jsonata. A test holds both against each other on every expression of the product."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jsonata

Evaluate = Callable[[Mapping[str, Any]], Any]

_PATH = re.compile(r"\$states((?:\.\w+)+)")
_COMPARED = re.compile(r"\$states((?:\.\w+)+) (=|>) (?:'([^']*)'|(\d+)|\$states((?:\.\w+)+))")
_JOINED = re.compile(r"'([^']*)' & \$states((?:\.\w+)+)")


class UndefinedError(Exception):
    """States.QueryEvaluationError: an expression has no value or the wrong type."""


def evaluate(value: Any, states: Mapping[str, Any]) -> Any:
    """Every `{% … %}` inside a JSON value. Raises UndefinedError."""
    if isinstance(value, dict):
        return {key: evaluate(item, states) for key, item in value.items()}
    if isinstance(value, list):
        return [evaluate(item, states) for item in value]
    if not (isinstance(value, str) and value.startswith("{%")):
        return value
    answer = compiled(value.removeprefix("{%").removesuffix("%}").strip())(states)
    if answer is None:
        raise UndefinedError(f"{value} is undefined for {states.get('input')}")
    return answer


@cache
def compiled(expression: str) -> Evaluate:
    """A function of `$states`; None stands for undefined."""
    return quick(expression) or by_jsonata(expression)


def quick(expression: str) -> Evaluate | None:
    """Without jsonata, None where the expression is none of the simple ones."""
    if found := _PATH.fullmatch(expression):
        return _path(found[1])
    if found := _JOINED.fullmatch(expression):
        start, path = found[1], _path(found[2])
        return lambda states: f"{start}{path(states)}" if isinstance(path(states), str) else None
    if (found := _COMPARED.fullmatch(expression)) is None:
        return None
    left, operator, text, number, other = _path(found[1]), found[2], found[3], found[4], found[5]
    literal = text if text is not None else int(number) if number else None
    right: Evaluate = _path(other) if other else lambda _: literal
    return _equal(left, right) if operator == "=" else _greater(left, right)


def by_jsonata(expression: str) -> Evaluate:
    """The whole language."""
    parsed = jsonata.Jsonata(expression)

    def run(states: Mapping[str, Any]) -> Any:
        frame = parsed.create_frame()
        frame.bind("states", dict(states))
        return parsed.evaluate(None, frame)

    return run


def _path(dotted: str) -> Evaluate:
    steps = dotted.removeprefix(".").split(".")

    def walk(states: Mapping[str, Any]) -> Any:
        found: Any = states
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        return found

    return walk


def _equal(left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda states: left(states) is not None and left(states) == right(states)


def _greater(left: Evaluate, right: Evaluate) -> Evaluate:
    def compare(states: Mapping[str, Any]) -> Any:
        one, two = left(states), right(states)
        return None if one is None or two is None else one > two

    return compare
