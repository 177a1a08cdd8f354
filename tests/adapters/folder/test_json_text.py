"""JSON of a file through a sliding buffer: values and places of mistakes are those of the text as a whole."""

import io
import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leeward.adapters.folder import files
from leeward.adapters.folder.files import JsonText, JsonTextError

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)
BLOCKS = st.integers(1, 40)
TRAILING_COMMA = re.compile(r",\s*[]}]")  # of which Python 3.13 has an error of its own
INDENTS = st.sampled_from([None, 0, 4])


def opened(text, block):
    """The text in a buffer of that many bytes; `monkeypatch` would keep its value between examples."""
    files.BLOCK = block
    return JsonText(io.BytesIO(text if isinstance(text, bytes) else text.encode()))


@pytest.fixture(autouse=True)
def _block(monkeypatch):
    monkeypatch.setattr(files, "BLOCK", files.BLOCK)


def reduced(value):
    """The value without null in mappings."""
    if isinstance(value, dict):
        return {key: reduced(inner) for key, inner in value.items() if inner is not None}
    return [reduced(item) for item in value] if isinstance(value, list) else value


def all_of(text):
    """Every document; lists and mappings are walked through as the reader of a folder walks through them."""
    found = []
    while first := text.peek():
        if first == "[":
            found.append([text.value() for _ in text.items()])
        elif first == "{":
            members = {key: text.value() for key in text.members()}
            found.append({key: value for key, value in members.items() if value is not None})
        else:
            found.append(text.value())
    return found


@given(st.lists(VALUES, max_size=3), INDENTS, BLOCKS, st.booleans())
def test_documents_are_those_of_the_standard_library_whatever_the_buffer_holds(documents, indent, block, mark):
    text = "\n ".join(json.dumps(one, indent=indent, ensure_ascii=mark) for one in documents)
    encoded = text.encode("utf-8-sig" if mark else "utf-8")
    assert all_of(opened(encoded, block)) == [reduced(one) for one in documents]


def at_once(text):
    """Every document of the text as a whole."""
    documents, at = [], 0
    while rest := text[at:].lstrip():
        value, at = json.JSONDecoder().raw_decode(text, len(text) - len(rest))
        documents.append(reduced(value))
    return documents


def outcome(read):
    """The documents, or the mistake with its place and the text there."""
    try:
        return read()
    except json.JSONDecodeError as error:
        return error.msg, f"line {error.lineno} column {error.colno}", error.doc[error.pos : error.pos + 20]
    except JsonTextError as error:
        return error.reason, error.place, error.near


@given(VALUES, INDENTS, BLOCKS, st.integers(0), st.sampled_from(["", "}", "]", '"', "x", ":", "-", "\n"]))
def test_a_mistake_has_the_place_that_the_standard_library_names(value, indent, block, at, mistake):
    text = json.dumps(value, indent=indent)
    at %= len(text) + 1
    text = text[:at] + mistake + text[at + 1 :]
    assume(not TRAILING_COMMA.search(text))
    assert outcome(lambda: all_of(opened(text, block))) == outcome(lambda: at_once(text))


def test_a_number_goes_on_in_the_next_block():
    assert all_of(opened("[12345, 1.5e3] 678", 1)) == [[12345, 1500], 678]


def test_a_mistake_in_the_middle_is_reported_without_reading_on():
    file = io.BytesIO(b'{"items": [{"a": 1 "b": 2}' + b", {}" * 100_000)
    text = JsonText(file)
    files.BLOCK = 1000
    with pytest.raises(JsonTextError, match=r"^line 1 column 20: Expecting ',' delimiter"):
        all_of(text)
    assert file.tell() <= 2000


@pytest.mark.parametrize("block", [1, 2, 5, 1000])
def test_bytes_that_are_no_text_have_their_place_in_the_file(block):
    with pytest.raises(JsonTextError, match=r"^byte 14: text that is not UTF-8 \(invalid start byte\)"):
        all_of(opened('\ufeff{"ä": 1, '.encode() + b"\xff}", block))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, "9" * 5000])
def test_json_out_of_all_proportion_is_refused(text):
    with pytest.raises(JsonTextError, match="out of all proportion"):
        opened(text, 1000).value()
