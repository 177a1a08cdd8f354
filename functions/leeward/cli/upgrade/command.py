"""`leeward upgrade`: the plan for rolling a group to a new template, and the status of an upgrade.

Decides which arguments an action takes; `leeward.upgrade` makes the plan and the status."""

import argparse
import re
from collections.abc import Callable, Mapping

from leeward.cli.context import context_of
from leeward.cli.upgrade.plan import plan
from leeward.cli.upgrade.requests import LIVE
from leeward.cli.upgrade.status import status
from leeward.errors import InvalidInputError
from leeward.upgrade.preflight.findings import Code

DESCRIPTION = """plan: the waves in which old nodes of an Auto Scaling group would drain, its sizes meanwhile, how long
it takes, what it costs, and what stands in the way (blocker or warning, each with its fix).
status: where the group stands: phase, gate, old and new nodes, what blocks the drains.
start, pause, resume, abort, rollback (with --cluster): what runs, or shall run, in the deployment.

The target is the group's launch template as it stands, unless --ami, --launch-template-version or
--kubernetes-version names another."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action, the group, and the target."""
    parser.add_argument("action", metavar="ACTION", choices=tuple(ACTIONS), help=", ".join(ACTIONS))
    parser.add_argument("group", metavar="GROUP", help="name of the Auto Scaling group")
    parser.add_argument("then", metavar="GROUP", nargs="*", help="start: groups that follow, one after the other")
    parser.add_argument("--ami", metavar="ID|ALIAS", type=_image, help="an image, or the alias or SSM parameter of one")
    parser.add_argument("--launch-template-version", metavar="V", type=_version, help="a number, $Latest or $Default")
    parser.add_argument("--kubernetes-version", metavar="V", type=_kubernetes, help="such as 1.31")
    parser.add_argument("--force", action="store_true", help="pods that do not leave in time are deleted")
    parser.add_argument(
        "--override",
        metavar="CODE",
        type=_code,
        action="append",
        default=[],
        help="let blockers of this code pass; may be given again",
    )
    parser.add_argument(
        "--recorded", action="store_true", help="plan: as pre-flight found it before the upgrade that ran last"
    )


def _image(text: str) -> str:
    if not re.fullmatch(r"ami-[0-9a-f]{8,17}|(?!ami-)[A-Za-z0-9_.@/:-]{1,200}", text):
        raise argparse.ArgumentTypeError(
            f"found {text!r}, expected an image id such as ami-0123456789abcdef0 or an alias"
        )
    return text


def _version(text: str) -> str:
    if not re.fullmatch(r"\$Latest|\$Default|[1-9]\d{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a version number, $Latest or $Default")
    return text


def _kubernetes(text: str) -> str:
    if not re.fullmatch(r"1\.\d{1,3}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a Kubernetes version such as 1.31")
    return text


def _code(text: str) -> Code:
    try:
        return Code(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected one of {', '.join(Code)}") from None


def run(arguments: argparse.Namespace) -> int:
    """Run the action. Raises InvalidInputError for several groups where one is meant."""
    if arguments.then and arguments.action != "start":
        found = " ".join((arguments.group, *arguments.then))
        raise InvalidInputError(f"upgrade {arguments.action}: found {found}, expected one group")
    return ACTIONS[arguments.action](arguments)


def _live(arguments: argparse.Namespace) -> int:
    """Run a live action: only a running deployment can take a request."""
    if arguments.snapshot is not None:
        raise InvalidInputError(
            f"upgrade {arguments.action}: found --snapshot, expected --cluster NAME: it is live alone"
        )
    if not arguments.cluster:
        raise InvalidInputError(f"upgrade {arguments.action}: found no --cluster, expected --cluster NAME")
    return LIVE[arguments.action](arguments, context_of(arguments, "upgrade").ports)


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "plan": plan,
    "status": status,
    **dict.fromkeys(LIVE, _live),
}
