"""Expressions of a state machine: JSONata between `{%` and `%}`, with `$states` and variables bound.

Paths and comparisons of a path with a literal or another path, which are most of them, are evaluated here, a hundred
times faster; anything else by jsonata. A test compares both on every expression of the product. A null at the top of an
answer cannot be distinguished from nothing."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jsonata

Evaluate = Callable[[Mapping[str, Any]], Any]

_DOTTED = r"\$([A-Za-z_]\w*(?:\.\w+)*)"
_PATH = re.compile(_DOTTED)
_COMPARED = re.compile(rf"{_DOTTED} (=|>) (?:'([^']*)'|(\d+)|{_DOTTED})")
_POSITIVE = re.compile(rf"{_DOTTED} > 0 \? \$\1 : (\d+)")
_JOINED = re.compile(rf"'([^']*)' & {_DOTTED}")


class UndefinedError(Exception):
    """Error States.QueryEvaluationError: an expression has no value or the wrong type."""


def evaluate(value: Any, scope: Mapping[str, Any]) -> Any:
    """Evaluate every `{% … %}` inside a JSON value; `scope` holds `states` and the variables by name. Raises
    UndefinedError.
    """
    if isinstance(value, dict):
        return {key: evaluate(item, scope) for key, item in value.items()}
    if isinstance(value, list):
        return [evaluate(item, scope) for item in value]
    if not (isinstance(value, str) and value.startswith("{%")):
        return value
    answer = compiled(value.removeprefix("{%").removesuffix("%}").strip())(scope)
    if answer is None:
        raise UndefinedError(f"{value} is undefined for {scope['states'].get('input')}")
    return answer


@cache
def compiled(expression: str) -> Evaluate:
    """Compile an expression into a function of the scope; None stands for undefined."""
    return quick(expression) or by_jsonata(expression)


def quick(expression: str) -> Evaluate | None:
    """Compile an expression without jsonata, None where it is none of the simple ones."""
    if found := _PATH.fullmatch(expression):
        return _path(found[1])
    if found := _JOINED.fullmatch(expression):
        start, path = found[1], _path(found[2])
        return lambda scope: _concatenated(start, path(scope))
    if found := _POSITIVE.fullmatch(expression):
        return _positive(_path(found[1]), int(found[2]))
    if (found := _COMPARED.fullmatch(expression)) is None:
        return None
    left, operator, text, number, other = _path(found[1]), found[2], found[3], found[4], found[5]
    literal = text if text is not None else int(number) if number else None
    right: Evaluate = _path(other) if other else lambda _: literal
    return _equal(left, right) if operator == "=" else _greater(left, right)


def by_jsonata(expression: str) -> Evaluate:
    """Compile an expression of the whole language."""
    parsed = jsonata.Jsonata(expression)
    parsed.register_lambda("parse", json.loads)  # Step Functions' own

    def run(scope: Mapping[str, Any]) -> Any:
        frame = parsed.create_frame()
        for name, value in scope.items():
            frame.bind(name, value)
        try:
            return _plain(parsed.evaluate(None, frame))
        except (jsonata.JException, ValueError) as error:
            raise UndefinedError(f"{expression}: {error}") from None

    return run


def _plain(found: Any) -> Any:
    """Return the value without jsonata's own kinds of lists and dicts."""
    if isinstance(found, dict):
        return {key: _plain(value) for key, value in found.items()}
    return [_plain(value) for value in found] if isinstance(found, list) else found


def _concatenated(start: str, value: Any) -> str | None:
    """Join as JSONata's `&`, which treats nothing as an empty text."""
    return f"{start}{value or ''}" if value is None or isinstance(value, str) else None


def _path(dotted: str) -> Evaluate:
    steps = dotted.split(".")

    def walk(scope: Mapping[str, Any]) -> Any:
        found: Any = scope
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        return found

    return walk


def _positive(value: Evaluate, other: int) -> Evaluate:
    def choose(scope: Mapping[str, Any]) -> Any:
        seconds = value(scope)
        return seconds if seconds is not None and seconds > 0 else other

    return choose


def _equal(left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda scope: left(scope) is not None and left(scope) == right(scope)


def _greater(left: Evaluate, right: Evaluate) -> Evaluate:
    def compare(scope: Mapping[str, Any]) -> Any:
        one, two = left(scope), right(scope)
        return None if one is None or two is None else one > two

    return compare
