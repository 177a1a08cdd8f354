"""`leeward report`: draws the record of a run as one HTML page.

Decides how a record is read and where the page goes; what it looks like is decided in `leeward.report`."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from leeward.cli.output import Output, emit
from leeward.errors import InvalidInputError
from leeward.report.page import page
from leeward.report.record import RunRecord

_EXECUTION = re.compile(r"arn:[^/]+|i-[0-9a-f]{8,17}(-\d+)?", re.ASCII)
_DESCRIPTION = """Draws what happened as an HTML page that loads nothing: a lane per node and per workload, events and
blocks, and every span in a table. RECORD is a run record in JSON (docs/schema/run-record.json), such as the one that
`make demo` writes."""


def add_parser(subparsers: Any) -> None:
    """The verb, its record and its page."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "report", help="draw the record of a run as an HTML page", description=_DESCRIPTION
    )
    parser.add_argument("record", metavar="RECORD", help="a run record, JSON")
    parser.add_argument("--to", metavar="FILE.html", type=Path, required=True, help="the page; one there is replaced")


def run(arguments: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    record = _read(arguments.record)
    path: Path = arguments.to
    if path.resolve() == Path(arguments.record).resolve():
        raise InvalidInputError(f"--to: found {str(path)!r}, the record itself, expected another file")
    try:
        path.write_text(page(record), encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(f"--to: found {str(path)!r} ({why}), expected a file that can be written") from error
    if arguments.output == Output.TABLE.value:
        print(path)  # as it is: a table would fold or cut it
    else:
        figures = {"nodes": len(record.nodes), "workloads": len(record.workloads), "marks": len(record.marks)}
        emit({"report": str(path), **figures}, arguments.output, str)
    return 0


def _read(name: str) -> RunRecord:
    """Raises InvalidInputError with the file's name in front."""
    path = Path(name)
    try:
        if _EXECUTION.fullmatch(name) and not path.exists():
            raise InvalidInputError(
                f"found {name!r}, an execution, expected the file of a run record: "
                "reports of live executions are not there yet"
            )
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInputError(f"{name}: found no readable file ({error.strerror}), expected a run record") from error
    except RecursionError as error:
        raise InvalidInputError(f"{name}: found JSON nested too deep, expected a run record") from error
    except ValueError as error:
        raise InvalidInputError(f"{name}: found no JSON ({error}), expected a run record") from error
    try:
        return RunRecord.from_json(document)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from error
