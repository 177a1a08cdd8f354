"""`leeward budget`: how many nodes may be disrupted now, for each policy and reason.

Decides how the result is printed; `leeward.budgets.counts` decides what counts."""

import argparse
from collections.abc import Sequence
from typing import Any

from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table

from leeward.budgets.counts import Allowance, all_allowances
from leeward.cli.cluster_state import cluster_of
from leeward.cli.output import emit

DESCRIPTION = """Shows how many more nodes may be disrupted at this moment, for each policy and reason, already less
those that are being disrupted: deleting, NotReady, or tainted for their termination. Nodes that are only cordoned do
not count. A budget for one zone has a line of its own: a node needs both."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has the general options alone."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Count and print the allowed disruptions."""
    _, snapshot = cluster_of(arguments, "budget")
    found = all_allowances(snapshot)
    emit(to_json(found), arguments.output, lambda: _table(found, snapshot.warnings))
    return 0


def to_json(found: Sequence[Allowance]) -> dict[str, Any]:
    """Return the document that docs/command-line.md and `docs/schema/budget.json` describe."""
    return {
        "budgets": [
            {
                "policy": one.policy,
                "reason": one.reason.value,
                "zone": one.zone,
                "allowed": one.allowed,
                "disrupting": one.disrupting,
                "total": one.total,
            }
            for one in found
        ]
    }


def _table(found: Sequence[Allowance], warnings: Sequence[str]) -> RenderableType:
    table = Table(title="nodes that may be disrupted now", title_justify="left", title_style="bold")
    for column in ("policy", "reason", "zone", "allowed", "disrupting", "nodes"):
        table.add_column(column, overflow="fold")
    for one in found:
        allowed = "no limit" if one.allowed is None else "0 (freeze)" if one.frozen else str(one.allowed)
        table.add_row(one.policy, one.reason.value, one.zone or "all", allowed, str(one.disrupting), str(one.total))
    return Rows(table, *warnings)
