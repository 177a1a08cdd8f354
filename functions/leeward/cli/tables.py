"""Plain tables, as kubectl prints them: upper-case headers, blanks between columns, one line a row.

Decides how a report becomes lines. Nothing depends on the width of the terminal, and nothing is cut or broken, so that
a pipe gets what a terminal shows. Texts come from clusters: characters that act on a terminal are spelled out."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from leeward.cli.output import Output, View
from leeward.model.visible import visible

SEPARATOR = "   "
ABSENT = "-"
BOLD = "bold"
_STYLES = {BOLD: "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}  # SGR parameters
_RESET = "\x1b[0m"
_BREAKS = str.maketrans({"\n": r"\n", "\t": r"\t"})  # `visible` keeps them
_NUMBER = re.compile(r"\$?(-?\d+(?:\.\d+)?)\s?(?:[^\W\d_]*|%)(?:\s.*|/.*)?")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Row of a table. `names`: what `-o name` prints of it."""

    cells: tuple[str, ...]
    names: tuple[str, ...]
    style: str = ""


@dataclass(slots=True)
class Table:
    """Rows under named columns. `wide`: columns that only `-o wide` shows; `kind`: of the objects in the first column,
    for `-o name`; `empty`: the sentence that stands for a table without rows.
    """

    columns: Sequence[str]
    wide: frozenset[str] = frozenset()
    title: str = ""
    kind: str = ""
    empty: str = ""
    rows: list[Row] = field(default_factory=list)

    def add(self, *cells: object, names: Iterable[str] | None = None, style: str = "") -> None:
        """Add a row, one cell a column; None and empty texts are shown as `-`. `names`: default: the first cell."""
        texts = tuple(ABSENT if cell is None or cell == "" else one_line(str(cell)) for cell in cells)
        if len(texts) != len(self.columns):
            raise ValueError(f"found {len(texts)} cells, expected {len(self.columns)}: {', '.join(self.columns)}")
        shown = texts[:1] if names is None else tuple(one_line(name) for name in names)
        prefix = f"{self.kind}/" if self.kind else ""
        self.rows.append(Row(cells=texts, names=tuple(f"{prefix}{name}" for name in shown), style=style))


Report = Table | str | Sequence[Table | str]


def one_line(text: str) -> str:
    """Return the text on one line, without characters that act on a terminal."""
    return visible(text).translate(_BREAKS)


def fields(pairs: Mapping[str, str]) -> list[str]:
    """Return a line for each pair, the values below each other, as `kubectl describe` prints them."""
    width = max((len(name) for name in pairs), default=0) + 1
    return [f"{name + ':':<{width}}{SEPARATOR}{value}" for name, value in pairs.items()]


def render(report: Report, view: View, *, coloured: bool = False) -> Iterator[str]:
    """Yield the lines of a report: tables apart from what stands around them by an empty line. Without headers only
    rows; `-o name`: what the first table lists, and others of its kind. Raises InvalidInputError where no table has the
    column of --sort-by.
    """
    blocks: Sequence[Table | str] = (report,) if isinstance(report, Table | str) else report
    tables = [block for block in blocks if isinstance(block, Table)]
    if tables:
        view.check({column for table in tables for column in table.columns})
    if tables and view.output is Output.NAME:
        listed = [table for table in tables if table.kind == tables[0].kind]
        yield from dict.fromkeys(name for table in listed for row in _sorted(table, view) for name in row.names)
        return
    if tables and not view.headers:
        blocks = tables
    before: Table | str | None = None
    for block in blocks:
        lines = list(_lines(block, view, coloured=coloured)) if isinstance(block, Table) else [one_line(block)]
        apart = isinstance(block, Table) or isinstance(before, Table)
        if lines and apart and view.headers and before not in (None, "") and lines != [""]:
            yield ""
        yield from lines
        before = block if lines else before


def _lines(table: Table, view: View, *, coloured: bool) -> Iterator[str]:
    if view.headers and table.title:
        yield _painted(one_line(table.title), BOLD, coloured=coloured)
    if not table.rows:
        if view.headers and table.empty:
            yield one_line(table.empty)
        return
    shown = [place for place, name in enumerate(table.columns) if view.output is Output.WIDE or name not in table.wide]
    headers = [tuple(name.upper() for name in table.columns)] if view.headers else []
    lines = [*((header, "") for header in headers), *((row.cells, row.style) for row in _sorted(table, view))]
    widths = [max(_width(cells[place]) for cells, _ in lines) for place in shown]
    for cells, style in lines:
        padded = (
            cells[place] + " " * (width - _width(cells[place])) for place, width in zip(shown, widths, strict=True)
        )
        yield _painted(SEPARATOR.join(padded).rstrip(), style, coloured=coloured)


def _sorted(table: Table, view: View) -> Sequence[Row]:
    wanted = view.sort_by.lower()
    places = [place for place, name in enumerate(table.columns) if name.lower() == wanted]
    return sorted(table.rows, key=lambda row: sort_key(row.cells[places[0]])) if places else table.rows


def sort_key(text: str) -> tuple[int, float, str]:
    """Return the sort key of a cell: numbers, amounts and durations by their value, then texts, absent values last."""
    if text == ABSENT:
        return 2, 0.0, ""
    if _DURATION.fullmatch(text):
        return 0, sum(float(part[:-1]) * _SECONDS[part[-1]] for part in re.findall(r"[\d.]+[dhms]", text)), text
    number = _NUMBER.fullmatch(text)
    return (0, float(number[1]), text) if number else (1, 0.0, text)


def _painted(line: str, style: str, *, coloured: bool) -> str:
    return f"\x1b[{_STYLES[style]}m{line}{_RESET}" if coloured and style else line


def _width(text: str) -> int:
    """Return the columns that a terminal takes for the text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def count_of(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
