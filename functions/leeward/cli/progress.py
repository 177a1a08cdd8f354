"""Progress of work that a command follows, on standard error: standard output holds the result.

Decides how a change is shown: a line with its time in a pipe or a file, lines redrawn in place on a terminal. There a
line that is too long goes on below, names have no common domain, and where the terminal has too few rows those that
are gone are counted only, then those that wait for least."""

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from leeward.cli.fitting import common_domain, wrapped
from leeward.cli.fixes import sentence_lines
from leeward.model.times import format_instant
from leeward.model.visible import visible

UP, CLEAR = "\x1b[{}A", "\x1b[J"
GONE = ("gone", "Node removed", "drained and cordoned")  # beginnings of the lines of work that is over and was done
FAILED = ("failed", "in service again", "not known")  # beginnings of lines that are shown before all others
OVER = 3  # order of lines that get no row


class _Line(NamedTuple):
    text: str
    at: datetime  # of its last change


class Progress:
    """Lines of objects by name. `redrawn`: on a terminal, where a line replaces the one before."""

    def __init__(self, *, redrawn: bool | None = None) -> None:
        self._redrawn = sys.stderr.isatty() if redrawn is None else redrawn
        self._known: dict[str, _Line] = {}
        self._drawn = 0

    def show(self, lines: Mapping[str, str], now: datetime) -> None:
        """Show what has changed since the last call; nothing where nothing has."""
        changed = {
            name: _Line(line, now)
            for name, line in lines.items()
            if name not in self._known or self._known[name].text != line
        }
        if not changed:
            return
        self._known.update(changed)
        if not self._redrawn:
            for name, line in changed.items():
                self._write(f"{format_instant(now)} {name}: {line.text}")
            return
        size = shutil.get_terminal_size()
        drawn = folded(self._known, size.columns - 1, max(size.lines - 1, 2))
        if self._drawn:
            sys.stderr.write(UP.format(self._drawn) + "\r" + CLEAR)
        for row in drawn:
            self._write(row)
        self._drawn = len(drawn)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        rows = sentence_lines(visible(line), shutil.get_terminal_size().columns - 1) if self._redrawn else [line]
        for row in rows:
            self._write(row)
        self._drawn, self._known = 0, {}

    def _write(self, line: str) -> None:
        sys.stderr.write(f"{visible(line)}\n")
        sys.stderr.flush()


def folded(lines: Mapping[str, _Line], width: int, height: int) -> list[str]:
    """Return the rows of a terminal for these lines, no more than `height`: the rest is counted by what it does."""
    domain = common_domain(lines)
    entries = {
        name: wrapped(f"{line.at:%H:%M:%S} {name.removesuffix(domain)}: {visible(line.text)}", width)
        for name, line in lines.items()
    }
    if sum(map(len, entries.values())) <= height:
        return [row for entry in entries.values() for row in entry]
    chosen, room = set[str](), height - 1
    for name in sorted(lines, key=lambda name: _order(lines[name].text)):
        if _order(lines[name].text) < OVER and len(entries[name]) <= room:
            chosen.add(name)
            room -= len(entries[name])
    counts = _counted(line.text for name, line in lines.items() if name not in chosen)
    more = wrapped(f"{'and ' if chosen else ''}{counts}", width)[0]
    return [*(row for name, entry in entries.items() if name in chosen for row in entry), more]


def _order(text: str) -> int:
    """Return the order in which lines get the rows of a terminal: failures, those that wait, others, those over."""
    if text.startswith(GONE):
        return OVER
    return 0 if text.startswith(FAILED) else 1 if "waits for" in text else 2


def _counted(texts: Iterable[str]) -> str:
    """Return the number of lines of each kind, by their first words: `12 gone, 3 draining`."""
    kinds = Counter(text.partition(",")[0].partition(":")[0] for text in texts)
    return ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
