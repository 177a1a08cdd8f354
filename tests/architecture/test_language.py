"""How docstrings of the product begin, and words that are not used of machines."""

import ast
from functools import cache
from pathlib import Path

from bench.measure import PRODUCT, PRONOUNS, docstrings, is_fragment


@cache
def texts():
    """Every docstring of the product with its file."""
    return [(file, text) for file in sorted(PRODUCT.rglob("*.py")) for text in docstrings(ast.parse(file.read_text()))]


def test_a_docstring_begins_with_a_verb_or_a_noun_phrase():
    """A reader who skims finds in its first words what a function returns or does."""
    assert [f"{where(file)}: {text.splitlines()[0]}" for file, text in texts() if is_fragment(text)] == []


def test_machines_are_no_persons():
    """Another controller, the owner of the group, no execution: a search finds the subject."""
    assert [f"{where(file)}: {word}" for file, text in texts() for word in PRONOUNS.findall(text)] == []


def test_a_fragment_is_distinguished_from_a_sentence():
    assert [is_fragment(text) for text in ("Of one cluster.", "None where it fails.", "Whether it runs.")] == [True] * 3
    assert [is_fragment(text) for text in ("Nodes of the group.", "Return whether it runs.", "`a`: b.")] == [False] * 3


def where(file: Path) -> str:
    return file.relative_to(PRODUCT).as_posix()
