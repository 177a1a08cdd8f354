"""Keys that are pressed on a terminal, one at a time.

Decides which bytes are which key; what a key does is the view's. The terminal is as before after the view."""

import os
import select
import sys
from types import TracebackType
from typing import Any, Self

UP, DOWN, ENTER, ESCAPE = "up", "down", "enter", "escape"
_NAMES = {b"\r": ENTER, b"\n": ENTER, b"\x1b": ESCAPE, b"\x7f": ESCAPE, b"k": UP, b"j": DOWN}
_ARROWS = {b"A": UP, b"B": DOWN}  # last byte of \x1b[A and of \x1bOA, which some terminals send
GONE = b"q"  # read of a terminal that is gone (a lost connection), which is always ready: it ends the view as `q` does
REST = 0.05  # seconds in which the bytes of one key arrive, over a slow line too


class Keys:
    """Keyboard of a terminal, without waiting for the end of a line. Ctrl-C interrupts as before."""

    def __init__(self) -> None:
        self._file = sys.stdin.fileno()
        self._before: list[Any] = []
        self._ahead = b""

    def __enter__(self) -> Self:
        import termios  # late: there is none where there are no terminals
        import tty

        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import termios

        termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def read(self, seconds: float) -> str:
        """Wait so long for a key and return it: its name, else its letter; empty where none was pressed."""
        first = self._byte(seconds)
        if first == b"\x1b" and (second := self._byte(REST)):
            if second not in {b"[", b"O"}:
                self._ahead = second
                return ESCAPE
            last = self._byte(REST)
            while last and not b"@" <= last <= b"~":  # numbers of other keys
                last = self._byte(REST)
            return _ARROWS.get(last, "")
        return _NAMES.get(first) or first.decode("ascii", "ignore")

    def _byte(self, seconds: float) -> bytes:
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        ready, _, _ = select.select([self._file], [], [], max(seconds, 0.0))
        try:
            return (os.read(self._file, 1) or GONE) if ready else b""
        except OSError:  # the terminal is gone
            return GONE
