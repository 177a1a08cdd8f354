"""`leeward upgrade ACTION GROUP`: plan, start, status and control of rolling a group to a new template.

Decides which arguments an action takes; `leeward.upgrade` makes the plan and the status."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from leeward.cli.confirmation import add_yes, check_can_ask
from leeward.cli.context import ClusterContext, context_of
from leeward.cli.upgrade.values import code, image, kubernetes, version
from leeward.errors import InvalidInputError

DESCRIPTION = """Rolls an Auto Scaling group or a managed node group to a new template: plan shows how, start begins it,
status shows where it stands; pause, resume, abort and rollback control it. leeward upgrade ACTION --help explains each.

The target is the group's launch template as it stands, unless --ami, --launch-template-version or
--kubernetes-version names another."""
PLAN = """Shows the waves in which old nodes would drain, the group's sizes meanwhile, how long it takes, what it costs,
and what blocks it (blocker or warning, each with its fix). Nothing is changed."""
STATUS = """Shows where the upgrade stands: phase, gate, old and new nodes, what blocks the drains; for a failed or
stopped one the error, its cause and the next command."""
START = """Runs the pre-flight of leeward upgrade plan, asks, and begins the upgrade: exit code 1 with the findings
where a blocker is found. An upgrade that an earlier start has left resumes; a running one is only named."""
PAUSE = "Starts no further node; nodes that drain finish. A group that EKS rolls cannot be paused by it."
RESUME = "Continues a paused or stopped upgrade."
ABORT = """Ends the upgrade: nodes that drain finish, the other old nodes return to service, surplus new nodes are
TERMINATED, and the group launches its earlier version again."""
ROLLBACK = """Rolls the group back to its earlier template version: every node of the new version is drained and
TERMINATED, also where the upgrade has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action. `targets`: it takes a target; `asks`: what it does that needs a confirmation, empty where none."""

    help: str
    description: str
    run: Callable[[argparse.Namespace], int]
    targets: bool = False
    asks: str = ""
    watched: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a parser for each action."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, help=", ".join(ACTIONS))
    for name, action in ACTIONS.items():
        subparser = actions.add_parser(name, help=action.help, description=action.description)
        subparser.set_defaults(action=name, then=[], asks=action.asks, yes=False, watch=False)
        subparser.add_argument("group", metavar="GROUP", help="name of the Auto Scaling group")
        if name == "start":
            subparser.add_argument("then", metavar="GROUP", nargs="*", help="groups that follow, one after the other")
        if action.targets:
            _add_targets(subparser)
        if name == "plan":
            subparser.add_argument("--recorded", action="store_true", help="as pre-flight found it before the last run")
        if action.watched:
            subparser.add_argument(
                "--watch",
                "--wait",
                dest="watch",
                action="store_true",
                help="follow it to its end; Ctrl-C leaves it running",
            )
        if action.asks:
            add_yes(subparser)


def _add_targets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ami", metavar="ID|ALIAS", type=image, help="an image, or the alias or SSM parameter of one")
    parser.add_argument("--launch-template-version", metavar="V", type=version, help="a number, $Latest or $Default")
    parser.add_argument("--kubernetes-version", metavar="V", type=kubernetes, help="such as 1.31")
    parser.add_argument("--force", action="store_true", help="pods that do not leave in time are deleted")
    parser.add_argument(
        "--override",
        metavar="CODE",
        type=code,
        action="append",
        default=[],
        help="let blockers of this code pass; may be given again",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    return ACTIONS[arguments.action].run(arguments)


def _plan(arguments: argparse.Namespace) -> int:
    from leeward.cli.upgrade.plan import plan  # late, as the others: --help needs none of them

    return plan(arguments)


def _status(arguments: argparse.Namespace) -> int:
    from leeward.cli.upgrade.status import status

    return status(arguments)


def _start(arguments: argparse.Namespace, context: ClusterContext) -> int:
    from leeward.cli.upgrade.requests import start

    return start(arguments, context)


def _control(arguments: argparse.Namespace, context: ClusterContext) -> int:
    from leeward.cli.upgrade.requests import control

    return control(arguments, context)


def _live(act: Callable[[argparse.Namespace, ClusterContext], int]) -> Callable[[argparse.Namespace], int]:
    """Return the live action: only a running deployment can take a request."""

    def checked(arguments: argparse.Namespace) -> int:
        verb = f"upgrade {arguments.action}"
        if arguments.snapshot is not None:
            raise InvalidInputError(f"{verb}: found --snapshot, expected --cluster NAME: it is live alone")
        if not arguments.cluster:
            raise InvalidInputError(f"{verb}: found no --cluster, expected --cluster NAME")
        if arguments.asks:
            check_can_ask(arguments, verb, arguments.asks)
        return act(arguments, context_of(arguments, verb))

    return checked


ACTIONS = {
    "plan": Action(help="show how it would go, and what blocks it", description=PLAN, run=_plan, targets=True),
    "status": Action(help="show where it stands", description=STATUS, run=_status, watched=True),
    "start": Action(
        help="run the pre-flight and begin",
        description=START,
        run=_live(_start),
        targets=True,
        asks="replaces every old node of the group (leeward upgrade plan shows how)",
        watched=True,
    ),
    "pause": Action(help="start no further node", description=PAUSE, run=_live(_control)),
    "resume": Action(help="continue", description=RESUME, run=_live(_control)),
    "abort": Action(
        help="end it and return old nodes to service",
        description=ABORT,
        run=_live(_control),
        asks="terminates surplus new nodes",
    ),
    "rollback": Action(
        help="roll the group back to its earlier version",
        description=ROLLBACK,
        run=_live(_control),
        asks="replaces every new node of the group by one of the earlier version",
    ),
}
