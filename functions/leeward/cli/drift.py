"""`leeward drift`: the nodes that differ from what their group would launch now, the fields that differ, and the
remedy.

Decides how the result is printed; `leeward.drift` decides what has drifted."""

import argparse
from collections.abc import Sequence
from typing import Any

from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table

from leeward.cli.cluster_state import cluster_of
from leeward.cli.output import emit
from leeward.drift.detect import Drifted, all_drift
from leeward.model.times import format_instant

DESCRIPTION = """Shows every node with all differences from what its group would launch now and from what its policy
asks of nodes. The remedy is replace where a new node of the group would be in order, upgrade where a new one would
drift as well, and none where nothing has drifted or drift is switched off."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has the general options alone."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Compare and print; return 0, whatever the report finds."""
    _, snapshot = cluster_of(arguments, "drift")
    found = all_drift(snapshot)
    emit(to_json(found), arguments.output, lambda: _table(found, snapshot.warnings))
    return 0


def to_json(found: Sequence[Drifted]) -> dict[str, Any]:
    """Return the document that docs/command-line.md and `docs/schema/drift.json` describe."""
    return {
        "nodes": [
            {
                "node": one.node,
                "drifted": one.drifted,
                "since": format_instant(one.since) if one.since else None,
                "remedy": one.remedy.value,
                "reasons": [
                    {"field": why.field.value, "class": why.kind.value, "have": why.have, "want": why.want}
                    for why in one.reasons
                ],
            }
            for one in found
        ]
    }


def _table(found: Sequence[Drifted], warnings: Sequence[str]) -> RenderableType:
    drifted = [one for one in found if one.drifted]
    title = f"{len(drifted)} of {len(found)} nodes have drifted"
    if not drifted:
        return Rows(title, *warnings)
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("node", "since", "remedy", "field", "class", "have", "want"):
        table.add_column(column, overflow="fold")
    for one in drifted:
        since = format_instant(one.since) if one.since else ""
        for place, why in enumerate(one.reasons):
            head = ("", "", "") if place else (one.node, since, one.remedy.value)
            table.add_row(*head, why.field.value, why.kind.value, why.have, why.want)
    return Rows(table, *warnings)
