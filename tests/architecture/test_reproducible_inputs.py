"""A test that fails fails again: random inputs follow from the commit or from a seed, and one place decides that."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PROFILES = {"register_profile", "load_profile"}
OVERRIDES = {"derandomize", "database", "use_true_random"}


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    texts = [(path, path.read_text()) for path in sorted(Path("tests").rglob("*.py"))]
    return [(path, ast.parse(text)) for path, text in texts if "andom" in text or "hypothesis" in text]


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path, tree in trees():
        yield from ((f"{path}:{node.lineno}", node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def test_the_profile_of_random_properties_is_chosen_in_one_place():
    offenders = [
        where
        for where, call in calls()
        if not where.startswith("tests/conftest.py:")
        and (
            (isinstance(call.func, ast.Attribute) and call.func.attr in PROFILES)
            or any(word.arg in OVERRIDES and not is_false(word.value) for word in call.keywords)
        )
    ]
    assert offenders == []


def test_every_generator_of_random_numbers_has_a_seed():
    offenders = [
        where for where, call in calls() if ast.unparse(call.func) in {"Random", "random.Random"} and not call.args
    ]
    assert offenders == []


def test_no_test_draws_from_the_generator_that_all_share():
    """`import random` is for `random.Random(seed)` alone."""
    sharing = [(path, tree) for path, tree in trees() if any(imports_random(node) for node in ast.walk(tree))]
    offenders = [
        f"{path}:{node.lineno}: random.{node.attr}"
        for path, tree in sharing
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "random" and node.attr != "Random"
    ]
    assert offenders == []


def imports_random(node: ast.AST) -> bool:
    return isinstance(node, ast.Import) and any(name.name == "random" for name in node.names)


def is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False
