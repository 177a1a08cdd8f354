"""Fit of tables and sentences to the width of a terminal.

Decides what gives way where a table is wider than the screen: first the common domain of the nodes' names, then the
optional columns, the least important first; then the column of sentences is wrapped, at last it stands below its row.
What is missing is named in a line that begins with `…`. A pipe, `-o wide` and `--no-headers` get everything."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MISSING = "…"
INDENT = "  "
NODES = frozenset({"NODE", "NODES", "REPLACED BY"})  # columns of names of nodes
LEAST_TEXT = 24  # columns of a screen in which sentences can still be read
_PARTS = re.compile(r"[^\s,]+,?\s*|,\s*|\s+")  # a line may end after a blank or a comma
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


class Copied(str):
    """Line to be copied, such as a command: a terminal breaks it itself, so that the copy has no line breaks."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Columns of a table that is fitted. `optional`: those that are left out, the first of them first; `text`: the
    column of sentences, which is wrapped.
    """

    names: tuple[str, ...]
    optional: Sequence[str] = ()
    text: str = ""
    separator: str = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Table as it fits: the lines of each row of cells that was given. `note`: what is missing, empty where nothing."""

    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def width_of(text: str) -> int:
    """Return the columns that a terminal takes for the text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def wrapped(text: str, width: int, indent: str = INDENT) -> list[str]:
    """Return the text in lines of at most so many columns, those after the first indented. A word is never broken: one
    that is longer has a line of its own.
    """
    lines, line = list[str](), ""
    for part in _PARTS.findall(text):
        if line.strip() and width_of(line) + width_of(part.rstrip()) > width:
            lines.append(line.rstrip())
            line = indent
        line += part
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def shortened(text: str, width: int) -> str:
    """Return the text, cut to so many columns with a `…` at its end where it is longer."""
    if width_of(text) <= width:
        return text
    kept = ""
    for letter in text:
        if width_of(kept + letter) >= width:
            break
        kept += letter
    return f"{kept}{MISSING}" if width > 0 else ""


def narrowed(text: str, width: int) -> str:
    """Return the text, cut to so many columns with a `…` in its middle where it is longer: names of nodes and pods that
    begin alike differ at their ends.
    """
    if width_of(text) <= width:
        return text
    end = shortened(text[::-1], (width + 1) // 2).removesuffix(MISSING)[::-1]
    return shortened(text, width - width_of(end)) + end


def common_domain(names: Iterable[str]) -> str:
    """Return the domain that all names with a domain share, such as `.ec2.internal`; empty where they share none or
    would not differ without it.
    """
    known = {name for name in names if _NAME.fullmatch(name)}
    domains = {name[name.index(".") :] for name in known if "." in name.strip(".")}
    if len(domains) != 1:
        return ""
    domain = domains.pop()
    return domain if len({name.removesuffix(domain) for name in known}) == len(known) else ""


def fit(columns: Columns, rows: Sequence[tuple[str, ...]], width: int) -> Grid:
    """Return the rows, headers among them, as they fit into so many columns of a screen."""
    shown = list(range(len(columns.names)))
    if _needed(columns, rows, shown) <= width:
        return Grid(rows=tuple((line,) for line in _padded(columns, rows, shown)))
    rows, domain = _folded(columns, rows)
    text = columns.names.index(columns.text) if columns.text in columns.names else None
    hidden = _hidden(columns, rows, width, text, below=False)
    if text is not None and not _fits_beside(columns, rows, _without(columns, [*hidden, columns.text]), text, width):
        hidden = _hidden(columns, rows, width, text, below=True)
    shown = _without(columns, hidden)
    notes = [*([f"without {', '.join(hidden)}"] if hidden else []), *([f"names without {domain}"] if domain else [])]
    note = f"{MISSING} {'; '.join(notes)} (-o wide shows all)" if notes else ""
    return Grid(rows=tuple(_lines(columns, rows, shown, text, width)), note=note)


def _without(columns: Columns, hidden: Sequence[str]) -> list[int]:
    return [place for place, name in enumerate(columns.names) if name not in hidden]


def _hidden(
    columns: Columns, rows: Sequence[tuple[str, ...]], width: int, text: int | None, *, below: bool
) -> list[str]:
    """Return the optional columns that are left out. `below`: the sentences stand below their rows, not beside them."""
    hidden, apart = list[str](), [columns.text] if below else []
    for name in columns.optional:
        if _needed(columns, rows, _without(columns, [*hidden, *apart]), text) <= width:
            break
        hidden += [name] if name in columns.names else []
    return hidden


def _lines(
    columns: Columns, rows: Sequence[tuple[str, ...]], shown: list[int], text: int | None, width: int
) -> list[tuple[str, ...]]:
    """Return the lines of each row; the column of sentences is wrapped beside the others, or below them."""
    others = [place for place in shown if place != text]
    rows = _cut(columns, rows, others, width)
    if text is None:
        return [(line,) for line in _padded(columns, rows, others)]
    if _fits_beside(columns, rows, others, text, width):
        room = width - _needed(columns, rows, others) - len(columns.separator)
        spread = [list(_beside(row, text, wrapped(row[text], room, ""))) for row in rows]
        padded = iter(_padded(columns, [cells for lines in spread for cells in lines], shown))
        return [tuple(next(padded) for _ in lines) for lines in spread]
    heads = _padded(columns, rows, others)
    return [
        (head, *(f"{INDENT}{line}" for line in wrapped(row[text], width - len(INDENT)) if row[text] != "-"))
        for head, row in zip(heads, rows, strict=True)
    ]


def _fits_beside(columns: Columns, rows: Sequence[tuple[str, ...]], others: list[int], text: int, width: int) -> bool:
    """Return whether the sentences can be wrapped beside the other columns without breaking a word."""
    room = width - _needed(columns, rows, others) - len(columns.separator)
    longest = max(width_of(part.rstrip()) for row in rows for part in _PARTS.findall(row[text] or " "))
    return room >= max(LEAST_TEXT, longest) or room >= max(width_of(row[text]) for row in rows)


def _beside(row: tuple[str, ...], text: int, lines: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the row with the first line of its sentence, then rows with the other lines alone."""
    for number, line in enumerate(lines):
        yield tuple(line if place == text else "" if number else cell for place, cell in enumerate(row))


