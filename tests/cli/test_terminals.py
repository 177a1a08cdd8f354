"""Screens of real terminals of 80 and 120 columns and 24 rows, letter by letter (tests/cli/golden/README.md)."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from leeward.cli.fitting import width_of
from leeward.cli.fixes import commands_in, sentence_lines
from tests.cli.command import NOON
from tests.cli.snapshots import upgrade
from tests.cli.snapshots.disruption import a_disruption_snapshot, a_group, a_node, a_pod
from tests.cli.snapshots.placement import items
from tests.cli.test_golden import BLOCKERS, GOLDEN, check, many

DOMAIN = ".ap-southeast-2.compute.internal"
NAMES = [f"ip-10-40-{number}-117{DOMAIN}" for number in range(1, 4)]
WATCH = """
from datetime import UTC, datetime
from leeward.cli.progress import Progress
waits = "draining, 0 pods evicted, waits for default/api-djggglfjg-7vn9w: pdb default/api (maxUnavailable 0)"
progress = Progress()
for gone in (0, %(nodes)s - 9):
    lines = {f"ip-10-40-0-{n}%(domain)s": "gone, 1 pod evicted" if n < gone else waits for n in range(%(nodes)s)}
    progress.show(lines, datetime(2026, 1, 1, 12, 0, gone, tzinfo=UTC))
"""


def long_named(folder):
    """Three nodes of a Region with a long domain; a budget holds the pod of the first."""
    nodes = [a_node(name) for name in NAMES]
    nodes[1]["spec"]["unschedulable"] = True
    budget = {
        "metadata": {"namespace": "shop", "name": "payments-gateway"},
        "spec": {"selector": {"matchLabels": {"app": "api"}}},
        "status": {"disruptionsAllowed": 0},
    }
    pods = [a_pod(f"p{number}", name, labels={"app": "api"}) for number, name in enumerate(NAMES[:1])]
    group = a_group("web", "lt-web", *NAMES)
    files = {"nodes": items(*nodes), "pods": items(*pods), "pdbs": items(budget)}
    return a_disruption_snapshot(folder, **files, auto_scaling_groups={"AutoScalingGroups": [group]})


def blocked_status(folder):
    nodes = [upgrade.a_node(0, disrupted=True), upgrade.a_node(1), upgrade.a_node(2, version=2)]
    budget = upgrade.a_pdb(allowed=0)
    return upgrade.an_upgrade_snapshot(folder, nodes=nodes, pods=[upgrade.a_pod("web-0", 0)], pdbs={"items": [budget]})


def command(*arguments):
    return ["-m", "leeward.cli.main", *map(str, arguments), "--now", NOON]


def followed(nodes):
    return ["-c", WATCH % {"nodes": nodes, "domain": DOMAIN}]


SCREENS = {
    "top": lambda folder: command("top", "--snapshot", long_named(folder)),
    "blockers": lambda folder: command("blockers", "--snapshot", BLOCKERS),
    "upgrade-status": lambda folder: command("upgrade", "status", "web", "--snapshot", blocked_status(folder)),
    "plan-until-done": lambda folder: command("plan", "--until-done", "--snapshot", many(folder)),
    "watch": lambda folder: followed(nodes=12),
    "watch-many": lambda folder: followed(nodes=40),
}
MUST_SHOW = {
    "top": ["cordoned", "pdb shop/payments-gateway", *(name.removesuffix(DOMAIN) for name in NAMES)],
    "blockers": ["pdb shop/zero", "node-a"],
    "upgrade-status": ["upgrading", "pdb "],
    "plan-until-done": ["when nothing is left to do, after 3 runs: 1 node", "MONTHLY"],
    "watch": ["waits for", "(maxUnavailable 0)", "12:00:03"],
    "watch-many": ["waits for", "31 gone"],
}


def screen(arguments, columns, rows=24, code=0):
    """Output of a command with this exit code on a terminal of this size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": "functions", "TERM": "xterm"}
    for name in ("COLUMNS", "LINES"):
        environment.pop(name, None)
    with subprocess.Popen([sys.executable, *arguments], stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        printed = b""
        while chunk := _read(ours):
            printed += chunk
    os.close(ours)
    assert process.returncode == code, printed.decode()
    return printed.decode().replace("\r\n", "\n")


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.parametrize("columns", [80, 120])
def test_errors_and_questions_break_no_word_and_no_command(tmp_path, columns):
    lines = screen(command("plan", "--snapshot", tmp_path), columns, code=2).splitlines()
    assert sum(len(list(commands_in(line))) for line in lines) == 5  # whole: half a command has no tool or no end
    ask = f"from leeward.cli.confirmation import *; confirm(argparse.Namespace(yes=False), [{'pod ' * 30!r}])"
    asked = screen(["-c", ask], columns, code=1).partition("Go on?")[0].splitlines()
    assert [line for line in (*lines, *asked) if width_of(line) > columns and not line.startswith("  kubectl ")] == []


def test_a_command_stays_whole_where_a_sentence_ends_its_lines():
    drain = "leeward drain ip-10-40-0-6.ec2.internal ip-10-40-1-6.ec2.internal --cluster demo --cancel"
    assert sentence_lines(f"to take it back: {drain}", 80) == ["to take it back:", f"  {drain}"]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", SCREENS)
def test_a_terminal_shows_state_and_blocker_and_breaks_no_word(tmp_path, name, columns):
    printed = screen(SCREENS[name](tmp_path), columns)
    last = re.split(r"\x1b\[\d+A\r?\x1b\[J", printed)[-1]
    assert [word for word in MUST_SHOW[name] if word not in re.sub(r"\n +", " ", last)] == []
    copied = re.compile(r"  (kubectl|aws|leeward) ")
    assert [line for line in last.splitlines() if width_of(line) > columns and not copied.match(line)] == []
    assert name not in {"watch", "watch-many"} or last.count("\n") < 24
    check(f"terminal/{name}-{columns}", last, tmp_path)


def test_every_screen_is_compared():
    expected = {f"{name}-{columns}" for name in (*SCREENS, "demo") for columns in (80, 120)}  # tests/local has the demo
    assert {file.stem for file in (GOLDEN / "terminal").glob("*.txt")} == expected
