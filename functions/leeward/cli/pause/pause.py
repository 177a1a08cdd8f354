"""`leeward pause`: stop voluntary work, or all, of every cluster, one cluster or one group."""

import argparse
from datetime import timedelta

from leeward.cli.pause import switch
from leeward.model.pause import Pause, PauseScope
from leeward.policy.durations import parse_duration

LONGEST = timedelta(days=366)
DESCRIPTION = """Stops disruption, repair and upgrades of a cluster or of one of its groups within 60 s, without a
deployment. With --all interruptions are not handled either, while hooks are still heartbeaten and answered. Nodes
that are draining finish. Without --cluster every cluster of the deployment is paused. A pause without --for is
announced again every day."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the scope, the time and the arguments of both commands."""
    switch.add_arguments(parser)
    parser.add_argument("--all", action="store_true", help="pause interruption handling as well")
    parser.add_argument("--for", metavar="TIME", dest="lasts", type=_lasts, help="such as 2h; default: until resumed")


def run(arguments: argparse.Namespace) -> int:
    """Write the pause and print it; a second one replaces the first."""
    caller = switch.caller_of(arguments, "pause")
    pause = Pause(
        by=caller.arn,
        why=arguments.why,
        since=arguments.now,
        announced=arguments.now,
        group=arguments.group,
        until=arguments.now + arguments.lasts if arguments.lasts is not None else None,
        scope=PauseScope.ALL if arguments.all else PauseScope.VOLUNTARY,
    )
    _, after = switch.change(caller, lambda record: record.paused(pause))
    switch.report(arguments, [(cluster, pause) for cluster in after], after, "paused")
    return 0


def _lasts(text: str) -> timedelta:
    try:
        lasts = parse_duration(text)
    except ValueError:
        lasts = timedelta()
    if not timedelta() < lasts <= LONGEST:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a duration of at most a year such as 2h")
    return lasts
