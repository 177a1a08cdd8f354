"""`leeward version`: what `leeward --version` prints."""

import argparse

from leeward import __version__
from leeward.cli.output import emit

DESCRIPTION = "Shows the version of Leeward."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has the general options alone."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Print the version and return 0."""
    emit({"version": __version__}, arguments.view, lambda: f"leeward {__version__}")
    return 0
