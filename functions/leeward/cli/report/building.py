"""Run record of an execution, built from its facts. Decides the period that is drawn, and the notes beside the
chart."""

from collections.abc import Iterator
from datetime import datetime

from leeward.cli.report.execution_events import marks_of
from leeward.cli.report.facts import EARLIER, ReportFacts
from leeward.cli.report.lanes import guessed, node_lanes
from leeward.cli.report.outcome import outcome
from leeward.cli.report.record import RunRecord, Source
from leeward.cli.report.workload_lanes import workload_lanes
from leeward.model.execution import ExecutionStatus, Machine
from leeward.model.times import format_instant

_WORDS = {
    ExecutionStatus.RUNNING: "still running",
    ExecutionStatus.SUCCEEDED: "succeeded",
    ExecutionStatus.FAILED: "failed",
    ExecutionStatus.TIMED_OUT: "ran out of time",
    ExecutionStatus.ABORTED: "was stopped",
    ExecutionStatus.PENDING_REDRIVE: "waits to be redriven",
}
NO_WORKLOADS = (
    "No workload has a lane: no step read a PodDisruptionBudget. Drains read those of pods whose eviction is refused, "
    "and Deployments where second replicas are on; upgrades and disruption runs read the budgets of their nodes' pods."
)
OBSERVED = (
    "Lanes of workloads are PodDisruptionBudgets and Deployments as steps read them: healthy pods by their status, "
    "unknown before the first look and after the last."
)


def build(facts: ReportFacts) -> RunRecord:
    """Build the record up to the execution's end, or up to now while it runs."""
    start = _start(facts)
    return RunRecord(
        source=Source.EXECUTION,
        start=start,
        end=facts.end,
        nodes=node_lanes(facts, start),
        workloads=workload_lanes(facts),
        marks=marks_of(facts, start),
        about=_about(facts),
        headline=outcome(facts),
        notes=tuple(_notes(facts, start)),
    )


def _start(facts: ReportFacts) -> datetime:
    """Return the start of the chart: the cause of a termination is a moment older than its execution."""
    begin = facts.execution.started
    if facts.execution.machine is Machine.TERMINATION:
        ats = [cause.at for record in facts.terminations.values() for cause in record.all_causes]
        begin = min([begin, *(at for at in ats if at >= begin - EARLIER)])
    return facts.start(begin)


def _about(facts: ReportFacts) -> str:
    one = facts.execution
    last = facts.steps[-1].state if facts.steps else ""
    how = _WORDS[one.status]
    if one.status is ExecutionStatus.RUNNING:
        how = f"{how}, drawn up to {format_instant(facts.end)}{f', in {last}' if last else ''}"
    elif last:
        how = f"{how} with {last}"
    return f"{one.name} of {one.machine.named}: {how}"


def _notes(facts: ReportFacts, start: datetime) -> Iterator[str]:
    yield from facts.missing
    names = guessed(facts, start)
    if names:
        yield (
            f"When {_several(names)} became Ready is no longer recorded: the time when Auto Scaling reported it in "
            "service stands for it."
        )
    yield OBSERVED if workload_lanes(facts) else NO_WORKLOADS


def _several(names: tuple[str, ...]) -> str:
    most = 5
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
