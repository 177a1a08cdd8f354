"""`leeward inspect budget`: how many nodes may be disrupted now, for each policy and reason.

Decides how the result is printed; `leeward.budgets.usage` decides what counts."""

import argparse
from collections.abc import Sequence
from typing import Any

from leeward.budgets.usage import Allowance, all_allowances
from leeward.cli.cluster_state import cluster_of
from leeward.cli.output import emit
from leeward.cli.tables import Table

DESCRIPTION = """Shows how many more nodes may be disrupted at this moment, for each policy and reason, less those
that are being disrupted: deleting, NotReady, or tainted for their termination. Nodes that are only cordoned do not
count. A budget for one zone has a line of its own: a node needs both."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has the general options alone."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Count and print the allowed disruptions."""
    _, snapshot = cluster_of(arguments, "inspect budget")
    found = all_allowances(snapshot)
    emit(to_json(found), arguments.view, lambda: _report(found, snapshot.warnings), snapshot.warnings)
    return 0


def to_json(found: Sequence[Allowance]) -> dict[str, Any]:
    """Return the document that `docs/schema/budget.json` describes."""
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


def _report(found: Sequence[Allowance], warnings: Sequence[str]) -> list[Table | str]:
    table = Table(
        ("POLICY", "REASON", "ZONE", "ALLOWED", "DISRUPTING", "NODES"),
        kind="policy",
        empty="no policy selects a group: there is no budget",
    )
    for one in found:
        allowed = "no limit" if one.allowed is None else "0 (freeze)" if one.frozen else one.allowed
        table.add(one.policy, one.reason.value, one.zone or "all", allowed, one.disrupting, one.total)
    return [table, *warnings]
