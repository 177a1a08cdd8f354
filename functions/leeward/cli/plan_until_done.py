"""`leeward plan --until-done`: run after run of voluntary disruption, until nothing is left to do.

Decides how the runs are printed; `leeward.disruption.outlook` plans them."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from leeward.cli.node_filter import NodeFilter
from leeward.cli.output import emit
from leeward.cli.plan_document import HOURS_A_MONTH, command_json, not_considered
from leeward.cli.plan_tables import monthly, reasons_to_stay, saved_monthly
from leeward.cli.tables import Table
from leeward.disruption.command import MethodName
from leeward.disruption.outlook import Outlook, PlannedRun, until_done
from leeward.errors import InvalidInputError
from leeward.model.counts import count_of
from leeward.model.node import Node
from leeward.policy.durations import format_duration
from leeward.snapshot.cluster import ClusterSnapshot

COLUMNS = ("RUN", "AFTER", "METHOD", "REMOVED", "LAUNCHED", "NODES", "MONTHLY", "NODE")
NOT_IN_IT = "not in it: changes of pods, prices and policies, interruptions, the time of drains and launches"
Includes = Callable[[ClusterSnapshot, Node], bool]


def check_alone(arguments: argparse.Namespace) -> None:
    """Check that nothing is asked for that one run has alone. Raises InvalidInputError."""
    given = {
        "--apply": arguments.apply,
        "--validate": arguments.validate is not None,
        "--pods": arguments.pods,
        "--verbose": arguments.verbose,
        "--method unhealthy": arguments.method == MethodName.UNHEALTHY,
    }
    for option in (name for name, value in given.items() if value):
        raise InvalidInputError(f"plan: found --until-done with {option}, expected one of them: it is of a single run")


def show_until_done(
    arguments: argparse.Namespace, snapshot: ClusterSnapshot, only: MethodName | None, listed: NodeFilter
) -> int:
    """Plan all runs and print them; return 0."""

    def includes(state: ClusterSnapshot, node: Node) -> bool:
        group = state.group_of(node)
        return listed.includes(node.labels, group.name if group is not None else None)

    outlook = until_done(snapshot, only=only)
    document = to_json(snapshot, outlook, includes, only)
    warnings = (*snapshot.warnings, *outlook.last.warnings)
    unique = tuple(dict.fromkeys(warnings))
    emit(document, arguments.view, lambda: [*_report(document), *unique], unique)
    return 0


def to_json(
    snapshot: ClusterSnapshot, outlook: Outlook, includes: Includes, only: MethodName | None = None
) -> dict[str, Any]:
    """Return the document that `docs/schema/plan-until-done.json` describes. `includes`: nodes that count; commands on
    no such node are left out.
    """
    runs = [_run(number, run, snapshot, includes) for number, run in enumerate(outlook.runs, 1)]
    staying = [node.name for node in outlook.end.nodes if includes(outlook.end, node)]
    nodes, prices = zip(*(_totals(state, includes) for state in (snapshot, outlook.end)), strict=True)
    return {
        "finished": outlook.finished,
        "summary": {
            "nodes": dict(zip(("now", "after"), nodes, strict=True)),
            "pricePerMonth": dict(zip(("now", "after"), prices, strict=True)),
            "notConsidered": not_considered(outlook.last.verdicts, sorted(staying), only or MethodName.CONSOLIDATION),
        },
        "runs": [run for run in runs if run["commands"]],
    }


def _run(number: int, run: PlannedRun, first: ClusterSnapshot, includes: Includes) -> dict[str, Any]:
    listed = {node.name for node in run.before.nodes if includes(run.before, node)}
    nodes, price = _totals(run.after, includes)
    return {
        "run": number,
        "afterSeconds": int((run.before.now - first.now).total_seconds()),
        "method": run.plan.method.value if run.plan.method else None,
        "commands": [command_json(one) for one in run.plan.commands if listed.intersection(one.nodes)],
        "nodes": nodes,
        "pricePerMonth": price,
    }


def _totals(state: ClusterSnapshot, includes: Includes) -> tuple[int, float | None]:
    """Return the number of nodes and their dollars a month, None where a price is not known."""
    prices = [state.price_of(node) for node in state.nodes if includes(state, node)]
    total = None if None in prices else round(sum(price or 0.0 for price in prices) * HOURS_A_MONTH, 2)
    return len(prices), total


def _report(document: Mapping[str, Any]) -> Iterator[Table | str]:
    counts, prices = document["summary"]["nodes"], document["summary"]["pricePerMonth"]
    runs = document["runs"]
    yield f"{count_of(counts['now'], 'node')}, {monthly(prices['now'])}"
    if not runs:
        yield "nothing to do"
    else:
        reached = "when nothing is left to do" if document["finished"] else "not at the end yet"
        nodes = f"{count_of(counts['after'], 'node')}, {monthly(prices['after'])}{saved_monthly(prices)}"
        yield f"{reached}, after {count_of(len(runs), 'run')}: {nodes}"
    yield from reasons_to_stay(document["summary"]["notConsidered"])
    yield _table(runs)
    if runs:
        yield NOT_IN_IT


def _table(runs: list[dict[str, Any]]) -> Table:
    table = Table(COLUMNS, wide=frozenset({"NODE"}), kind="node")
    for run in runs:
        removed = [name for command in run["commands"] for name in command["nodes"]]
        table.add(
            run["run"],
            format_duration(timedelta(seconds=run["afterSeconds"])) if run["afterSeconds"] else "now",
            run["method"],
            len(removed),
            sum(len(command["replacements"]) for command in run["commands"]),
            run["nodes"],
            "unknown" if run["pricePerMonth"] is None else f"${run['pricePerMonth']:,.2f}",
            ",".join(removed),
            names=removed,
        )
    return table
