"""`leeward help [COMMAND]`: what `leeward COMMAND --help` prints."""

import argparse

DESCRIPTION = "Shows the commands, or the help of one: leeward help drain is leeward drain --help."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser.add_argument("command", metavar="COMMAND", nargs="*", help="such as drain or upgrade start")


def run(arguments: argparse.Namespace) -> int:
    """Print the help and return 0. Raises InvalidInputError for an unknown command."""
    from leeward.cli.main import build_parser  # late: that module runs this one

    try:
        build_parser(arguments.command).parse_args([*arguments.command, "--help"])
    except SystemExit as ended:  # argparse ends the process after a help
        return int(ended.code or 0)
    return 0
