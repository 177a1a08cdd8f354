"""`leeward blockers`: what blocks a node, its owner, until when, and the fix.

Decides how the list is printed; `leeward.blockers` decides what blocks."""

import argparse
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from leeward.blockers.find import blockers
from leeward.cli.blockers.inputs import node_inputs_of
from leeward.cli.context import context_of
from leeward.cli.output import emit

DESCRIPTION = """Shows everything that holds up a node (or all nodes): budgets that allow no eviction, now or ever,
pods and nodes that ask to be left alone, pods that would come back or do not end, volumes that do not leave, lifecycle
hooks; the owner of each, until when it lasts, and the fix. It changes nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the node argument."""
    parser.add_argument("node", metavar="NODE", nargs="?", help="name of the node (default: all nodes)")


def run(arguments: argparse.Namespace) -> int:
    """Find and print the blockers; return 0, whatever the list holds. Raises InvalidInputError for an unknown node."""
    context = context_of(arguments, "blockers")
    nodes = node_inputs_of(context.ports, context.cluster, arguments.node, arguments.now)
    if arguments.node is not None and not nodes:
        raise context.unknown_node(arguments.node)
    found = [blocker.to_json() for node_inputs in nodes for blocker in blockers(node_inputs, arguments.now)]
    looked_at = [node_inputs.node.name for node_inputs in nodes]
    emit({"blockers": found}, arguments.output, lambda: _table(found, looked_at))
    return 0


def _table(found: Sequence[dict[str, Any]], looked_at: Sequence[str]) -> RenderableType:
    if not found:
        return f"nothing blocks {looked_at[0] if len(looked_at) == 1 else f'any of {len(looked_at)} nodes'}"
    nodes = len({blocker["node"] for blocker in found})
    title = f"{len(found)} on {nodes} of {len(looked_at)} nodes"
    table = Table(title=title, title_justify="left", title_style="bold", show_lines=True)
    for column in ("node", "pod", "owner", "what blocks", "until", "fix"):
        table.add_column(column, overflow="fold", ratio=3 if column == "fix" else None)
    before = None
    for blocker in found:
        node = "" if blocker["node"] == before else blocker["node"]
        before = blocker["node"]
        what = f"{blocker['kind']}\n{blocker['object']}"
        until = blocker["until"] or "no end known"
        table.add_row(node, blocker["pod"] or "", blocker["owner"], what, until, blocker["fix"])
    return table
