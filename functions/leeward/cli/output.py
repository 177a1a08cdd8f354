"""Output formats of the command line: plain tables for people, JSON or YAML for programs.

Decides how a result is written; each command brings its own tables (`leeward.cli.tables`)."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leeward.errors import InvalidInputError
from leeward.model.visible import visible

if TYPE_CHECKING:
    from leeward.cli.tables import Report

YAML_WIDTH = 200  # columns


class Output(StrEnum):
    """Closed set of values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"

    @property
    def for_people(self) -> bool:
        """True for tables: progress may follow them."""
        return self in {Output.TABLE, Output.WIDE}


class View(NamedTuple):
    """Options of the tables of a command: `-o`, `--no-headers` and `--sort-by`. `warnings`: files that a snapshot
    folder lacks, a sentence each.
    """

    output: Output
    headers: bool = True
    sort_by: str = ""
    warnings: tuple[str, ...] = ()
    width: int = 0

    def check(self, columns: Iterable[str]) -> None:
        """Check the column of --sort-by. Commands that change something call it first. Raises InvalidInputError."""
        known = sorted(column.lower() for column in columns)
        if self.sort_by and self.sort_by.lower() not in known:
            raise InvalidInputError(f"--sort-by: found {self.sort_by!r}, expected one of {', '.join(known)}")


def emit(document: Any, view: View | str, report: Callable[[], Report], warnings: Sequence[str] = ()) -> None:
    """Write the result to standard output, and the view's warnings to standard error. `report` is called only if the
    output is a table. `warnings`: stand in the document as well; the table has them. Raises InvalidInputError for a
    column of --sort-by that no table has.
    """
    view = View(Output(view)) if isinstance(view, str) else view
    match view.output:
        case Output.JSON:
            print(json.dumps(with_warnings(document, (*view.warnings, *warnings)), indent=2))
        case Output.YAML:
            print(_yaml(with_warnings(document, (*view.warnings, *warnings))), end="")
        case _:
            for line in printed_lines(view, report()):
                print(line)
    for warning in view.warnings:
        tell(f"warning: {warning}")


def with_warnings(document: Any, warnings: Sequence[str]) -> Any:
    """Return the document with the warnings as its last key, of a list each one; a Kubernetes object as it is."""
    if isinstance(document, list):
        return [with_warnings(one, warnings) for one in document]
    if not warnings or "apiVersion" in document:
        return document
    return {**document, "warnings": [*document.get("warnings", ()), *warnings]}


def printed_lines(view: View, report: Report) -> Iterator[str]:
    """Yield the lines of a report, coloured where standard output takes colours. Raises InvalidInputError for a column
    of --sort-by that no table has.
    """
    from leeward.cli.tables import render  # late: --help needs no tables

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    return render(report, view._replace(width=width), coloured=_coloured())


def _yaml(document: Any) -> str:
    """Return the document as YAML. Characters that act on a terminal are escaped, which YAML does only where it escapes
    everything beyond ASCII.
    """
    import yaml  # late: JSON and --help need no YAML

    text = str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=YAML_WIDTH))
    return text if visible(text) == text else str(yaml.safe_dump(document, sort_keys=False, width=YAML_WIDTH))


def _coloured() -> bool:
    """Return whether standard output takes colours: a terminal, without NO_COLOR (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def tell(sentence: str) -> None:
    """Write a sentence to standard error, after the command's name."""
    say(f"leeward: {sentence}")


def say(text: str) -> None:
    """Write lines to standard error; those of a terminal end between words, and outside of commands."""
    from leeward.cli.fixes import sentence_lines  # late: --help says nothing there

    text = visible(text)
    lines = sentence_lines(text, shutil.get_terminal_size().columns) if sys.stderr.isatty() else [text]
    print("\n".join(lines), file=sys.stderr)


def tolerate_any_terminal() -> None:
    """Print an escape instead of a traceback on a terminal that cannot show a character, and nothing where the caller
    has closed a stream (`>&-`): what is printed to a missing one would go to standard output.
    """
    if sys.stdout is None or sys.stderr is None:
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (open to the end of the process)
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
