"""Terminal of a recording: what the command line writes, as rows of styled text.

It knows what Leeward writes and no more: colours, the cursor's home and its way up, clearing, the alternate screen."""

import io
import re
from collections.abc import Iterator
from typing import NamedTuple

_SEQUENCE = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])")


class Run(NamedTuple):
    """Part of a row in one style, an SGR number such as `33`; empty: the usual one."""

    text: str
    style: str


Row = tuple[Run, ...]


class Terminal(io.StringIO):
    """Text stream that is a terminal of so many columns and rows; `rows` is what it shows. Raises ValueError for a
    sequence that it does not know.
    """

    encoding = "utf-8"

    def __init__(self, columns: int, height: int) -> None:
        super().__init__()
        self.columns, self.height = columns, height
        self._cells: list[list[tuple[str, str]]] = [[]]
        self._row = self._column = 0
        self._style = ""
        self._under: list[list[tuple[str, str]]] = []

    def isatty(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Show the text."""
        at = 0
        for sequence in _SEQUENCE.finditer(text):
            self._print(text[at : sequence.start()])
            self._obey(sequence[1], sequence[2], sequence[3])
            at = sequence.end()
        self._print(text[at:])
        return len(text)

    def rows(self) -> tuple[Row, ...]:
        """Return the rows that are visible, without trailing blanks and without empty rows at the end."""
        shown = self._cells[-self.height :] if len(self._cells) > self.height else self._cells
        found = [tuple(_runs(cells)) for cells in shown]
        while found and not found[-1]:
            found.pop()
        return tuple(found)

    def _print(self, text: str) -> None:
        for letter in text:
            if letter == "\n":
                self._row, self._column = self._row + 1, 0
            elif letter == "\r":
                self._column = 0
            else:
                self._put(letter)
            while len(self._cells) <= self._row:
                self._cells.append([])

    def _put(self, letter: str) -> None:
        if self._column >= self.columns:
            self._row, self._column = self._row + 1, 0
            while len(self._cells) <= self._row:
                self._cells.append([])
        cells = self._cells[self._row]
        cells.extend([(" ", "")] * (self._column + 1 - len(cells)))
        cells[self._column] = (letter, self._style)
        self._column += 1

    def _obey(self, private: str, numbers: str, command: str) -> None:
        match private + command, numbers:
            case "m", _:
                self._style = "" if numbers in {"", "0"} else numbers
            case "A", _:
                self._row = max(self._row - int(numbers or 1), 0)
            case "H", "":
                self._row = self._column = 0
            case "K", "":
                del self._cells[self._row][self._column :]
            case "J", "":
                del self._cells[self._row][self._column :], self._cells[self._row + 1 :]
            case "?h", "1049":
                self._under, self._cells, self._row, self._column = self._cells, [[]], 0, 0
            case "?l", "1049":
                self._cells, self._row, self._column = self._under, len(self._under) - 1, 0
            case (("?h" | "?l"), "25"):
                pass
            case _:
                raise ValueError(f"found the sequence {private}{numbers}{command}, expected one that Leeward writes")


def _runs(cells: list[tuple[str, str]]) -> Iterator[Run]:
    """Yield the runs of a row; blanks have no style of their own."""
    end = max((place + 1 for place, (letter, _) in enumerate(cells) if letter != " "), default=0)
    text, style = "", ""
    for letter, of in cells[:end]:
        if letter != " " and of != style:
            if text:
                yield Run(text, style)
            text, style = "", of
        text += letter
    if text:
        yield Run(text, style)
