"""How docstrings of the product begin, and words that neither code nor documentation uses."""

import ast
import re
from functools import cache
from pathlib import Path

from bench.measure import PRODUCT, PRONOUNS, docstrings, is_fragment

FOLDERS = (
    "account_test",
    "bench",
    "docs",
    "functions",
    "fuzz",
    "infra",
    "local",
    "manifests",
    "recordings",
    "simulation",
    "tests",
)
KINDS = frozenset({".py", ".md", ".json", ".yaml"})
PERSONS = r"(?:no|some|any|every)bod(?:y|ys|ies)|whoever"  # an owner, a tool, a node, no execution: a search finds it
PRIVATE = "|".join(  # each with its term in the field
    (
        "tidings?",  # event
        "given back",  # returned to service
        "by hand",  # manual
        "whose is it|what now|turn round|let it settle",  # states of a state machine: actions or checks
        "ailments?|checkup",  # unhealthy conditions, node health
        "dearest|reckoned",  # most expensive, calculated
        "upgrade told|start round|look at round",
    )
)
WORDS = re.compile(rf"(?<![a-z])(?:{PERSONS}|{PRIVATE})(?![a-z])")
WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+")


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


def test_private_words_do_not_come_back():
    """In code, names of tests and files, stories and documentation alike; only the history keeps them."""
    files = sorted(file for folder in FOLDERS for file in Path(folder).rglob("*") if file.suffix in KINDS)
    assert len(files) > 1000
    assert [
        f"{file}: {word}"
        for file in files
        if file != Path("tests/architecture/test_language.py")
        for word in private(file)
    ] == []


def test_a_private_word_is_found_in_names_and_in_prose():
    names = ("NobodyElse", "WHOEVER", "a test that nobody_runs", "given back", "by-hand", "somebody's")
    assert [bool(WORDS.search(plain(name))) for name in names] == [True] * len(names)
    assert not any(WORDS.search(plain(name)) for name in ("antibody", "body", "by handler"))


def test_a_fragment_is_distinguished_from_a_sentence():
    assert [is_fragment(text) for text in ("Of one cluster.", "None where it fails.", "Whether it runs.")] == [True] * 3
    assert [is_fragment(text) for text in ("Nodes of the group.", "Return whether it runs.", "`a`: b.")] == [False] * 3


def where(file: Path) -> str:
    return file.relative_to(PRODUCT).as_posix()


def private(file: Path) -> set[str]:
    return set(WORDS.findall(plain(f"{file.stem}\n{file.read_text()}")))


def plain(text: str) -> str:
    """Return the text in lower case, the words of names apart."""
    return WORD_ENDS.sub(" ", text).lower()
