"""`leeward` command: its options, its commands and its exit codes.

Decides how arguments are read and how failures are reported. 0: done. 1: refused or blocked. 2: bad input, one message
on standard error naming what was found and what was expected, or a defect of Leeward itself."""

import argparse
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Protocol, cast

from leeward import __version__
from leeward.cli.examples import epilog_of
from leeward.cli.inspection import ANALYSES
from leeward.cli.options import add_general_options
from leeward.cli.output import Output, View, tell, tolerate_any_terminal
from leeward.cli.parser import Parser, below
from leeward.errors import InvalidInputError, LeewardError
from leeward.isolation import unexpected

Table = Mapping[str, tuple[str, str]]  # name -> (module of leeward.cli, help)
HEADINGS: Mapping[str, Table] = {
    "look at a cluster": {
        "top": ("top.command", "show nodes with price, use, state and blocker, refreshed on a terminal"),
        "blockers": ("blockers.command", "show what blocks a node, and until when"),
        "plan": ("plan", "show what would be consolidated, replaced or removed, and why"),
        "drift": ("drift", "show which nodes have drifted, and in what"),
        "report": ("report.command", "draw an execution, or the record of a run, as an HTML page"),
        "metrics": ("metrics", "print the state of a cluster in Prometheus' text format"),
        "inspect": ("inspection", "analyse budgets, messages, addresses, zones and new nodes"),
    },
    "act on nodes and groups": {
        "drain": ("drain.command", "drain and terminate nodes, or show how that would go"),
        "upgrade": ("upgrade.command", "roll a group to a new template: plan, status, start"),
        "zone": ("zone.command", "take the nodes out of a zone, open it again: evacuate, return, status"),
        "pause": ("pause.pause", "stop disruption, repair and upgrades of a cluster or a group"),
        "resume": ("pause.resume", "end a pause"),
    },
    "set up and check": {
        "init": ("init", "write a first policy from what a cluster has"),
        "policy": ("policy", "check policy files, compare them with what is in force, or apply them"),
        "doctor": ("doctor", "check the deployment and suggest fixes"),
        "snapshot": ("snapshot", "write a snapshot of a cluster, for working offline"),
        "uninstall": ("uninstall", "remove everything that Leeward has put on nodes and groups"),
    },
    "about the command itself": {
        "completion": ("completion", "print a completion script for bash, zsh or fish"),
        "help": ("help", "show the help of a command"),
        "options": ("general_options", "show the options that every command takes"),
        "version": ("version", "show the version of Leeward"),
    },
}
COMMANDS: Table = {name: entry for table in HEADINGS.values() for name, entry in table.items()}
DONE, REFUSED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})  # of a disk that takes no more
INSPECTION = "inspection"  # module
DEBUG = "LEEWARD_DEBUG"  # environment variable: an unexpected exception is raised, with its traceback
_DESCRIPTION = """Looks after the nodes of Amazon EKS clusters whose nodes live in Auto Scaling groups.

Every command works live (--cluster NAME, with AWS credentials) or offline (--snapshot DIR, a folder of raw kubectl
and aws output). leeward options shows how to name it, and the other options that every command takes."""
_EXIT_CODES = """exit code: 0 done, 1 refused or blocked (the output says why), 2 bad input (one message on stderr)

leeward help COMMAND explains a command, leeward options shows the options that every command takes."""


