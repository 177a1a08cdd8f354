"""Every table, letter by letter, as a pipe gets it, and as terminals of 80 and 120 columns show it
(tests/cli/golden/README.md).
"""

import ast
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.cli.context import context_of
from leeward.cli.fitting import NODES, width_of
from leeward.cli.main import parse_arguments
from leeward.cli.output import Output, View
from leeward.cli.tables import Row, Table, render
from leeward.cli.top.nodes import top_nodes
from leeward.cli.top.reading import TopReader
from leeward.cli.top.view import TopView
from tests.cli.command import NOON, SMALL
from tests.cli.live_answers import ANSWERS
from tests.cli.snapshots import placement, upgrade
from tests.cli.snapshots.disruption import (
    POLICY,
    a_disruption_snapshot,
    a_group,
    a_node,
    a_pod,
    a_template,
    an_instance,
)
from tests.cli.snapshots.placement import items
from tests.cli.snapshots.zones import a_zone_snapshot

GOLDEN = Path("tests/cli/golden")
BLOCKERS = Path("tests/cli/snapshots/blockers")
EVENT = Path("tests/events/spot_interruption.json")
WRITE = "GOLDEN_WRITE"
COMMAND = re.compile(r"  (kubectl|aws|leeward) ")


def disruption(folder):
    """Three nodes; a budget holds the pod of n1."""
    pods = [a_pod("p1", "n1", labels={"app": "api"}), a_pod("p2", "n2"), a_pod("p3", "n3")]
    budget = {
        "metadata": {"namespace": "shop", "name": "api"},
        "spec": {"selector": {"matchLabels": {"app": "api"}}},
        "status": {"disruptionsAllowed": 0},
    }
    return a_disruption_snapshot(folder, pods=items(*pods), pdbs=items(budget))


def many(folder):
    """Six nodes, of which the budget lets two go at a time."""
    names = [f"n{number}" for number in range(1, 7)]
    groups = [a_group("web", "lt-web", *names), a_group("batch", "lt-batch")]
    return a_disruption_snapshot(
        folder,
        nodes=items(*map(a_node, names)),
        pods=items(*(a_pod(f"p{name}", name) for name in names)),
        instances={"Reservations": [{"Instances": [an_instance(name) for name in names]}]},
        auto_scaling_groups={"AutoScalingGroups": groups},
        policy=POLICY.replace('"100%"', "2"),
    )


def switched_off(folder):
    policy = POLICY.replace("consolidateAfter: 0s", "consolidationPolicy: Never, drift: false")
    return a_disruption_snapshot(folder, policy=policy)


def drifted(folder):
    templates = [a_template("lt-web", "m5.xlarge", image="ami-2"), a_template("lt-batch", "m5.large")]
    return a_disruption_snapshot(folder, launch_template_versions={"LaunchTemplateVersions": templates})


def renamed(folder):
    """Each instance of the present version has another name than its template says."""
    group, template = a_group("web", "lt-web", "n1", "n2", "n3"), a_template("lt-web", "m5.xlarge")
    for member in group["Instances"]:
        member["LaunchTemplate"] = {"LaunchTemplateId": "lt-web", "Version": "1"}
    tags = [{"Key": "Name", "Value": "web"}]
    template["LaunchTemplateData"]["TagSpecifications"] = [{"ResourceType": "instance", "Tags": tags}]
    return a_disruption_snapshot(
        folder,
        auto_scaling_groups={"AutoScalingGroups": [group]},
        launch_template_versions={"LaunchTemplateVersions": [template]},
    )


def blocked_upgrade(folder):
    return upgrade.an_upgrade_snapshot(folder, pdbs={"items": [upgrade.a_pdb(allowed=0, maxUnavailable=0)]})


def blocked_status(folder):
    nodes = [upgrade.a_node(0, disrupted=True), upgrade.a_node(1), upgrade.a_node(2, version=2)]
    pods = [upgrade.a_pod("web-0", 0)]
    return upgrade.an_upgrade_snapshot(folder, nodes=nodes, pods=pods, pdbs={"items": [upgrade.a_pdb(allowed=0)]})


