"""`leeward uninstall --cluster NAME`: remove everything that Leeward has put on a cluster, before its stack is deleted.

Decides how the removal is requested and reported; `leeward.cli.uninstall_steps` decides what is Leeward's."""

import argparse
from typing import Any

from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table

from leeward.cli.context import context_of
from leeward.cli.output import emit
from leeward.cli.uninstall_steps import Removal, remove

DESCRIPTION = """Removes everything that Leeward has put on the cluster: taints, cordons, labels, annotations and
finalizers of nodes, lifecycle hooks of groups. Pause the cluster before (spec.paused of ClusterSettings, deployed a
minute ago), or all of it would come back. Nodes and groups with a termination, an upgrade or a run under way are left
and named. It can be run again at any time. With --dry-run, and always with --snapshot, it only prints the plan."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the dry run."""
    parser.add_argument("--dry-run", action="store_true", help="only print what would be removed")


def run(arguments: argparse.Namespace) -> int:
    """Remove and report; return 1 where an object had to be left."""
    context = context_of(arguments, "uninstall")
    dry_run = arguments.dry_run or context.folder is not None
    removal = remove(context.ports, context.cluster, dry_run=dry_run)
    emit(to_json(removal), arguments.output, lambda: _table(removal))
    return 1 if removal.left else 0


def to_json(removal: Removal) -> dict[str, Any]:
    """Return the document that docs/command-line.md and `docs/schema/uninstall.json` describe."""
    return {
        "done": removal.done,
        "nodes": [{"node": name, "removed": list(what)} for name, what in removal.nodes.items()],
        "hooks": [{"group": group, "hook": hook} for group, hook in removal.hooks],
        "left": [{"what": what, "why": why} for what, why in removal.left],
    }


def _table(removal: Removal) -> RenderableType:
    title = "taken off" if removal.done else "would be taken off"
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("where", "what"):
        table.add_column(column, overflow="fold")
    for name, what in removal.nodes.items():
        table.add_row(f"node {name}", ", ".join(what))
    for group, hook in removal.hooks:
        table.add_row(f"group {group}", f"lifecycle hook {hook}")
    nothing = not (removal.nodes or removal.hooks)
    left = [f"left: {what}: {why}" for what, why in removal.left]
    return Rows("nothing of Leeward is there" if nothing else table, *left)
