"""Confirmation of destructive commands: what will happen, and a question on a terminal.

Decides when a command may go on: with --yes, or after the answer yes. A script has no terminal, so it needs --yes."""

import argparse
import sys
from collections.abc import Sequence

from leeward.cli.output import say
from leeward.errors import InvalidInputError, TerminalError

MOST_LINES = 20  # of a summary
ANSWERS = ("y", "yes")


class DeclinedError(TerminalError):
    """Answer other than yes; nothing was changed."""


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add `--yes`."""
    parser.add_argument("--yes", action="store_true", help="do not ask (needed where there is no terminal)")


def check_can_ask(arguments: argparse.Namespace, verb: str, effect: str) -> None:
    """Check that the command may act or can ask, before anything is read. `effect`: what it does, such as "terminates
    the instance". Raises InvalidInputError.
    """
    if not arguments.yes and not _on_terminal():
        raise InvalidInputError(
            f"{verb}: found no terminal to ask on and no --yes, expected --yes where a script runs it: it {effect}"
        )


def confirm(arguments: argparse.Namespace, effects: Sequence[str]) -> None:
    """Print what will happen, a line each, and ask; with --yes print and ask nothing. Raises DeclinedError for any
    answer but yes.
    """
    if arguments.yes:
        return
    left = len(effects) - MOST_LINES
    shown = [*effects[:MOST_LINES], *([f"and {left} more"] if left > 0 else [])]
    for line in shown:
        say(line)
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ANSWERS:
        raise DeclinedError("not confirmed; nothing was changed")


def _on_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
