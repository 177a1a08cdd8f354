"""View of the demo: the live fleet, one line a change without a terminal, the tables at the end.

The tables are those of the command line, as wide as the terminal is."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console

from leeward.cli.output import Output, View
from leeward.cli.tables import Table, render
from leeward.model.counts import count_of
from local.demo import ledger, scenario
from local.demo.judge import Finding
from local.stack import LocalStack
from local.stage import console

WORDS = {
    "spot_interruption": "spot warning (twice)",
    "scheduled_change": "maintenance",
    "asg_terminate": "scale-in",
}


def fleet_table(stack: LocalStack, victims: scenario.Victims) -> Table:
    """Return every node with its state, pods and phase."""
    table = Table(("NODE", "STATE", "PHASE", "CAUSE", "PODS", "ZONE"), title="the fleet", optional=("ZONE", "PODS"))
    for name, zone, state, pods, causes, phase in fleet_rows(stack, victims):
        table.add(name, state, phase, causes, pods, zone)
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
                    words = ", ".join(
                        word for word in (state, count_of(int(pods), "pod") if pods else "", causes, phase) if word
                    )
                    console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {name} ({zone or 'no zone'}): {words}")
                shown[row[0]] = row
        if ended():
            return
        time.sleep(0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What happened to one node or message. Times in seconds after the message, `-` where there is none."""

    node: str
    cause: str
    replaced_by: str
    cordoned: str = "-"
    drained: str = "-"
    terminated: str = "-"
    moved: str = "-"
    hook: str = "-"
    message: str = "done"


def results(stack: LocalStack, victims: scenario.Victims) -> list[Result]:
    """Return a result for each terminated node, for the malformed message, and for the other team's instance."""
    tainted, names = ledger.first_tainted(stack), ledger.node_names(stack)
    state = ledger.foreign_state(stack, victims.foreign)
    return [
        *(_result(record, tainted, names) for record in ledger.terminations(stack)),
        *(
            Result(node="-", cause="nonsense", replaced_by="-", message="dead-lettered")
            for _ in ledger.dead_letters(stack)
        ),
        Result(
            node=names.get(victims.foreign, victims.foreign),
            cause="another team's hook",
            replaced_by="-",
            hook="untouched" if state == "Terminating:Wait" else str(state),
            message="ignored",
        ),
    ]


def _result(record: ledger.Termination, tainted: Mapping[str, datetime], names: Mapping[str, str]) -> Result:
    moments = {**record.times, **({"tainted": tainted[record.node]} if record.node in tainted else {})}
    return Result(
        node=ledger.short(record.node),
        cause=_word(record.causes),
        replaced_by=", ".join(names.get(launched, launched) for launched in record.launched) or _no_launch(record),
        cordoned=_span(record, moments.get("tainted")),
        drained=_span(record, moments.get("drained")),
        terminated=_span(record, moments.get("terminated")),
        moved=str(record.evicted),
        hook="answered" if "terminated" in record.times else "waiting",
    )


def report(found: Sequence[Result], findings: Sequence[Finding]) -> list[Table | str]:
    """Return the tables at the end: what happened, when, and what was promised."""
    happened = Table(("NODE", "CAUSE", "REPLACED BY", "MESSAGE"), title="what happened", text="CAUSE")
    times = Table(
        ("NODE", "CORDONED", "DRAINED", "TERMINATED", "PODS MOVED", "HOOK"), title="seconds after the message"
    )
    for one in found:
        happened.add(one.node, one.cause, one.replaced_by, one.message)
        if one.node != "-":
            times.add(one.node, one.cordoned, one.drained, one.terminated, one.moved, one.hook)
    return [happened, times, findings_table(findings)]


def lines(report: Sequence[Table | str], width: int, *, coloured: bool = False) -> list[str]:
    """Return the lines of tables as the command line prints them on a terminal of this width."""
    return list(render(report, View(Output.TABLE, width=width), coloured=coloured))


def findings_table(findings: Sequence[Finding]) -> Table:
    """Return a row for each promise."""
    table = Table(("KEPT", "PROMISE", "FOUND"), title="what was promised")
    for finding in findings:
        style = "green" if finding.good else "red"
        table.add("kept" if finding.good else "BROKEN", finding.promise, finding.found, style=style)
    return table


def show(report: Sequence[Table | str]) -> None:
    """Print tables as wide as the terminal is; a pipe gets all of them."""
    for line in lines(report, console.width if console.is_terminal else 0, coloured=console.is_terminal):
        print(line)


def _word(causes: tuple[str, ...]) -> str:
    """Return the external cause, in a word; the group's own hook and EC2's state follow from it."""
    return next((word for kind, word in WORDS.items() if kind in causes), ", ".join(causes))


def _no_launch(record: ledger.Termination) -> str:
    return "-" if _word(record.causes) == WORDS["asg_terminate"] else "by the group itself"


def _span(record: ledger.Termination, moment: datetime | None) -> str:
    return "-" if moment is None else f"{max((moment - record.began).total_seconds(), 0):.1f}"
