"""Full-screen view of a terminal that is drawn again every few seconds.

Decides how lines are fitted to the terminal, and that it is restored whatever ends the view."""

import re
import shutil
import signal
import sys
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Self, TextIO

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
            shown[-1] = f"and {len(lines) - height + 1} lines more: --once shows all of them"
        drawn = "\r\n".join(f"{cut(line, width)}{CLEAR_LINE}" for line in shown)
        self._write(f"{HOME}{drawn}{CLEAR_BELOW}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def cut(line: str, width: int) -> str:
    """Return the line cut to so many characters, colours not counted and always ended."""
    left, parts = width, []
    for part in _COLOUR.split(line):
        if _COLOUR.fullmatch(part):
            parts.append(part)
        else:
            parts.append(part[:left])
            left -= len(parts[-1])
    whole = "".join(parts)
    return whole if whole == line or RESET not in line else f"{whole.removesuffix(RESET)}{RESET}"


def _end(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise SystemExit(TERMINATED)
