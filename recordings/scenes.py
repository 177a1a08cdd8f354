"""Scenes that are recorded: the real commands on the stage, and what happens to it meanwhile."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from leeward.adapters import wiring
from leeward.cli.main import main
from leeward.model.times import format_instant
from recordings.stage import CLUSTER, Stage, StageClock, ports_with, shop
from recordings.terminal import Row, Terminal

HEIGHT = 18  # rows of the terminal
PROMPT = "$ "
LETTERS = 4  # typed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Picture of the terminal. `at`: seconds of virtual time since the beginning; `typed`: while a command is typed."""

    rows: tuple[Row, ...]
    at: float
    typed: bool = False


@dataclass(slots=True, kw_only=True)
class Recording:
    """Recording of commands one after the other on one stage."""

    stage: Stage
    columns: int
    terminal: Terminal = field(init=False)
    frames: list[Frame] = field(default_factory=list)
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.stage.timeline.now()
        self.terminal = Terminal(self.columns, HEIGHT)

    def run(self, *arguments: str, limit: float = 3600.0) -> int:
        """Type the command, run it with the ports of the stage, and return its exit code; Ctrl-C after so many seconds.
        `--now` is not typed: virtual time is the present there.
        """
        command = [*arguments, "--cluster", CLUSTER]
        self._type(" ".join(("leeward", *command)))
        clock = StageClock(self.stage, self.take, limit)
        ports = ports_with(self.stage, clock)
        with _terminal(self.terminal), patch.object(wiring, "command_line_ports", lambda *_, **__: ports):
            code = main([*command, "--now", format_instant(clock.now())])
        self.take()
        return code

    def take(self, *, typed: bool = False) -> None:
        """Add a frame where the terminal shows something else than in the last one."""
        rows = self.terminal.rows()
        if not self.frames or self.frames[-1].rows != rows:
            self.frames.append(Frame(rows=rows, at=self.stage.timeline.now() - self.began, typed=typed))

    def _type(self, command: str) -> None:
        self.terminal.write(f"\x1b[1m{PROMPT}")
        for place in range(0, len(command), LETTERS):
            self.terminal.write(command[place : place + LETTERS])
            self.take(typed=True)
        self.terminal.write("\x1b[0m\n")


@contextmanager
def _terminal(terminal: Terminal) -> Iterator[None]:
    """Let the command line write to the terminal, which has its size and its colours."""
    size = {"COLUMNS": str(terminal.columns), "LINES": str(terminal.height), "TERM": "xterm"}
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", *size}}
    streams = patch.multiple(sys, stdout=terminal, stderr=terminal)
    with patch.dict(os.environ, {**kept, **size}, clear=True), streams:
        yield


def top() -> Recording:
    """Return `leeward top` while a spot warning replaces a node."""
    stage = shop()
    recording = Recording(stage=stage, columns=154)
    for seconds, member in zip((8, 11), stage.members("web-spot")[1:3], strict=True):
        stage.warn(seconds, member)
    recording.run("top", limit=140)
    return recording


def watch() -> Recording:
    """Return a drain and an upgrade that are followed to their ends."""
    stage = shop(web=4)
    recording = Recording(stage=stage, columns=96)
    node = stage.members("web-spot")[0].node.partition(".")[0]
    recording.run("drain", node, "--yes", "--watch")
    recording.terminal.write("\n")
    group = stage.fleet.groups["web"]
    group.point_at(group.template.add("ami-0123456789abcdef0"))
    recording.run("upgrade", "start", "web", "--yes", "--watch")
    return recording
