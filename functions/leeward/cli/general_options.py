"""`leeward options`: the options that every command takes, as `kubectl options` shows its own."""

import argparse

from leeward.cli.options import GENERAL, add_general_options
from leeward.cli.parser import HelpFormatter

DESCRIPTION = "Shows the options that every command takes. They may stand before or after the command."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: it takes the options that it shows."""


def run(_: argparse.Namespace) -> int:
    """Print the options and return 0."""
    parser = argparse.ArgumentParser(add_help=False)
    add_general_options(parser)
    formatter = HelpFormatter(prog="leeward")
    formatter.add_text(DESCRIPTION)
    (group,) = (group for group in parser._action_groups if group.title == GENERAL)
    formatter.start_section(GENERAL)
    formatter.add_arguments(group._group_actions)
    formatter.end_section()
    print(formatter.format_help(), end="")
    return 0
