"""Full-screen view of a terminal that is drawn again every few seconds.

Decides how lines are fitted to the terminal, and that it is restored whatever ends the view."""

import re
import shutil
import signal
import sys
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Self, TextIO

from leeward.cli.fitting import MISSING
from leeward.model.counts import count_of

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # alternate screen without cursor, and back
HOME, CLEAR_LINE, CLEAR_BELOW, RESET = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[0m"
_COLOUR = re.compile(r"(\x1b\[\d+m)")
TERMINATED = 143  # exit code of a process that SIGTERM has ended


class Screen:
    """Alternate screen of a terminal: entered and left as a context manager, so that what was shown before is there
    again afterwards, also after Ctrl-C and SIGTERM.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, _end)
        self._write(ENTER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(LEAVE)
        signal.signal(signal.SIGTERM, self._before)

    def draw(self, lines: Sequence[str]) -> None:
        """Draw the lines from the top; lines are cut at the right edge, those below the last row are counted."""
        width, height = shutil.get_terminal_size()
        shown = list(lines[:height])
        if len(lines) > height:
            shown[-1] = f"and {count_of(len(lines) - height + 1, 'line')} more: --once shows all of them"
        drawn = "\r\n".join(f"{cut(line, width)}{CLEAR_LINE}" for line in shown)
        self._write(f"{HOME}{drawn}{CLEAR_BELOW}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def cut(line: str, width: int) -> str:
    """Return the line cut to so many characters, the last of them `…`; colours are not counted and always ended."""
    if len(_COLOUR.sub("", line)) <= width:
        return line
    left, parts = width - len(MISSING), []
    for part in _COLOUR.split(line):
        if _COLOUR.fullmatch(part):
            parts.append(part)
        else:
            parts.append(part[: max(left, 0)])
            left -= len(parts[-1])
    whole = "".join(parts).removesuffix(RESET) + (MISSING if width > 0 else "")
    return f"{whole}{RESET}" if RESET in line else whole


def _end(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise SystemExit(TERMINATED)