OFFLINE = {
    "plan": (disruption, "plan"),
    "plan-wide": (disruption, "plan", "-o", "wide", "--pods"),
    "plan-verbose": (disruption, "plan", "--verbose"),
    "plan-nothing": (switched_off, "plan"),
    "plan-what-if": (switched_off, "plan", "--what-if", "consolidation"),
    "plan-until-done": (many, "plan", "--until-done"),
    "plan-until-done-wide": (many, "plan", "--until-done", "-o", "wide"),
    "plan-name": (disruption, "plan", "-o", "name"),
    "budget": (disruption, "inspect", "budget"),
    "drift": (drifted, "drift"),
    "drift-not-fixable": (renamed, "drift"),
    "drift-sorted": (drifted, "drift", "-o", "wide", "--sort-by", "field", "--no-headers"),
    "blockers": (BLOCKERS, "blockers"),
    "blockers-wide": (BLOCKERS, "blockers", "-o", "wide"),
    "blockers-verbose": (BLOCKERS, "blockers", "--verbose", "--no-headers"),
    "blockers-none": (BLOCKERS, "blockers", "node-b"),
    "drain": (SMALL, "drain", "node-a", "--dry-run"),
    "drain-group": (SMALL, "drain", "--group", "web-1", "--dry-run"),
    "explain-event": (SMALL, "inspect", "explain-event", EVENT, "-o", "wide"),
    "ips": (None, "inspect", "ips", "--instance-type", "m5.large", "--pods", "12", "-o", "wide"),
    "place": (placement.a_placement_snapshot, "inspect", "place", "web", "--count", "3", "--pods", "8"),
    "zones": (placement.a_placement_snapshot, "inspect", "zones"),
    "zone-evacuate": (a_zone_snapshot, "zone", "evacuate", "us-east-1a"),
    "zone-status": (a_zone_snapshot, "zone", "status"),
    "top": (disruption, "top"),
    "top-wide": (disruption, "top", "-o", "wide", "--sort-by", "pods"),
    "top-unknown": (BLOCKERS, "top"),
    "template": (blocked_upgrade, "inspect", "template", "web", "-o", "table"),
    "upgrade-plan": (blocked_upgrade, "upgrade", "plan", "web"),
    "upgrade-status": (blocked_status, "upgrade", "status", "web"),
}
WIDTHS = (80, 120)


def check(name, printed, folder):
    """Compare with the file, or write it and fail."""
    file, text = GOLDEN / f"{name}.txt", printed.replace(str(folder), "DIR") if folder else printed
    if os.environ.get(WRITE):
        file.write_text(text)
        pytest.fail(f"{file} is written ({WRITE}): read the difference, then run without it")
    assert text == file.read_text(), f"{file} is not what is printed; {GOLDEN}/README.md says how to write it"


def offline(name, tmp_path):
    """The arguments of a command that has a folder."""
    source, *arguments = OFFLINE[name]
    folder = source(tmp_path) if callable(source) else source
    return [*arguments, *(() if folder is None else ("--snapshot", folder, "--now", NOON))]


@pytest.mark.parametrize("name", OFFLINE)
def test_a_table_of_a_folder(leeward, tmp_path, name):
    check(name, leeward(*offline(name, tmp_path)).out, tmp_path)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_table_of_a_cluster(leeward, tmp_path, monkeypatch, name):
    """Standard error too: a refusal stands there."""
    result = leeward(*ANSWERS[name](monkeypatch, tmp_path))
    check(name, result.out + result.err, tmp_path)


def test_a_golden_file_can_be_read():
    """The name of a folder stands for one, and not between the letters."""
    assert [str(file) for file in GOLDEN.rglob("*.txt") if re.search(r"DIR.DIR", file.read_text())] == []


def test_every_golden_file_is_compared():
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {*OFFLINE, *ANSWERS}


LONG = "-of-a-group-with-a-name"
SENTENCE = "the pod shop/checkout-7c9d8f6b5-x2x4z waits for pdb shop/checkout (maxUnavailable 0), which allows none now"
DECIDE = {"NODE", "STATE", "BLOCKER", "FOUND", "FINDING", "OBJECT", "ACTION", "STANDING", "VERDICT", "WHY", "POD"}


