"""Keys of `leeward top` on a real terminal: sorting, opening a node, the end; the terminal is as before afterwards."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

from leeward.cli.top.keys import Keys
from leeward.cli.top.screen import LEAVE
from leeward.cli.top.view import QUIT
from tests.cli.test_terminals import DOMAIN

PATIENCE = 60.0  # seconds: only how long a view that does not answer takes
SCRIPT = f"""
from leeward.adapters import wiring
from leeward.cli.main import main
from leeward.model.pod import PodDisruptionBudget
from leeward.ports.kubernetes import Listed
from tests.cli.snapshots.disruption import a_node, a_pod
from tests.fakes.system import FakeSystem
names = [f"ip-10-40-{{n}}-117{DOMAIN}" for n in range(1, 41)]
system = FakeSystem()
nodes = [a_node(name) for name in names]
nodes[30]["spec"]["unschedulable"] = True
system.kubernetes.raw = {{
    Listed.NODES: nodes,
    Listed.PODS: [a_pod("free", names[1]), a_pod("api-1", names[1], labels={{"app": "api"}})],
}}
budget = PodDisruptionBudget.from_json({{
    "metadata": {{"namespace": "shop", "name": "api"}},
    "spec": {{"selector": {{"matchLabels": {{"app": "api"}}}}}},
    "status": {{"disruptionsAllowed": 0}},
}})
system.kubernetes.budgets = lambda *_: (budget,)
wiring.command_line_ports = lambda *_, **__: system.ports
raise SystemExit(main(["top", "--cluster", "blue"]))
"""


class Watched:
    """`leeward top` of forty nodes in a terminal of 24 rows."""

    def __init__(self, columns):
        self.terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.settings = termios.tcgetattr(theirs)
        environment = {**os.environ, "PYTHONPATH": "functions:.", "TERM": "xterm-256color", "NO_COLOR": "1"}
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        self.process = subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, **streams)
        self.theirs, self.printed = theirs, ""

    def until(self, word):
        """The screen that has the word."""
        deadline = time.monotonic() + PATIENCE
        while word not in self.printed.split("\x1b[H")[-1] or not self.printed.endswith(("\x1b[J", LEAVE)):
            assert time.monotonic() < deadline, self.printed
            if select.select([self.terminal], [], [], 0.2)[0]:
                self.printed += os.read(self.terminal, 65536).decode()
        return (
            self.printed.split("\x1b[H")[-1].replace("\x1b[K", "").replace("\x1b[J", "").replace("\r", "").split("\n")
        )

    def press(self, keys):
        os.write(self.terminal, keys.encode())


def test_keys_sort_the_nodes_open_one_and_end_the_view():
    columns = 80
    watched = Watched(columns)
    try:
        rows = watched.until("of 40 nodes: 1 cordoned, ")
        assert rows[1].startswith("sort: n s b g p c m   up, down, Enter: open ip-10-40-1-117   q: end")
        assert not [row for row in rows if len(row) > columns]
        assert len(rows) == 24
        watched.press("b")
        watched.until("open ip-10-40-2-117")
        watched.press("s")
        watched.until("open ip-10-40-31-117")
        watched.press("\x1b[B")
        watched.until("open ip-10-40-2-117")  # blocked: the first of those that are Ready
        watched.press("\r")
        rows = watched.until("Esc: back")
        assert f"Node:         ip-10-40-2-117{DOMAIN}" in "\n".join(rows)
        assert "Blocked by:   pdb shop/api" in "\n".join(rows)
        assert [row.split()[:3] for row in rows if row.startswith("shop/")] == [
            ["shop/api-1", "pdb", "shop/api"],
            ["shop/free", "-", "0.5"],
        ]
        watched.press("\x1b")
        watched.until("sort:")
        watched.press("q")
        watched.until(LEAVE.removeprefix("\x1b[H"))
        assert watched.process.wait(PATIENCE) == 0
        assert termios.tcgetattr(watched.theirs)[3] == watched.settings[3]
    finally:
        watched.process.kill()
        watched.process.wait()
        os.close(watched.theirs)
        os.close(watched.terminal)


def test_a_terminal_that_is_gone_ends_the_view(monkeypatch):
    """It is always ready to be read: a view that waits for a key would never rest."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours) as lost:
        monkeypatch.setattr(sys, "stdin", lost)
        keys = Keys()
        os.close(theirs)
        assert keys.read(1.0) == QUIT
