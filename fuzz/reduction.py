"""Smaller JSON values: the same value with one part less, or one text shorter."""

from collections.abc import Iterator
from typing import Any

from fuzz.target import shorter_texts


def smaller_json(value: Any) -> Iterator[Any]:
    """Yield the value without one of its parts: first whole branches, then what is inside them."""
    if isinstance(value, dict):
        for key in value:
            yield {name: inner for name, inner in value.items() if name != key}
        for key, inner in value.items():
            for smaller in smaller_json(inner):
                yield {**value, key: smaller}
    elif isinstance(value, list):
        for at in range(len(value)):
            yield [*value[:at], *value[at + 1 :]]
        for at, inner in enumerate(value):
            for smaller in smaller_json(inner):
                yield [*value[:at], smaller, *value[at + 1 :]]
    elif isinstance(value, str):
        yield from shorter_texts(value)
