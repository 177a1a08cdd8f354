"""Names, annotations and error texts of a cluster act on no terminal: they are spelled out."""

import json

import pytest
import yaml

from leeward.adapters.kubernetes import bodies
from leeward.cli.output import emit, tell
from leeward.cli.tables import Table
from leeward.model.node import Node
from leeward.model.visible import visible
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
