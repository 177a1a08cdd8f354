"""Plain tables: columns, order, names, and commands that can be copied."""

import io
import re
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from leeward.blockers.blocker import Blocker, BlockerKind
from leeward.cli import output
from leeward.cli.blockers.tables import blockers_report
from leeward.cli.fitting import Columns, fit, width_of
from leeward.cli.fixes import commands_in
from leeward.cli.node_filter import selector
from leeward.cli.output import Output, View, emit
from leeward.cli.tables import Table, fields, render, sort_key
from leeward.errors import InvalidInputError
from tests.cli.command import NOON, SMALL

TABLE = View(Output.TABLE)
PATCH = """kubectl patch pdb -n a b -p '{"x": {"y":1}}'"""
RECEIVE = "aws sqs receive-message --queue-url https://q/1"
BLOCKERS = Path("tests/cli/snapshots/blockers")


def a_table():
    table = Table(("NODE", "PRICE", "AGE", "WHY"), wide=frozenset({"AGE"}), title="nodes", kind="node")
    table.add("ip-10-0-0-124.eu-west-1.compute.internal", "$0.48", "2h", "held by a sentence of words")
    table.add("b", "$10.20", "90m", "")
    table.add("c", None, "3d", "first\nsecond\tthird")
    return table


def test_columns_are_padded_and_the_last_one_runs_on():
    lines = list(render(a_table(), TABLE))
    assert lines[0] == "nodes"
    assert lines[1].split() == ["NODE", "PRICE", "WHY"]
    assert [line.index(word) for line, word in zip(lines[1:], ("WHY", "held", "-", "first"), strict=True)][1:2] == [
        lines[1].index("WHY")
    ]
    assert lines[3].split() == ["b", "$10.20", "-"]
    assert lines[4].endswith(r"first\nsecond\tthird")
    assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_names_that_begin_alike_are_told_apart_on_any_screen(width):
    names = [f"platform-01337-europe-production-worker-{number}.example.internal" for number in range(3)]
    pods = [f"default/payments-gateway-7c9f-{letter}xkq2" for letter in "abc"]
    rows = [("NODE", "POD", "WHY"), *((name, pod, "blocked") for name, pod in zip(names, pods, strict=True))]
    grid = fit(Columns(names=rows[0], text="WHY"), rows, width)
    assert max(width_of(line) for lines in grid.rows for line in lines) <= width
    heads = [lines[0].split() for lines in grid.rows[1:]]
    assert len({head[0] for head in heads}) == len({head[1] for head in heads}) == 3


def test_wide_shows_every_column_and_name_only_names():
    assert next(iter(list(render(a_table(), View(Output.WIDE)))[1:])).split() == ["NODE", "PRICE", "AGE", "WHY"]
    names = ["node/ip-10-0-0-124.eu-west-1.compute.internal", "node/b", "node/c"]
    assert list(render([a_table(), "a sentence"], View(Output.NAME, sort_by="price"))) == names


def test_without_headers_only_rows_are_left():
    lines = list(render(["a summary", a_table(), "a warning"], View(Output.TABLE, headers=False)))
    assert [line.split()[0] for line in lines] == ["ip-10-0-0-124.eu-west-1.compute.internal", "b", "c"]


@pytest.mark.parametrize("column", ["age", "AGE"])
def test_a_hidden_column_sorts_too(column):
    lines = list(render(a_table(), View(Output.TABLE, sort_by=column)))[2:]
    assert [line.split()[0] for line in lines] == ["b", "ip-10-0-0-124.eu-west-1.compute.internal", "c"]


def test_an_unknown_column_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInputError, match="found 'size', expected one of age, node, price, why"):
        list(render(a_table(), View(Output.TABLE, sort_by="size")))


@pytest.mark.parametrize(
    "ordered",
    [
        ["2", "10", "x", "-"],
        ["$0.096", "$0.48", "$10.20", "unknown"],
        ["9%", "13%", "100%"],
        ["45s", "15m", "1h30m", "2h", "5d"],
        ["1 node", "2 nodes", "12 nodes"],
        ["2024-05-01T09:00:00Z", "2024-05-01T10:00:00Z"],
        ["0 (freeze)", "1", "no limit"],
        ["-1", "0", "1.5"],
        ["node-10", "node-2"],
    ],
)
def test_numbers_and_durations_sort_by_their_value(ordered):
    shuffled = [ordered[place] for place in range(len(ordered) - 1, -1, -1)]
    assert sorted(shuffled, key=sort_key) == ordered


def test_letters_of_two_columns_count_twice():
    table = Table(("NAME", "N"))
    table.add("東京", 1)
    table.add("abcd", 2)
    assert list(render(table, TABLE))[1:] == ["東京   1", "abcd   2"]


def test_a_row_has_a_cell_for_every_column():
    with pytest.raises(ValueError, match="found 1 cells, expected 2: A, B"):
        Table(("A", "B")).add("x")


def test_fields_stand_below_each_other():
    assert fields({"Target": "v2", "Desired size": "3"}) == ["Target:         v2", "Desired size:   3"]


