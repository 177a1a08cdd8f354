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
from pathlib import Path
from typing import Protocol, cast

from leeward import __version__
from leeward.cli.examples import epilog_of
from leeward.cli.options import account, cluster, instant, region, seed
from leeward.cli.output import Output, View, tell, tolerate_any_terminal
from leeward.cli.parser import Parser, below
from leeward.errors import InvalidInputError, LeewardError
from leeward.isolation import unexpected

COMMANDS: Mapping[str, tuple[str, str]] = {
    "blockers": ("blockers.command", "show what blocks a node, and until when"),
    "budget": ("budget", "show how many nodes may be disrupted now"),
    "completion": ("completion", "print a completion script for bash, zsh or fish"),
    "doctor": ("doctor", "check the deployment and suggest fixes"),
    "drain": ("drain.command", "drain and terminate a node, or show how that would go"),
    "drift": ("drift", "show which nodes have drifted, and in what"),
    "explain-event": ("explain_event", "show what a queue message says, and what follows from it"),
    "help": ("help", "show the help of a command"),
    "init": ("init", "write a first policy from what a cluster has"),
    "ips": ("ips", "count the addresses that a node takes from its subnet"),
    "metrics": ("metrics", "print the state of a cluster in Prometheus' text format"),
    "pause": ("pause.pause", "stop disruption, repair and upgrades of a cluster or a group"),
    "place": ("place", "choose subnets for new nodes of a group"),
    "plan": ("plan", "show what would be consolidated, replaced or removed, and why"),
    "policy": ("policy", "check policy files, compare them with what is in force, or apply them"),
    "report": ("report.command", "draw an execution, or the record of a run, as an HTML page"),
    "resume": ("pause.resume", "end a pause"),
    "snapshot": ("snapshot", "write a snapshot of a cluster, for working offline"),
    "template": ("template", "show what the next node of a group would be"),
    "top": ("top.command", "show nodes with price, use, state and blocker, refreshed on a terminal"),
    "uninstall": ("uninstall", "remove everything that Leeward has put on nodes and groups"),
    "upgrade": ("upgrade.command", "roll a group to a new template: plan, status, start"),
    "version": ("version", "show the version of Leeward"),
    "zone": ("zone.command", "take the nodes out of a zone, open it again: evacuate, return, status"),
    "zones": ("zones", "show the order of zones and why they differ"),
}  # name -> (module of leeward.cli, help)
DONE, REFUSED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})  # of a disk that takes no more
DEBUG = "LEEWARD_DEBUG"  # environment variable: an unexpected exception is raised, with its traceback
_DESCRIPTION = """Looks after the nodes of Amazon EKS clusters whose nodes live in Auto Scaling groups.

Every command works live (--cluster NAME, with AWS credentials) or offline (--snapshot DIR, a folder of raw kubectl
and aws output). Options may stand before or after the command."""
_EXIT_CODES = "exit code: 0 done, 1 refused or blocked (the output says why), 2 bad input (one message on stderr)"


class Command(Protocol):
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


def build_parser(argv: Sequence[str] = tuple(COMMANDS)) -> Parser:
    """Build a parser of all commands. A command has its arguments only where `argv` names it: importing all commands
    takes half a second.
    """
    parser = Parser(prog="leeward", description=_DESCRIPTION, epilog=_EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"leeward {__version__}")
    _add_general_options(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, explanation) in COMMANDS.items():
        subparser = commands.add_parser(name, help=explanation)
        if name in argv:
            command = cast(Command, import_module(f"leeward.cli.{module}"))
            subparser.description = command.DESCRIPTION
            subparser.set_defaults(run=command.run)
            command.add_arguments(subparser)
            for one in (subparser, *below(subparser).values()):
                _add_general_options(one)
                one.epilog = epilog_of(one.prog.removeprefix("leeward "))
    parser.set_defaults(
        cluster=None, snapshot=None, now=None, output=None, seed=0, account=None, region=None, profile=None
    )
    parser.set_defaults(cluster_profile=None, cluster_region=None, elsewhere=None)
    parser.set_defaults(origin="")  # account and Region of a live command, known once it has asked
    parser.set_defaults(no_headers=False, sort_by="")
    parser.set_defaults(usual_output=Output.TABLE.value)  # a command may have another
    return parser


def _add_general_options(parser: argparse.ArgumentParser) -> None:
    """Add the general options without defaults: options before the verb must survive the command's own parsing."""
    group = parser.add_argument_group("general options")
    absent = argparse.SUPPRESS
    group.add_argument("--cluster", metavar="NAME", type=cluster, default=absent, help="the EKS cluster (live)")
    group.add_argument(
        "--snapshot", metavar="DIR", type=Path, default=absent, help="work offline on a folder of raw tool output"
    )
    group.add_argument(
        "--now", metavar="TIME", type=instant, default=absent, help="the present, RFC 3339 (default: the clock's)"
    )
    group.add_argument(
        "-o",
        "--output",
        choices=[output.value for output in Output],
        default=absent,
        help="default: table, of template: yaml; wide: more columns, name: only names",
    )
    group.add_argument("--no-headers", action="store_true", default=absent, help="tables: only their rows")
    group.add_argument(
        "--sort-by", metavar="COLUMN", default=absent, help="tables: rows by this column, such as NODE or price"
    )
    group.add_argument("--seed", metavar="N", type=seed, default=absent, help="decides what is random (default: 0)")
    group.add_argument("--account", metavar="ID", type=account, default=absent, help="AWS account, twelve digits")
    group.add_argument("--region", metavar="NAME", type=region, default=absent, help="AWS Region")
    group.add_argument("--profile", metavar="NAME", default=absent, help="profile of your AWS configuration")
    group.add_argument(
        "--cluster-profile",
        metavar="NAME",
        default=absent,
        help="profile of the account that has the cluster, where the deployment is in another",
    )
    group.add_argument(
        "--cluster-region",
        metavar="NAME",
        type=region,
        default=absent,
        help="AWS Region of the cluster, where the deployment is in another (default: known to the deployment)",
    )


if __name__ == "__main__":
    sys.exit(main())
