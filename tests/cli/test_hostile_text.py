"""Names, annotations and error texts of a cluster act on no terminal: they are spelled out."""

import json
import sys
import unicodedata

import pytest
import yaml

from leeward.adapters.kubernetes import bodies
from leeward.cli.output import emit, tell
from leeward.cli.report.texts import safe
from leeward.cli.tables import Table, one_line
from leeward.model.node import Node
from leeward.model.visible import quoted, visible
from leeward.notifications.content import _line
from leeward.policy.fields import legible, shown
from tests.adapters.kubernetes_objects import raw_node
from tests.cli.command import SMALL, a_snapshot
from tests.fakes.clock import START

TITLE = "\x1b]0;PWNED\x07"
RED = "\x1b[31mRED"
BACKWARDS = "abc\u202edef"
ACTS = ("\x1b", "\x07", "\x9b", "\u202e", "\r")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TITLE, r"\x1b]0;PWNED\x07"),
        (RED, r"\x1b[31mRED"),
        (BACKWARDS, r"abc\u202edef"),
        ("\x9b1m\r\ud800", r"\x9b1m\r\ud800"),
        ("Zürich\tnode\nweb … 東京 🚀", "Zürich\tnode\nweb … 東京 🚀"),
    ],
)
def test_what_acts_is_spelled_out_and_words_stay(text, shown):
    assert visible(text) == shown


# Default_Ignorable_Code_Point of Unicode 16, DerivedCoreProperties.txt
IGNORABLE = (
    "00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 FFF0-FFF8 "
    "1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)
SIGNS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}  # format characters with a form
IDEOGRAPHIC_SPACE = 0x3000
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}  # categories


def unseen():
    """Code points that are drawn as nothing, or as the space is."""
    for part in IGNORABLE.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)
    for point in range(0x21, sys.maxunicode + 1):
        if unicodedata.category(chr(point)) in UNSEEN and point not in {*SIGNS, IDEOGRAPHIC_SPACE}:
            yield point
    yield 0x2800  # the Braille pattern without a dot


def test_no_character_is_unseen():
    assert [f"{point:04X}" for point in unseen() if not visible(f"web{chr(point)}1").isascii()] == []


def test_letters_digits_and_marks_stay():
    kinds = {"Lu", "Ll", "Lo", "Nd", "Mn", "Mc", "So", "Sm", "Po"}
    hidden = set(unseen())
    text = "".join(
        chr(point)
        for point in range(0x20, sys.maxunicode + 1)
        if point not in hidden and unicodedata.category(chr(point)) in kinds
    )
    assert visible(text) == text


@pytest.mark.parametrize("write", [visible, quoted, legible, shown, safe, one_line])
@pytest.mark.parametrize("character", ["\u200b", "\xad", "\u3164", "\ufe0f", "\U000e0041", "\u034f", "\xa0"])
def test_names_that_look_alike_differ_wherever_one_is_written(write, character):
    assert write(f"web{character}1").isascii()


def test_a_notification_and_an_event_show_what_is_not_seen():
    body = bodies.event(Node.from_json(raw_node()), reason="R", message="a\u200bb", warning=False, now=START)
    assert body["message"] == r"a\u200bb"
    assert _line("a\u200bb\u3164", 100) == r"a\u200bb\u3164"


@pytest.mark.parametrize("verb", [("plan",), ("blockers", f"n{RED}"), ("drift",)])
@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_a_hostile_node_name_reaches_no_terminal_raw(leeward, tmp_path, verb, output):
    nodes = json.loads((SMALL / "nodes.json").read_text())
    nodes["items"][0]["metadata"] |= {"name": f"n{RED}", "annotations": {"company.example/x": TITLE}}
    folder = a_snapshot(tmp_path, nodes=nodes)
    reported = leeward(*verb, "--snapshot", folder, "-o", output)
    assert not [one for one in ACTS if one in reported.out + reported.err]


def test_a_message_and_a_table_are_spelled_out(capsys):
    table = Table(("NAME",), title=BACKWARDS)
    table.add(f"{TITLE}{RED}")
    emit({}, "table", lambda: [table, f"a sentence{RED}"])
    tell(f"webhook says {RED}")
    reported = capsys.readouterr()
    assert r"\x1b]0;PWNED\x07\x1b[31mRED" in reported.out
    assert r"a sentence\x1b[31mRED" in reported.out
    assert reported.err == "leeward: webhook says \\x1b[31mRED\n"
    assert not [one for one in ACTS if one in reported.out + reported.err]


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize("character", ["\x85", "\x9b", "\x7f", "\u202e", "\u2028"])
def test_a_pods_name_is_escaped_for_programs_and_stays_the_same(leeward, tmp_path, output, character):
    pods = json.loads((SMALL / "pods.json").read_text())
    name = f"web{character}1"
    next(pod for pod in pods["items"] if pod["metadata"]["name"] == "web-1")["metadata"]["name"] = name
    printed = leeward("drain", "node-a", "--snapshot", a_snapshot(tmp_path, pods=pods), "-o", output).out
    assert character not in printed
    document = json.loads(printed) if output == "json" else yaml.safe_load(printed)
    assert f"shop/{name}" in {entry["pod"] for entry in document["evict"]}


def test_a_name_beyond_ascii_is_readable_in_yaml(capsys):
    emit({"name": "Zürich"}, "yaml", lambda: "")
    assert capsys.readouterr().out == "name: Zürich\n"


def test_an_event_is_spelled_out():
    body = bodies.event(Node.from_json(raw_node()), reason="R", message=RED, warning=False, now=START)
    assert body["message"] == r"\x1b[31mRED"
    assert "\x1b" not in json.dumps(body, ensure_ascii=False)
