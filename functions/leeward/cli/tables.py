"""Plain tables, as kubectl prints them: upper-case headers, blanks between columns, one line a row.

Decides how a report becomes lines. A pipe gets all of it, whatever the width of a terminal; on a terminal tables and
sentences are fitted to it (`leeward.cli.fitting`). Texts come from clusters: characters that act on a terminal are
spelled out."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from leeward.cli.fitting import Columns, Copied, fit, wrapped
from leeward.cli.fixes import sentence_lines
from leeward.cli.output import Output, View
from leeward.model.visible import visible

SEPARATOR = "   "
ABSENT = "-"
BOLD, CHOSEN = "bold", "chosen"
_STYLES = {BOLD: "1", CHOSEN: "7", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}  # SGR parameters
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
    """Rows under named columns. `wide`: columns that only `-o wide` shows; `optional`: those that a terminal may be too
    narrow for, the least important first; `text`: the column of sentences, which a terminal wraps, default: the last
    one; `kind`: of the objects in the first column, for `-o name`; `empty`: the sentence that stands for a table
    without rows.
    """

    columns: Sequence[str]
    optional: Sequence[str] = ()
    text: str = ""
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
        lines = list(_lines(block, view, coloured=coloured)) if isinstance(block, Table) else _sentence(block, view)
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
    names = tuple(table.columns[place].upper() for place in shown)
    rows = _sorted(table, view)
    cells = [*([names] if view.headers else []), *(tuple(row.cells[place] for place in shown) for row in rows)]
    columns = Columns(
        names=names, optional=[name.upper() for name in table.optional], text=(table.text or names[-1]).upper()
    )
    grid = fit(columns, cells, _width(view) or sys.maxsize)
    for lines, style in zip(grid.rows, [*([""] if view.headers else []), *(row.style for row in rows)], strict=True):
        yield from (_painted(line, style, coloured=coloured) for line in lines)
    if grid.note:
        yield from wrapped(grid.note, _width(view))


def _sentence(text: str, view: View) -> list[str]:
    """Return the lines of a sentence; those of a terminal end between words."""
    width = _width(view)
    return [one_line(text)] if not width or isinstance(text, Copied) else sentence_lines(one_line(text), width)


def _width(view: View) -> int:
    """Return the columns that the output is fitted to, 0 for one that gets everything."""
    return view.width if view.headers and view.output is not Output.WIDE else 0


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