def test_sentences_below_their_rows_leave_their_width_to_the_other_columns():
    rows = [
        ("NODE", "STATE", "BLOCKER", "CPU"),
        ("node-a", "draining", f"default/{'web' * 12}: pdb default/web", "25%"),
    ]
    grid = fit(Columns(names=rows[0], optional=("CPU",), text="BLOCKER"), rows, 46)
    assert grid.rows[1][0].split() == ["node-a", "draining", "25%"]
    assert grid.note == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colours_are_for_terminals_without_no_color(monkeypatch, variables, coloured):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(output.sys, "stdout", terminal)
    table = Table(("STATE",))
    table.add("failed\x1b[0m", style="red")
    emit({}, TABLE, lambda: table)
    painted = "\x1b[31mfailed\\x1b[0m\x1b[0m\n" if coloured else "failed\\x1b[0m\n"
    assert terminal.getvalue() == f"STATE\n{painted}"


def test_a_pipe_gets_no_colours(capsys):
    table = Table(("STATE",))
    table.add("failed", style="red")
    emit({}, TABLE, lambda: table)
    assert capsys.readouterr().out == "STATE\nfailed\n"


@pytest.mark.parametrize("option", [("--no-headers",), ("--sort-by", "pod")])
def test_options_of_tables_are_refused_with_json(leeward, option):
    message = leeward.refuses("drain", "node-a", "--snapshot", SMALL, "-o", "json", *option)
    assert message == f"found {option[0]} with -o json, expected -o table, wide or name"


def test_a_wrong_column_is_refused_before_anything_is_read(leeward):
    message = leeward.refuses("drain", "node-a", "--snapshot", "/nowhere", "--sort-by", "size")
    assert message == "--sort-by: found 'size', expected one of action, grace, node, pod, wave, why"


@pytest.mark.parametrize(
    ("sentence", "commands"),
    [
        ("run kubectl get pods -n shop to see", ["kubectl get pods -n shop"]),
        (f"loosen it ({PATCH}), or wait", [PATCH]),
        (f"{RECEIVE}; then aws sqs x y", [RECEIVE, "aws sqs x y"]),
        ("interruptions and leeward drain node-a do not ask it; kubectl drain takes --force", []),
        ("kubectl does it", []),
    ],
)
def test_commands_are_taken_out_of_sentences(sentence, commands):
    assert list(commands_in(sentence)) == commands


def test_every_blocker_has_its_commands_on_lines_of_their_own(leeward):
    out = leeward("blockers", "--snapshot", BLOCKERS, "--now", NOON).out
    commands = [line.strip() for line in out.splitlines() if line.startswith("  ")]
    assert 'kubectl patch pdb -n shop fixed --type merge -p \'{"spec":{"maxUnavailable":1}}\'' in commands
    assert all(re.match(r"(kubectl|aws|leeward) \S+ ", command) for command in commands)
    assert not [command for command in commands if "drain" in command.split()[:2]]


def held(node, pod):
    return Blocker(
        node=node,
        pod=pod,
        owner="Deployment/api",
        kind=BlockerKind.PDB_NEVER,
        object="pdb shop/api",
        until=None,
        fix=f"it never allows any: {PATCH}",
    )


def test_a_cause_on_several_nodes_is_one_row_with_one_fix():
    blockers = [held(f"node-{number}", f"shop/api-{number}") for number in range(12)]
    names = [blocker.node for blocker in blockers]
    lines = list(render(blockers_report(blockers, (), names, verbose=False), TABLE))
    assert lines[0] == "12 of 12 nodes blocked, 1 cause"
    assert re.split(" {3,}", lines[3]) == ["pdb-never", "pdb shop/api", "12 pods", "12 nodes", "unknown"]
    assert lines[5:] == ["fix pdb-never, pdb shop/api: it never allows any: the command below", f"  {PATCH}"]
    wide = "\n".join(render(blockers_report(blockers, (), names, verbose=False), View(Output.WIDE)))
    assert all(name in wide for name in names)
    verbose = list(render(blockers_report(blockers, (), names, verbose=True), View(Output.TABLE, headers=False)))
    assert len(verbose) == 12


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("team=web", {"team": "web"}, True),
        ("team==web", {"team": "api"}, False),
        ("team!=web", {}, True),
        ("team", {"team": ""}, True),
        ("!team", {"team": ""}, False),
        ("team in (web, api),zone", {"team": "api", "zone": "a"}, True),
        ("team notin (web,api)", {"team": "web"}, False),
        ("team notin (web,api)", {}, True),
        ("a.example/x=1,b!=2", {"a.example/x": "1", "b": "2"}, False),
    ],
)
def test_a_selector_is_kubectls(text, labels, matches):
    assert all(match(labels) for match in selector(text)) is matches


@pytest.mark.parametrize("text", ["", "a=b=c", "a,,b", "in (a)x", "a in b", "-a=1"])
def test_what_is_no_selector_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="expected a label selector such as"):
        selector(text)
