"""HTML report of the whole run, by the same package that draws `leeward report`: a lane for each node."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from account_test.context import Context
from account_test.recording import Recording
from account_test.results import Result
from leeward.adapters.wiring import command_line_past
from leeward.cli.report.building import build
from leeward.cli.report.live import RequestedExecution, gather
from leeward.cli.report.page import page
from leeward.cli.report.record import Mark, MarkKind, NodeLane, RunRecord, Source
from leeward.cli.report.workload_lanes import merged_lanes
from leeward.errors import LeewardError
from leeward.model.execution import Machine

MACHINES = tuple(Machine)


def names_of(context: Context, machine: Machine) -> list[str]:
    """Return the names of all executions of a machine of this deployment."""
    client = context.aws("stepfunctions")
    pages = client.get_paginator("list_executions").paginate(stateMachineArn=context.run.machine(machine.value))
    return [str(run["name"]) for page in pages for run in page["executions"]]


def gathered(context: Context) -> list[RunRecord]:
    """Return a record for each execution, as `leeward report` makes it; one that cannot be read is omitted and
    reported.
    """
    run = context.run
    if run.endpoint:
        os.environ["AWS_ENDPOINT_URL"] = run.endpoint
    ports, past = command_line_past(run.cluster, run.region, run.account, run.deployment)
    found = []
    for machine in MACHINES:
        for name in names_of(context, machine):
            try:
                requested = RequestedExecution(name=name, machine=machine)
                found.append(build(gather(requested, run.cluster, datetime.now(UTC), ports, past)))
            except LeewardError as error:
                context.say(f"not drawn: execution {name}: {error}")
    return found


def merged(records: Sequence[RunRecord], plays: Iterable[Mark], about: str) -> RunRecord:
    """Merge all records into one: each instance has one lane, the one with the most spans."""
    lanes: dict[str, NodeLane] = {}
    for record in records:
        for lane in record.nodes:
            known = lanes.get(lane.instance)
            if known is None or len(lane.spans) > len(known.spans):
                lanes[lane.instance] = lane
    marks = dict.fromkeys([*plays, *(mark for record in records for mark in record.marks)])
    return RunRecord(
        source=Source.EXECUTION,
        start=min(record.start for record in records),
        end=max(record.end for record in records),
        nodes=tuple(sorted(lanes.values(), key=lambda lane: (lane.group, lane.instance))),
        workloads=merged_lanes(lane for record in records for lane in record.workloads),
        marks=tuple(sorted(marks, key=lambda mark: mark.at)),
        about=about,
        notes=tuple(dict.fromkeys(note for record in records for note in record.notes)),
    )


def write(context: Context, recordings: Sequence[Recording], results: Sequence[Result], path: Path) -> Path | None:
    """Write the page and return its path; None if there is no record of an execution."""
    records = gathered(context)
    if not records:
        return None
    known = {result.name: result.outcome.value for result in results}
    plays = [
        Mark(
            at=datetime.fromtimestamp(seen.began, UTC),
            kind=MarkKind.EVENT,
            text=f"{seen.play}: {known.get(seen.play, 'not judged')}",
        )
        for seen in recordings
    ]
    record = merged(records, plays, f"account test {context.run.id}")
    first = min([record.start, *(mark.at for mark in plays)])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(replace(record, start=first)), encoding="utf-8")
    return path