def _cut(columns: Columns, rows: Sequence[tuple[str, ...]], shown: list[int], width: int) -> Sequence[tuple[str, ...]]:
    """Return the rows with the longest cells cut until these columns fit."""
    widths = [max((width_of(row[place]) for row in rows), default=0) for place in shown]
    room = width - len(columns.separator) * (len(shown) - 1)
    limit = max(widths, default=0)
    while limit > 1 and sum(min(each, limit) for each in widths) > room:
        limit -= 1
    return [tuple(narrowed(cell, limit) if place in shown else cell for place, cell in enumerate(row)) for row in rows]


def _needed(columns: Columns, rows: Sequence[tuple[str, ...]], shown: list[int], text: int | None = None) -> int:
    """Return the columns of a screen that the shown columns take; `text` counts as wide as it has to be at least."""
    widths = (max((width_of(row[place]) for row in rows), default=0) for place in shown)
    least = (min(each, LEAST_TEXT) if place == text else each for place, each in zip(shown, widths, strict=True))
    return sum(least) + len(columns.separator) * (len(shown) - 1)


def _padded(columns: Columns, rows: Sequence[tuple[str, ...]], shown: list[int]) -> list[str]:
    """Return a line for each row: its cells below each other."""
    widths = [max((width_of(row[place]) for row in rows), default=0) for place in shown]
    return [
        columns.separator.join(
            row[place] + " " * (each - width_of(row[place])) for place, each in zip(shown, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _folded(columns: Columns, rows: Sequence[tuple[str, ...]]) -> tuple[Sequence[tuple[str, ...]], str]:
    """Return the rows whose names of nodes have no domain, and the domain."""
    places = [place for place, name in enumerate(columns.names) if name in NODES]
    names = {name for row in rows for place in places for name in re.split(r",\s*", row[place])}
    domain = common_domain(names - set(columns.names))
    if not domain:
        return rows, ""
    ends = re.compile(rf"{re.escape(domain)}(?=,|$)")
    return [
        tuple(ends.sub("", cell) if place in places else cell for place, cell in enumerate(row)) for row in rows
    ], domain
