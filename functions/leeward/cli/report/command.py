"""`leeward report`: draws an execution, or the record of a run, as one HTML page.

Decides which of the two is meant and where the page is written; `live.py` finds the facts of an execution."""

import argparse
import json
from pathlib import Path

from leeward.cli.live import note_origin
from leeward.cli.member import access_of
from leeward.cli.output import Output, emit
from leeward.cli.report.building import build
from leeward.cli.report.live import RequestedExecution, gather, requested_execution
from leeward.cli.report.page import page
from leeward.cli.report.record import RunRecord
from leeward.errors import InvalidInputError

DESCRIPTION = """Draws what happened as an HTML page that loads nothing: a lane per node and per workload, events and
blocks, and every span in a table. EXECUTION is the ARN or the name of an execution (i-0123456789abcdef0-1, GROUP-1,
CLUSTER-3-1), an instance's id its latest termination; it needs --cluster, and may still run. RECORD is a run record
in JSON (docs/schema/run-record.json)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input and its page."""
    parser.add_argument("what", metavar="EXECUTION|RECORD", help="an execution's ARN or name, or a run record, JSON")
    parser.add_argument("--to", metavar="FILE.html", type=Path, required=True, help="the page; one there is replaced")
    parser.add_argument("--record", metavar="FILE.json", type=Path, help="write the run record too, to draw it again")


def run(arguments: argparse.Namespace) -> int:
    """Write the page, and the record if requested; print their paths."""
    execution = None if Path(arguments.what).exists() else requested_execution(arguments.what)
    targets = {"--to": arguments.to, "--record": arguments.record}
    _check_distinct({**targets, "the record itself": None if execution else Path(arguments.what)})
    record = _read(arguments.what) if execution is None else _live(execution, arguments)
    if arguments.record is not None:
        _write("--record", arguments.record, json.dumps(record.to_json(), indent=1) + "\n")
    _write("--to", arguments.to, page(record))
    written = [path for path in targets.values() if path is not None]
    if arguments.view.output not in {Output.JSON, Output.YAML}:
        print("\n".join(map(str, written)))  # as they are: a table would spell out some characters
    else:
        figures = {"nodes": len(record.nodes), "workloads": len(record.workloads), "marks": len(record.marks)}
        beside = {} if arguments.record is None else {"record": str(arguments.record)}
        emit({"report": str(arguments.to), **beside, **figures}, arguments.view, str)
    return 0


def _check_distinct(paths: dict[str, Path | None]) -> None:
    """Check that no file that was read or written is overwritten. Raises InvalidInputError."""
    known: dict[Path, str] = {}
    for name, path in reversed(paths.items()):
        if path is None:
            continue
        other = known.setdefault(path.resolve(), name)
        if other != name:
            raise InvalidInputError(f"{name}: found {str(path)!r}, {_named(other)}, expected another file")


def _named(other: str) -> str:
    return other if not other.startswith("--") else f"the file of {other}"


def _write(option: str, path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        message = f"{option}: found {str(path)!r} ({why}), expected a file that can be written"
        raise InvalidInputError(message) from error


def _live(execution: RequestedExecution, arguments: argparse.Namespace) -> RunRecord:
    """Read the execution. Raises InvalidInputError without --cluster, and for an ARN of another Region or account."""
    if arguments.snapshot is not None:
        raise InvalidInputError("report: found --snapshot, expected --cluster NAME: executions are read live")
    if arguments.cluster is None:
        raise InvalidInputError(
            f"report: found no file {arguments.what!r} and no --cluster, expected the file of a run record, or an "
            "execution with --cluster NAME"
        )
    for option, given, expected in (
        ("--region", arguments.region, execution.region),
        ("--account", arguments.account, execution.account),
    ):
        if given and expected and given != expected:
            raise InvalidInputError(f"{option}: found {given}, expected {expected} as in the ARN, or none")
    from leeward.adapters.wiring import command_line_past  # late: a record needs no AWS library

    region, account = arguments.region or execution.region, arguments.account or execution.account
    ports, past = command_line_past(arguments.cluster, region, account, **access_of(arguments))
    note_origin(arguments, ports.origins)
    return build(gather(execution, arguments.cluster, arguments.now, ports, past))


def _read(name: str) -> RunRecord:
    """Read a run record. Raises InvalidInputError with the file's name in front."""
    path = Path(name)
    try:
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
