"""Broken builds as edits: a few words of one function's source are replaced, wherever the function is known."""

import builtins
import dis
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any

import pytest


@dataclass(frozen=True, kw_only=True)
class Edit:
    """`path`: `package.module.function` or `package.module.Class.method`; `old` occurs in it exactly once."""

    path: str
    old: str
    new: str


def edit(path: str, old: str, new: str) -> Edit:
    """The same, shorter to write."""
    return Edit(path=path, old=old, new=new)


def edited(*edits: Edit) -> Callable[[Any], None]:
    """What a `Mutation` breaks."""

    def breaks(shop: Any) -> None:
        apply_all(edits, shop.monkeypatch)

    return breaks


def apply_all(edits: Iterable[Edit], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, until the monkeypatch is undone. A function keeps its identity and gets other code, so that tables,
    imports and closures need no patch. Raises LookupError for an edit that fits the source no longer, or names what the
    function's module does not know: its NameError would be caught by any test.
    """
    by_path: dict[str, list[Edit]] = {}
    for one in edits:
        by_path.setdefault(one.path, []).append(one)
    for path, parts in by_path.items():
        found = _function(path)
        source = dedent(inspect.getsource(found))
        for one in parts:
            if source.count(one.old) != 1:
                raise LookupError(f"{path}: found {one.old!r} {source.count(one.old)} times, expected it once")
            source = source.replace(one.old, one.new)
        code = _code(source, found)
        if unknown := sorted(_globals_of(code) - found.__globals__.keys() - vars(builtins).keys()):
            raise LookupError(f"{path}: the edit names {', '.join(unknown)}, which its module does not know")
        monkeypatch.setattr(found, "__code__", code)


def _globals_of(code: CodeType) -> set[str]:
    names = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return names.union(*map(_globals_of, inner))


def _function(path: str) -> FunctionType:
    """Looked up without descriptors: a property's getter, what a class method or a decorator wraps."""
    names = path.split(".")
    for length in range(len(names) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(names[:length]))
        except ModuleNotFoundError:
            continue
        for name in names[length:]:
            found = inspect.getattr_static(found, name)
        found = getattr(found, "fget", None) or getattr(found, "__func__", None) or found
        unwrapped: FunctionType = inspect.unwrap(found)
        return unwrapped
    raise LookupError(f"{path}: no such module")


def _code(source: str, function: FunctionType) -> CodeType:
    """At the lines where the function stands, so that a traceback shows its file."""
    before = "\n" * (function.__code__.co_firstlineno - 1)
    compiled = compile(before + source, function.__code__.co_filename, "exec")
    return next(one for one in compiled.co_consts if isinstance(one, CodeType) and one.co_name == function.__name__)
