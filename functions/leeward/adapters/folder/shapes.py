"""Shapes that foreign JSON must have before the models read it.

Decides only types, so that a broken file ends in one sentence with its path and never in a traceback."""

from collections.abc import Callable, Mapping
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.quantity import amount
from leeward.model.times import parse_instant
from leeward.policy.fields import shown

Shape = Callable[[Any, str], None]


class ShapeError(Exception):
    """Error for a value of the wrong shape; `path` inside the file, `found` and `expected` as people read them."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(f"{path or 'document'}: found {found}, expected {expected}")


def inside(path: str, key: str) -> str:
    """Return the path of a key: `items[0].metadata.labels["k8s.io/x"]`."""
    if key.replace("-", "_").isidentifier():
        return f"{path}.{key}" if path else key
    return f'{path}["{key}"]'


def anything(value: Any, path: str) -> None:
    """Accept any value, because no code reads it."""


def text(value: Any, path: str) -> None:
    """Accept text, empty or not."""
    if not isinstance(value, str):
        raise ShapeError(path, shown(value), "text")


def name(value: Any, path: str) -> None:
    """Accept text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ShapeError(path, shown(value), "text that is not empty")


def integer(value: Any, path: str) -> None:
    """Accept a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**53:
        raise ShapeError(path, shown(value), "a whole number")


def seconds(value: Any, path: str) -> None:
    """Accept whole seconds that time arithmetic can handle."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 10**9:
        raise ShapeError(path, shown(value), "whole seconds, at most 1000000000")


def quantity(value: Any, path: str) -> None:
    """Accept a Kubernetes quantity."""
    try:
        amount("", value)
    except InvalidInputError:
        raise ShapeError(path, shown(value), "a quantity such as 500m, 2 or 1.5Gi") from None


def boolean(value: Any, path: str) -> None:
    """Accept true or false."""
    if not isinstance(value, bool):
        raise ShapeError(path, shown(value), "true or false")


def instant(value: Any, path: str) -> None:
    """Accept an RFC 3339 time."""
    try:
        parse_instant(value if isinstance(value, str) else "")
    except (ValueError, OverflowError):
        raise ShapeError(path, shown(value), "a time such as 2024-05-01T12:00:00Z") from None


def word(*words: str) -> Shape:
    """Return the shape of a word of a closed set."""

    def check(value: Any, path: str) -> None:
        if value not in words:
            raise ShapeError(path, shown(value), f"one of {', '.join(words)}" if len(words) > 1 else words[0])

    return check


def list_of(shape: Shape) -> Shape:
    """Return the shape of a list, each element of one shape."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, list):
            raise ShapeError(path, shown(value), "a list")
        for index, item in enumerate(value):
            shape(item, f"{path}[{index}]")

    return check


def mapping_of(shape: Shape) -> Shape:
    """Return the shape of a mapping, each value of one shape."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise ShapeError(path, shown(value), "a mapping")
        for key, item in value.items():
            shape(item, inside(path, key))

    return check


def record(needed: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Return the shape of a mapping with certain keys; keys that are not named may hold anything."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise ShapeError(path, shown(value), "a mapping")
        for key, shape in needed.items():
            if key not in value:
                raise ShapeError(inside(path, key), "nothing", "a value")
            shape(value[key], inside(path, key))
        for key, shape in (optional or {}).items():
            if key in value:
                shape(value[key], inside(path, key))

    return check
