"""Progress of work that a command follows, on standard error: standard output holds the result.

Decides how a change is shown: a line with its time in a pipe or a file, lines redrawn in place on a terminal."""

import shutil
import sys
from collections.abc import Mapping
from datetime import datetime

from leeward.model.times import format_instant
from leeward.model.visible import visible

UP, CLEAR = "\x1b[{}A", "\x1b[J"


class Progress:
    """Lines of objects by name. `redrawn`: on a terminal, where a line replaces the one before."""

    def __init__(self, *, redrawn: bool | None = None) -> None:
        self._redrawn = sys.stderr.isatty() if redrawn is None else redrawn
        self._known: dict[str, str] = {}
        self._drawn = 0

    def show(self, lines: Mapping[str, str], now: datetime) -> None:
        """Show what has changed since the last call; nothing where nothing has."""
        changed = {name: line for name, line in lines.items() if self._known.get(name) != line}
        if not changed:
            return
        self._known.update(changed)
        if not self._redrawn:
            for name, line in changed.items():
                self._write(f"{format_instant(now)} {name}: {line}")
            return
        width = shutil.get_terminal_size().columns - 1
        if self._drawn:
            sys.stderr.write(UP.format(self._drawn) + "\r" + CLEAR)
        for name, line in self._known.items():
            self._write(f"{format_instant(now)} {name}: {line}"[:width])
        self._drawn = len(self._known)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self._write(line)
        self._drawn, self._known = 0, {}

    def _write(self, line: str) -> None:
        sys.stderr.write(f"{visible(line)}\n")
        sys.stderr.flush()
