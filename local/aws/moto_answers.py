"""moto's answers, written several times as fast: the names under which a field may stand are looked up once.

For each field of each object moto asks six providers of aliases, whose answer depends on nothing but the object's
class and the field's shape. Polls of EC2 are most of what the local AWS does, and this was most of a poll."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moto.core import serialize

from local.aws.pins import expect_parameters, expect_source, replace

_Field = tuple[type[Any], str, Any]  # the object's class, the key, the shape


def install() -> None:
    """Replace the search for a field's value."""
    source = inspect.getsource(serialize.AttributePicker.__call__)
    expect_source("moto", "AttributePicker", source, "for possible_key in self.get_possible_keys(context):")
    picker = serialize.XFormedAttributePicker
    expect_parameters("moto", picker.get_possible_keys, "self", "context")
    replace(picker, get_possible_keys=_remembering(picker.get_possible_keys))


def _remembering(original: Callable[[Any, Any], Iterator[str]]) -> Callable[[Any, Any], Iterable[str]]:
    known: dict[_Field, tuple[str, ...]] = {}

    def get_possible_keys(picker: Any, context: Any) -> Iterable[str]:
        if picker.alias_providers is not serialize.DEFAULT_ALIAS_PROVIDERS:
            return original(picker, context)
        field = (type(context.obj), context.key, context.shape)
        if field not in known:
            known[field] = tuple(dict.fromkeys(original(picker, context)))
        return known[field]

    return get_possible_keys