def places_of_tables():
    """(file, first line, last line) of every place in the command line that makes a table."""
    for path in sorted(Path("functions/leeward/cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Table":
                yield path, node.lineno, node.end_lineno


@pytest.fixture
def tables(monkeypatch):
    """Every table that is made, with the place."""
    made, usual = [], Table.__init__

    def noted(self, *arguments, **named):
        frame = sys._getframe(1)
        made.append((self, Path(frame.f_code.co_filename).resolve(), frame.f_lineno))
        usual(self, *arguments, **named)

    monkeypatch.setattr(Table, "__init__", noted)
    return made


def open_a_node(folder):
    """Open the first node of `leeward top`, as a key does."""
    arguments = parse_arguments(["top", "--snapshot", str(folder), "--now", NOON])
    facts = TopReader(context_of(arguments, "top")).read(arguments.now)
    view = TopView()
    view.show(top_nodes(facts, arguments.now), facts)
    view.press("enter")
    list(view.report(arguments.now, 24))


def stretched(table):
    """The table with a row of long names and a long sentence."""
    text = table.text or table.columns[-1]
    row = table.rows[0].cells if table.rows else ["x"] * len(table.columns)
    cells = [
        SENTENCE if name == text else f"{'' if cell == '-' else cell}{LONG}" if name in NODES else cell
        for name, cell in zip(table.columns, row, strict=True)
    ]
    rows = [*table.rows, Row(cells=tuple(cells), names=())]
    return replace(table, rows=rows)


def too_wide(lines, width):
    """Lines that a terminal would break inside a word; one that is a word alone stays whole for copying."""
    return [line for line in lines if width_of(line) > width and len(line.split()) > 1]


def test_every_table_fits_a_terminal_and_shows_what_decides(leeward, tmp_path, tables):
    for name in OFFLINE:
        leeward(*offline(name, tmp_path / name))
    for name in ANSWERS:
        with pytest.MonkeyPatch.context() as patched:
            (tmp_path / name).mkdir(exist_ok=True)
            leeward(*ANSWERS[name](patched, tmp_path / name))
    open_a_node(disruption(tmp_path / "opened"))
    lines_of = {(path, line) for _, path, line in tables}
    unseen = [
        f"{path}:{first}"
        for path, first, last in places_of_tables()
        if not any((path.resolve(), line) in lines_of for line in range(first, last + 1))
    ]
    assert unseen == []
    wrong = []
    for table, path, line in list(tables):
        for width in WIDTHS:
            for shown in (table, stretched(table)):
                lines = list(render(shown, View(Output.TABLE, width=width)))
                header = set(" ".join(lines[:3]).split())
                hidden = {name.upper() for name in table.columns if name not in table.wide} & DECIDE - header
                noted = {name for name in hidden if any(line.startswith("…") and name in line for line in lines)}
                if table.rows and (too_wide(lines, width) or hidden - noted or hidden & {"NODE", "STATE", "BLOCKER"}):
                    wrong.append((f"{path.name}:{line}", width, *too_wide(lines, width), *hidden))
    assert wrong == []


@pytest.mark.parametrize("width", WIDTHS)
def test_every_sentence_of_a_terminal_ends_between_words(leeward, tmp_path, monkeypatch, width):
    """Lines to copy are not broken."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    wrong = []
    folders = ("blockers", "plan", "plan-until-done", "drift-not-fixable", "upgrade-plan", "zone-evacuate")
    for name in (*folders, "drain-again", "drain-cancelled"):
        arguments = offline(name, tmp_path / name) if name in folders else ANSWERS[name](monkeypatch, tmp_path)
        shown = leeward(*arguments).out.splitlines()
        wrong += [(name, line) for line in too_wide(shown, width) if not COMMAND.match(line)]
        whole = (GOLDEN / f"{name}.txt").read_text()
        words = {word for line in shown if not line.startswith("…") for word in re.split(r"[\s,]+", line)} - {""}
        wrong += [(name, word) for word in words if word not in whole]
    assert wrong == []


def test_what_a_table_shows_is_in_the_json_too(leeward, tmp_path):
    """The dollars, groups, types and zones of `plan`."""
    folder = disruption(tmp_path)
    document = json.loads(leeward("plan", "--snapshot", folder, "--now", NOON, "-o", "json").out)
    price = document["summary"]["pricePerMonth"]["now"]
    assert f"${price:,.2f} a month" in (GOLDEN / "plan.txt").read_text()
