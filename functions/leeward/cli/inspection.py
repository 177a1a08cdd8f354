"""`leeward inspect ANALYSIS`: the commands that explain one input of Leeward's decisions.

Decides which commands these are; each has a module of its own."""

import argparse
from collections.abc import Mapping

ANALYSES: Mapping[str, tuple[str, str]] = {
    "budget": ("budget", "show how many nodes may be disrupted now"),
    "explain-event": ("explain_event", "show what a queue message says, and what follows from it"),
    "ips": ("ips", "count the addresses that a node takes from its subnet"),
    "place": ("place", "choose subnets for new nodes of a group"),
    "template": ("template", "show what the next node of a group would be"),
    "zones": ("zones", "show the order of zones and why they differ"),
}  # name -> (module of leeward.cli, help)
DESCRIPTION = """Explains one input of Leeward's decisions: what budgets allow, what a message leads to, which addresses
and zones a new node takes, what it would be. Nothing is changed. leeward inspect ANALYSIS --help explains each."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a parser for each analysis; `leeward.cli.main` adds the arguments of the one that is named."""
    analyses = parser.add_subparsers(title="analyses", metavar="ANALYSIS", required=True, help=", ".join(ANALYSES))
    for name, (_, explanation) in ANALYSES.items():
        analyses.add_parser(name, help=explanation)


def run(arguments: argparse.Namespace) -> int:
    """Run nothing: each analysis has a function of its own, and one is required."""
    raise AssertionError(f"inspect without an analysis: {arguments}")
