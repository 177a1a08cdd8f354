"""`leeward resume`: end the pause of every cluster, one cluster or one group."""

import argparse

from leeward.cli.pause import switch

DESCRIPTION = """Ends the pause of a cluster and of all its groups, or with --group of that group alone, within 60 s.
Without --cluster every cluster of the deployment is resumed. A group stays paused while its cluster is."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both commands."""
    switch.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the switch and print the pauses that it has ended; none is no error."""
    caller = switch.caller_of(arguments, "resume")
    before, after = switch.change(
        caller,
        lambda record: (
            record.resumed(arguments.group, caller.arn, arguments.why)
            if any(not arguments.group or pause.group == arguments.group for pause in record.pauses)
            else record
        ),
    )
    ended = [
        (cluster, pause)
        for cluster, record in before.items()
        for pause in record.pauses
        if pause.in_force(arguments.now) and after[cluster].of_group(pause.group) is None
    ]
    switch.report(arguments, ended, after, "resumed")
    return 0
