"""View of the demo: the live fleet, one line a change without a terminal, the tables at the end."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from local.demo import ledger, scenario
from local.demo.judge import Finding
from local.stack import LocalStack

WORDS = {
    "spot_interruption": "spot warning (twice)",
    "scheduled_change": "maintenance",
    "asg_terminate": "scale-in",
}


def fleet_table(stack: LocalStack, victims: scenario.Victims) -> Table:
    """Return every node with its state, pods and phase."""
    table = Table(title="the fleet", title_justify="left", expand=False)
    for column in ("node", "zone", "state", "pods", "cause", "phase"):
        table.add_column(column)
    for row in fleet_rows(stack, victims):
        table.add_row(*row)
    return table


def fleet_rows(stack: LocalStack, victims: scenario.Victims) -> list[tuple[str, ...]]:
    """Return node, zone, state, pods, cause, phase of every node, and of every termination whose node is gone."""
    records = {record.instance: record for record in ledger.terminations(stack)}
    nodes, pods = ledger.nodes(stack), ledger.pods_by_node(stack)
    rows: list[tuple[str, ...]] = []
    for instance in sorted(set(nodes) | set(records)):
        node, record = nodes.get(instance), records.get(instance)
        name = node["metadata"]["name"] if node else record.node if record else instance
        zone = (node or {}).get("metadata", {}).get("labels", {}).get("topology.kubernetes.io/zone", "")
        causes = ", ".join(record.causes) if record else ""
        phase = record.phase if record else "another team's" if instance == victims.foreign else ""
        rows.append((name, zone, _state(node), str(pods.get(name, 0)) if node else "", causes, phase))
    return rows


def _state(node: Any) -> str:
    if node is None:
        return "gone"
    ready = "Ready" if scenario.is_ready(node) else "NotReady"
    return f"{ready}, cordoned" if node["spec"].get("unschedulable") else ready


def follow(stack: LocalStack, victims: scenario.Victims, console: Console, ended: Callable[[], bool]) -> None:
    """Print a line whenever a node's row changes."""
    shown: dict[str, tuple[str, ...]] = {}
    while True:
        for row in fleet_rows(stack, victims):
            if shown.get(row[0]) != row:
                if shown.get(row[0]) is not None or row[4]:
                    name, zone, state, pods, causes, phase = row
                    name = ledger.short(name)
                    words = ", ".join(word for word in (state, f"{pods} pods" if pods else "", causes, phase) if word)
                    console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {name} ({zone or 'no zone'}): {words}")
                shown[row[0]] = row
        if ended():
            return
        time.sleep(0.5)


def result_table(stack: LocalStack, victims: scenario.Victims) -> Table:
    """Return one line a terminated node, one for the malformed message, one for the other team's instance. Times in
    seconds.
    """
    table = Table(title="\nwhat happened (seconds after the message)", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("node", "cause", "replaced by"):
        table.add_column(column, no_wrap=True)
    for column in ("cordoned", "drained", "terminated", "pods moved"):
        table.add_column(column, justify="right")
    for column in ("PDB violated", "hook answered", "message"):
        table.add_column(column, overflow="fold")
    tainted, names = ledger.first_tainted(stack), ledger.node_names(stack)
    violated = "yes" if ledger.budget_violations(stack) else "never"
    for record in ledger.terminations(stack):
        moments = {**record.times, **({"tainted": tainted[record.node]} if record.node in tainted else {})}
        table.add_row(
            ledger.short(record.node),
            _word(record.causes),
            ", ".join(names.get(launched, launched) for launched in record.launched) or _no_launch(record),
            *(_span(record, moments.get(name)) for name in ("tainted", "drained", "terminated")),
            str(record.evicted),
            violated,
            "yes" if "terminated" in record.times else "waiting",
            "done",
        )
    for _ in ledger.dead_letters(stack):
        table.add_row("-", "nonsense", *[""] * 7, "dead-lettered")
    state = ledger.foreign_state(stack, victims.foreign)
    name = names.get(victims.foreign, victims.foreign)
    table.add_row(
        name, "another team's hook", *[""] * 6, "untouched" if state == "Terminating:Wait" else str(state), "ignored"
    )
    return table


def _word(causes: tuple[str, ...]) -> str:
    """Return the external cause, in a word; the group's own hook and EC2's state follow from it."""
    return next((word for kind, word in WORDS.items() if kind in causes), ", ".join(causes))


def _no_launch(record: ledger.Termination) -> str:
    return "-" if _word(record.causes) == WORDS["asg_terminate"] else "by the group itself"


def _span(record: ledger.Termination, moment: datetime | None) -> str:
    return "-" if moment is None else f"{max((moment - record.began).total_seconds(), 0):.1f}"


def findings_table(findings: Sequence[Finding]) -> Table:
    """Return one line a promise."""
    table = Table(title="\nwhat was promised", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("", "promise", "found"):
        table.add_column(column)
    for finding in findings:
        table.add_row("[green]kept[/]" if finding.good else "[bold red]BROKEN[/]", finding.promise, finding.found)
    return table


def draw(picture: Path, tables: Sequence[Table]) -> None:
    """The tables as an SVG file, for the README."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    console = Console(record=True, width=140, file=StringIO())
    console.print(*tables)
    console.save_svg(str(picture), title="make demo")
