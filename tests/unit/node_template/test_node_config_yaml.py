"""A NodeConfig in YAML means what PyYAML takes it to mean; hostile texts are refused in time and in one sentence."""

import gc
import time
import warnings
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from leeward.errors import InvalidInputError
from leeward.node_template.node_config_yaml import DEEPEST, LONGEST, load

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
    "- - a\n  - b\n",
    "a: [1,\n  2]\n",
]
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
)
REFUSED = {
    "an anchor": ("a: 1\nb: &x 1", "line 2: found an anchor or an alias, expected each value written out"),
    "an alias": ("a: *x", "line 1: found an anchor or an alias"),
    "billion laughs": (BOMB, "line 1: found an anchor or an alias"),
    "a tag": ("a: !t b", "line 1: found the tag !t, expected a value without a tag"),
    "a tag that builds an object": ("a: !!python/object/apply:os.system [id]", "line 1: found the tag"),
    "a binary": ("a: !!binary aGk=", "line 1: found the tag"),
    "two colons": ("a: b: c", "line 1: mapping values are not allowed here"),
    "an open list": ("a: [1", "line 1: expected ',' or ']'"),
    "a stray bracket": ("a: ]", "line 1: "),
    "a tab": ("\ta: 1", "line 1: found character"),
    "a deeper line": ("a: 1\n  b: 2", "line 2: "),
    "a key twice": ("a: 1\na: 2", 'line 2: found duplicate key "a"'),
    "a key twice in braces": ("a: {b: 1, b: 2}", 'line 1: found duplicate key "b"'),
    "text behind a quote": ("a: 'x' y", "line 1: "),
    "a list as a key": ("? [a]\n: b", "line 1: found a list or a mapping as a key, expected a text"),
    "two documents": ("a: 1\n---\nb: 2", "line 2: but found another document"),
    "deep blocks": ("\n".join(" " * depth + "a:" for depth in range(60)), "maximum depth"),
    "deep lists": ("- " * 60, "maximum depth"),
    "a control character": ("a: \x00", "unacceptable character"),
    "a code point beyond Unicode": ('a: "\\U99999999"', "found what ruamel.yaml cannot read: OverflowError"),
    "too much": ("a" * (LONGEST + 1), f"found {LONGEST + 1} characters, expected at most {LONGEST}"),
}
FULL = LONGEST - 10
HOSTILE = {
    "brackets": "[" * FULL,
    "braces": "{" * FULL,
    "brackets that begin keys": '["]", ' * (FULL // 6),
    "lines of brackets": "[\n" * (FULL // 2),
    "brackets at the deepest level": "[" * DEEPEST + "a," * (FULL // 2 - DEEPEST),
    "dashes": "- " * (FULL // 2),
    "lines of dashes": "-\n" * (FULL // 2),
    "question marks": "? " * (FULL // 2),
    "colons": ": " * (FULL // 2),
    "a long list": f"x: [{'a,' * (FULL // 2 - 3)}]",
    "the same key": f"x: {{{'a,' * (FULL // 2 - 3)}}}",
    "many keys": "".join(f"a{n}: 1\n" for n in range(FULL // 9)),
    "digits": f"a: {'1' * (FULL - 5)}",
    "digits and underscores": f"a: {'1_' * (FULL // 2 - 5)}x",
    "merge keys": "<<: " + "{<<: " * 20 + "{a: 1}" + "}" * 20,
    "a bomb": BOMB,
    "an open quote": '"' + "a" * FULL,
    "escapes": '"' + "\\x41" * (FULL // 4) + '"',
    "directives": "%YAML 1.1\n" * (FULL // 10),
    "documents": "---\n" * (FULL // 4),
    "ampersands": "&" * FULL,
    "tags": "!!str " * (FULL // 6),
    "replacement characters": "\ufffd" * FULL,
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_what_people_write_means_what_pyyaml_says(text):
    assert load(text) == yaml.safe_load(text)


class Written(yaml.SafeDumper):
    """A dumper that writes the same list twice, without an anchor."""

    def ignore_aliases(self, _):
        return True


@given(DOCUMENTS)
def test_what_pyyaml_writes_is_read_back(document):
    assert load(yaml.dump(document, Dumper=Written, width=1000)) == document


@pytest.mark.parametrize(
    "text", ["yes", "on", "1.5", "1e3", "2026-05-06", "0x10", "0o7", "1_000", "=", "<<", "NULL", "9" * 19, ".inf"]
)
def test_other_plain_scalars_are_their_text(text):
    assert load(f"a: {text}") == {"a": text}


@pytest.mark.parametrize("directive", ["1.1", "1.2"])
def test_a_version_changes_no_value(directive):
    assert load(f"%YAML {directive}\n---\na: yes\nb: 012\nc: 1:30") == {"a": "yes", "b": 12, "c": "1:30"}


@pytest.mark.parametrize(("text", "sentence"), REFUSED.values(), ids=REFUSED)
def test_the_rest_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(InvalidInputError) as refused:
        load(text)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_ends_within_a_second(text):
    assert len(text) <= LONGEST
    gc.collect()
    began = time.process_time()  # of this process alone: other tests may share the processor
    with suppress(InvalidInputError):
        load(text)
    assert time.process_time() - began < 1


@given(some.text(max_size=60) | some.text("[]{}&*!|>%@`,:-?#'\"\\ \na1\t", max_size=60))
def test_any_text_is_read_or_refused(text):
    with warnings.catch_warnings(), suppress(InvalidInputError):
        warnings.simplefilter("error")
        load(text)


def test_nothing_is_nothing():
    assert load("") is None
    assert load("# a comment\n---\n") is None
