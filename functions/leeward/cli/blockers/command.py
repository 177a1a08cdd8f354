"""`leeward blockers`: what blocks a node, its owner, until when, and the fix.

Decides how the list is printed; `leeward.blockers` decides what blocks."""

import argparse
from collections.abc import Sequence
from typing import Any

from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table

from leeward.blockers.find import blockers
from leeward.blockers.namespaces import KeptByNamespace, kept_by_namespace
from leeward.cli.blockers.inputs import node_inputs_of
from leeward.cli.context import context_of
from leeward.cli.output import emit
from leeward.model.times import format_instant

DESCRIPTION = """Shows everything that holds up a node (or all nodes): budgets that allow no eviction, now or ever,
pods and nodes that ask to be left alone, pods that would come back or do not end, volumes that do not leave, lifecycle
hooks; the owner of each, until when it lasts, and the fix. It changes nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the node argument."""
    parser.add_argument("node", metavar="NODE", nargs="?", help="name, short name or instance id (default: all nodes)")


def run(arguments: argparse.Namespace) -> int:
    """Find and print the blockers; return 0, whatever the list holds. Raises InvalidInputError for an unknown node."""
    context = context_of(arguments, "blockers")
    name = None if arguments.node is None else context.node(arguments.node).name
    nodes = node_inputs_of(context.ports, context.cluster, name, arguments.now)
    blocking = [blocker for node_inputs in nodes for blocker in blockers(node_inputs, arguments.now)]
    found = [blocker.to_json() for blocker in blocking]
    namespaces = kept_by_namespace(blocking, arguments.now)
    looked_at = [node_inputs.node.name for node_inputs in nodes]
    document = {"blockers": found, "namespaces": [one.to_json() for one in namespaces]}
    emit(document, arguments.output, lambda: Rows(_table(found, looked_at), *_namespaces(namespaces)))
    return 0


def _namespaces(namespaces: Sequence[KeptByNamespace]) -> Sequence[RenderableType]:
    if not namespaces:
        return ()
    title = "nodes kept by opt-outs, finalizers and lists beyond the limits"
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("namespace", "pods", "nodes", "since", "longer than a day"):
        table.add_column(column, overflow="fold")
    for one in namespaces:
        since = format_instant(one.since) if one.since else "unknown"
        table.add_row(one.namespace, str(one.pods), str(len(one.nodes)), since, ", ".join(one.long) or "none")
    return (table,)


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
