"""Output formats of the command line: a table for people, JSON or YAML for programs.

Decides nothing about the result; each command brings its own table."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from leeward.model.visible import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

PLAIN_WIDTH = 200  # columns of a table that goes into a file or a pipe


class Output(StrEnum):
    """Closed set of values of `-o`."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def emit(document: Any, output: Output | str, table: Callable[[], RenderableType]) -> None:
    """Write the result to standard output. `table` is called only if the output is a table."""
    match Output(output):
        case Output.JSON:
            print(json.dumps(document, indent=2))
        case Output.YAML:
            import yaml  # late: JSON and --help need neither YAML nor tables

            print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=PLAIN_WIDTH), end="")
        case Output.TABLE:
            from rich.console import Console

            width = None if sys.stdout.isatty() else PLAIN_WIDTH
            Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False).print(_Visible(table()))


class _Visible:
    """Renderable whose texts cannot act on the terminal; rich's own styles still do."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def tell(sentence: str) -> None:
    """Write a sentence to standard error, after the command's name."""
    print(f"leeward: {visible(sentence)}", file=sys.stderr)


def tolerate_any_terminal() -> None:
    """Print an escape instead of a traceback on a terminal that cannot show a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