class CommandModule(Protocol):
    """Module of a command. `run` returns the exit code."""

    DESCRIPTION: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the command."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    tolerate_any_terminal()
    arguments = None
    try:
        arguments = parse_arguments((sys.argv[1:] if argv is None else argv) or ["help"])
        code = int(arguments.run(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  (whatever a file holds, its reader gets one sentence)
        return _report(error, arguments)
    return code


def _report(error: Exception, arguments: argparse.Namespace | None) -> int:
    """Print one sentence about the error and return the exit code. Raises an unexpected one where LEEWARD_DEBUG is
    set.
    """
    if isinstance(error, LeewardError) and arguments is not None:
        from leeward.cli.live import explained  # late: only a failure needs it

        error = explained(error, arguments)
    match error:
        case InvalidInputError():
            tell(str(error))
        case OverflowError():  # times near the year 1 or 9999
            tell(f"found a time or duration out of range ({error}), expected one near ours")
        case LeewardError():
            tell(str(error))
            return REFUSED
        case OSError() if error.errno in FULL:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else its end reports it once more
            tell(f"the output cannot be written: {error.strerror}")
        case _:
            if os.environ.get(DEBUG):
                raise error
            tell(
                f"found a defect of Leeward itself ({unexpected(error)}), expected none; {DEBUG}=1 shows its traceback"
            )
    return BAD_INPUT


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command's arguments; `now` is always an aware time. Raises InvalidInputError."""
    parser = build_parser(argv)
    arguments: argparse.Namespace = parser.parse_args(argv)
    arguments.now = arguments.now or datetime.now(UTC).replace(microsecond=0)
    arguments.output = arguments.output or arguments.usual_output
    if arguments.snapshot is not None and arguments.cluster is not None:
        raise InvalidInputError(
            f"found --snapshot {arguments.snapshot} and --cluster {arguments.cluster}, expected one of them: "
            "a folder is read offline, a cluster live"
        )
    if arguments.cluster is None and (arguments.cluster_profile or arguments.cluster_region):
        given = "--cluster-profile" if arguments.cluster_profile else "--cluster-region"
        raise InvalidInputError(f"found {given} without --cluster, expected --cluster NAME: the cluster that is there")
    arguments.view = _view(arguments)
    return arguments


def _view(arguments: argparse.Namespace) -> View:
    """Return how tables are printed. Raises InvalidInputError for options of tables with JSON or YAML."""
    view = View(Output(arguments.output), headers=not arguments.no_headers, sort_by=arguments.sort_by)
    given = "--sort-by" if view.sort_by else "" if view.headers else "--no-headers"
    if given and view.output in {Output.JSON, Output.YAML}:
        raise InvalidInputError(f"found {given} with -o {view.output.value}, expected -o table, wide or name")
    return view


def build_parser(argv: Sequence[str] | None = None) -> Parser:
    """Build a parser of all commands, by default with the arguments of each. With `argv` a command has its arguments
    only where these words name it: importing all commands takes half a second. The name of an analysis alone is no
    command, and is answered with the command that has it.
    """
    elsewhere = {name: f"inspect {name}" for name in ANALYSES}
    parser = Parser(
        prog="leeward", description=_DESCRIPTION, epilog=_EXIT_CODES, headings=HEADINGS, elsewhere=elsewhere
    )
    parser.add_argument("--version", action="version", version=f"leeward {__version__}")
    add_general_options(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, explanation) in COMMANDS.items():
        subparser = commands.add_parser(name, help=explanation)
        if argv is None or name in argv:
            _fill(subparser, module, argv)
    parser.set_defaults(
        cluster=None, snapshot=None, now=None, output=None, seed=0, account=None, region=None, profile=None
    )
    parser.set_defaults(cluster_profile=None, cluster_region=None, elsewhere=None)
    parser.set_defaults(origin="")  # account and Region of a live command, known once it has asked
    parser.set_defaults(no_headers=False, sort_by="")
    parser.set_defaults(usual_output=Output.TABLE.value)  # a command may have another
    return parser


def _fill(parser: argparse.ArgumentParser, module: str, argv: Sequence[str] | None) -> None:
    """Add the arguments of a command, its general options and its examples; those of an analysis below `inspect`."""
    command = cast(CommandModule, import_module(f"leeward.cli.{module}"))
    parser.description = command.DESCRIPTION
    parser.set_defaults(run=command.run)
    command.add_arguments(parser)
    analyses = below(parser) if module == INSPECTION else {}
    for name, subparser in analyses.items():
        if argv is None or name in argv:
            _fill(subparser, ANALYSES[name][0], argv)
    for one in (parser, *(subparser for name, subparser in below(parser).items() if name not in analyses)):
        add_general_options(one)
        one.epilog = epilog_of(one.prog.removeprefix("leeward "))


if __name__ == "__main__":
    sys.exit(main())
