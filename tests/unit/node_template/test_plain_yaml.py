"""The part of YAML that is understood means what PyYAML takes it to mean; the rest is refused, never misread."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from leeward.errors import InvalidInputError
from leeward.node_template.plain_yaml import load

WORDS = some.from_regex(r"[a-dW-Z][a-dW-Z0-9_/.-]{0,7}", fullmatch=True)
SCALARS = WORDS | some.integers(-999, 999) | some.booleans() | some.none() | some.text("a b:#'\"{[,", max_size=6)
DOCUMENTS = some.recursive(
    SCALARS,
    lambda inner: some.lists(inner, min_size=1, max_size=3) | some.dictionaries(WORDS, inner, min_size=1, max_size=3),
    max_leaves=12,
)
UNDERSTOOD = [
    "a: 1\nb:\n  - c: 1\n    d: 2\n  -\n    e: f\n  - [1, 2]\nurl: http://x:80/y\n",
    "a:\n- b\n- c\nd: e\n",
    "x: \"a # b\" # c\ny: 'it''s'\nz: {a: http://x:80, b: true}\n",
    "a: |\n  one\n\n    two\nb: >-\n  three\n  four\n",
    "# only\n---\na: ~\n\n\nb:\nc: []\nd: {}\n",
    '"quoted key": 1\n\'another\': {"x y": [a, {b: c}]}\n',
]
REFUSED = [
    "a: &x 1",
    "a: *x",
    "a: !t b",
    "a: b: c",
    "a: [1",
    "a: ]",
    "\ta: 1",
    "a: 1\n  b: 2",
    "a: 1\na: 2",
    "- - a",
    "a: 1\nb",
    "a: 'x' y",
    "a: {b: [c}",
    "[" * 100,
    "\n".join(" " * depth + "a:" for depth in range(60)),
]


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_what_people_write_means_what_pyyaml_says(text):
    assert load(text) == yaml.safe_load(text)


@given(DOCUMENTS)
def test_what_pyyaml_writes_is_read_back_or_refused(document):
    """Refused is a fair answer, a wrong value is not."""
    text = yaml.safe_dump(document, width=1000)
    try:
        found = load(text)
    except InvalidInputError:
        return
    assert found == document


@given(some.dictionaries(WORDS, WORDS | some.integers(-999, 999) | some.lists(WORDS, max_size=3), min_size=1))
def test_plain_mappings_are_never_refused(document):
    assert load(yaml.safe_dump(document, default_flow_style=False)) == document


@pytest.mark.parametrize("text", REFUSED)
def test_the_rest_is_refused_with_its_line(text):
    with pytest.raises(InvalidInputError, match=r"^line \d+: found "):
        load(text)


def test_nothing_is_nothing():
    assert load("") is None
    assert load("# a comment\n---\n") is None
