"""`python3 supply_chain/progress.py NAME -- COMMAND …`: run one step of `make setup`, and show that it is running.

It runs before any package is installed, so it imports the standard library alone. The command's output goes to a log;
on a terminal its last line is redrawn every second, elsewhere a line is printed every PERIOD seconds.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

LOG = Path("build/setup.log")
PERIOD = 8.0  # seconds; a user takes ten without a line for a hang
TAIL = 30  # lines of the output of a command that failed
INTERRUPTED = 130


@dataclass(kw_only=True)
class Step:
    """Running command with what it has printed. `name` may hold its place, such as `3/7 packages of Python`."""

    name: str
    command: Sequence[str]
    out: TextIO
    period: float = PERIOD
    lines: list[str] = field(default_factory=list)

    def run(self, log: Path) -> int:
        """Run the command to its end, its output in `log` as well; return its exit code."""
        began = time.monotonic()
        self._write(f"{self.name} …")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"=== {self.name}: {' '.join(self.command)}\n")
            with subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},  # pip's last line is shown when it is printed
            ) as process:
                reader = threading.Thread(target=self._read, args=[process, stream])
                reader.start()
                self._watch(reader, began)
                code = process.wait()
        self._end(code, time.monotonic() - began, log)
        return code

    def _read(self, process: "subprocess.Popen[str]", stream: TextIO) -> None:
        for line in process.stdout or ():
            stream.write(line)
            stream.flush()
            if line.strip():
                self.lines.append(line.rstrip())

    def _watch(self, reader: threading.Thread, began: float) -> None:
        terminal = self.out.isatty()
        while reader.is_alive():
            reader.join(1.0 if terminal else self.period)
            if reader.is_alive():
                last = self.lines[-1].strip() if self.lines else ""
                self._write(f"{self.name} … {time.monotonic() - began:.0f} s  {last}", redraw=terminal)

    def _end(self, code: int, seconds: float, log: Path) -> None:
        if code:
            self._write(f"{self.name}: failed after {seconds:.0f} s:", redraw=self.out.isatty())
            for line in self.lines[-TAIL:]:
                self._write(f"  {line}", whole=True)
            self._write(f"all of its output: {log}", whole=True)
        else:
            self._write(f"{self.name}: {seconds:.0f} s", redraw=self.out.isatty())

    def _write(self, line: str, *, redraw: bool = False, whole: bool = False) -> None:
        width = shutil.get_terminal_size((120, 24)).columns - 1
        text = line if whole else line[:width]
        self.out.write(f"\x1b[1A\r\x1b[K{text}\n" if redraw else f"{text}\n")
        self.out.flush()


@contextmanager
def announced(name: str, out: TextIO | None = None, period: float = PERIOD) -> Iterator[None]:
    """Print when a step of this process begins, every `period` seconds that it runs, and how long it took."""
    out, began, ended = out or sys.stdout, time.monotonic(), threading.Event()

    def say(text: str) -> None:
        out.write(f"{text}\n")
        out.flush()

    def watch() -> None:
        while not ended.wait(period):
            say(f"{name} … {time.monotonic() - began:.0f} s")

    say(f"{name} …")
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    say(f"{name}: {time.monotonic() - began:.0f} s")


def main(arguments: Sequence[str]) -> int:
    """Run the step that the arguments name."""
    name, separator, *command = arguments
    if separator != "--" or not command:
        raise SystemExit("usage: progress.py NAME -- COMMAND ...")
    try:
        return Step(name=name, command=command, out=sys.stdout).run(LOG)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
