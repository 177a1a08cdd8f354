"""`leeward plan`: its arguments; `leeward.cli.planning` does the work, and is imported only for it."""

import argparse
from pathlib import Path

from leeward.cli.confirmation import add_yes
from leeward.cli.node_filter import add_node_filters
from leeward.cli.what_if import WhatIf
from leeward.disruption.command import MethodName

DESCRIPTION = """Shows the next run of voluntary disruption: nodes and costs now and then, which nodes are blocked and
by what, and one row for each command with the nodes that are removed and what is launched before. One method acts in
a run, the first that has something to do: expiration, drift, emptiness, consolidation. With --method unhealthy it
shows the nodes that the minute reconciler would replace. Nothing is changed, unless --apply is given: it asks, and
starts the disruption run of the commands shown, which drains and TERMINATES their nodes.

A budget lets a few nodes go at a time, so one run is a part of what can be saved. With --until-done the runs after it
are planned as well, each on the cluster that the one before leaves."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one method, a method to switch on, an earlier plan, the filters, what is shown, and the start of the run."""
    methods, switches = [name.value for name in MethodName], [method.value for method in WhatIf]
    alone, as_if = f"this method alone: {', '.join(methods)}", f"as if policies had it on: {', '.join(switches)}"
    parser.add_argument("--method", metavar="METHOD", choices=methods, help=alone)
    parser.add_argument("--what-if", metavar="METHOD", choices=switches, help=as_if)
    parser.add_argument("--validate", metavar="PLAN.json", type=Path, help="check an earlier plan again")
    parser.add_argument("--until-done", action="store_true", help="plan run after run until nothing is left to do")
    parser.add_argument("--pods", action="store_true", help="show where each pod goes")
    parser.add_argument("--verbose", action="store_true", help="show for every node why it stays")
    add_node_filters(parser)
    _add_apply(parser)


def run(arguments: argparse.Namespace) -> int:
    """Plan or check, and print; with --apply start the run. Return 1 where the start is refused."""
    from leeward.cli import planning  # late: --help needs no planner

    return planning.run(arguments)


def _add_apply(parser: argparse.ArgumentParser) -> None:
    """Add --apply, the consent and --watch."""
    parser.add_argument("--apply", action="store_true", help="start the run of these commands (live; it asks)")
    add_yes(parser)
    parser.add_argument(
        "--watch",
        "--wait",
        dest="watch",
        action="store_true",
        help="with --apply: follow the run to its end; Ctrl-C leaves it running",
    )
