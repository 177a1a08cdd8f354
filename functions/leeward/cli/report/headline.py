"""Headline of a page and its figures: what happened to the nodes, and what that did to the workloads.

A record of an execution brings its own sentence (`outcome.py`); that of another run is counted from its lanes."""

from dataclasses import dataclass
from datetime import timedelta

from leeward.cli.report.record import MarkKind, Phase, RunRecord, WorkloadLane
from leeward.cli.report.texts import count, length, noun


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Number with its unit and what it counts. `good` None: neither good nor bad."""

    value: str
    label: str
    good: bool | None = None


def headline(record: RunRecord) -> str:
    """Return the record's own sentence, else the numbers of nodes that left and came, and what workloads lost."""
    if record.headline:
        return record.headline
    left, came = reached(record, Phase.TERMINATED), reached(record, Phase.LAUNCHING)
    nodes = f"{count(left, 'node')} left and {came} came" if came else f"{count(left, 'node')} left"
    return "; ".join(part for part in (f"{nodes} in {length(record.end - record.start)}", verdict(record)) if part)


def verdict(record: RunRecord) -> str:
    """Return what the workloads with a PodDisruptionBudget lost; empty where none was observed."""
    broken = [workload.name for workload in record.workloads if workload.under]
    if len(broken) == 1:
        return f"{broken[0]} fell below its PDB minimum"
    if broken:
        return f"{len(broken)} workloads fell below their PDB minimum"
    guarded = any(workload.minimum is not None for workload in record.workloads)
    return "no workload fell below its PDB minimum" if guarded else ""


def reached(record: RunRecord, phase: Phase) -> int:
    """Return how many nodes were in the phase during the run."""
    return sum(any(span.phase is phase and span.end > record.start for span in node.spans) for node in record.nodes)


def figures(record: RunRecord) -> tuple[Figure, ...]:
    """Return the figures under the headline; what did not occur is left out."""
    drains = [
        min(span.end, record.end) - span.begin
        for node in record.nodes
        for span in node.spans
        if span.phase is Phase.DRAINING and record.start <= span.begin <= record.end
    ]
    counted = (
        (reached(record, Phase.TERMINATED), "left"),
        (reached(record, Phase.LAUNCHING), "launched"),
    )
    found = [Figure(value=str(number), label=f"{noun(number, 'node')} {what}") for number, what in counted if number]
    if drains:
        found.append(
            Figure(
                value=length(max(drains, default=timedelta())), label="longest drain" if len(drains) > 1 else "drain"
            )
        )
    return (*found, *_of_workloads(record), *_of_marks(record))


def _of_workloads(record: RunRecord) -> tuple[Figure, ...]:
    if not record.workloads:
        return ()
    broken = sum(bool(workload.under) for workload in record.workloads)
    watched = f"of {count(len(record.workloads), 'workload')} below the PDB minimum"
    below = Figure(value=str(broken), label=watched, good=not broken)
    tightest = min((one for one in record.workloads if _margin(one) is not None), key=_margin_of, default=None)
    if tightest is None or tightest.lowest == tightest.desired:
        return (below,)
    lowest = Figure(value=f"{tightest.lowest} of {tightest.desired}", label=f"ready at the lowest: {tightest.name}")
    return (below, lowest)


def _margin(workload: WorkloadLane) -> float | None:
    return None if workload.lowest is None else workload.lowest - (workload.minimum or 0)


def _margin_of(workload: WorkloadLane) -> float:
    return _margin(workload) or 0.0


def _of_marks(record: RunRecord) -> tuple[Figure, ...]:
    shown = [mark.kind for mark in record.marks if not mark.internal]
    words = {MarkKind.BLOCKED: ("time", " blocked"), MarkKind.FAULT: ("fault", "")}
    return tuple(
        Figure(value=str(number), label=noun(number, one) + more, good=False if kind is MarkKind.FAULT else None)
        for kind, (one, more) in words.items()
        if (number := shown.count(kind))
    )
