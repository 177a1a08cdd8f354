"""First step of a run: checks whether this execution holds it.

A run whose execution died before its terminations were requested is given up, because the state has changed; later it
is followed to its end."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leeward.disruption.controller import claim_disruption
from leeward.disruption.lease import held, written
from leeward.disruption.run import DisruptionRun, Next
from leeward.errors import InvalidInputError
from leeward.ports import Ports

SETTLES = 15  # seconds between the decision and the first action (Karpenter, validation of a command)


def take_disruption(run: DisruptionRun, call: Mapping[str, Any], ports: Ports) -> DisruptionRun:
    """Take the run, or report which execution has it. Without a number: plan and claim a run now."""
    name = str(call.get("execution") or "")
    run = replace(run, execution=name)
    if run.cluster not in ports.clusters.names():
        known = ", ".join(ports.clusters.names())
        raise InvalidInputError(f"input: found cluster {run.cluster!r}, expected one of {known}")
    record = ports.disruptions.read(run.cluster)
    if run.number == 0 and (record is None or not record.open):
        record = claim_disruption(run.cluster, ports)
    if record is None or not record.open or run.number not in {0, record.number}:
        return replace(run, next=Next.NOTHING, why="nothing is to be done, or the run has ended")
    run = replace(run, number=record.number)
    if record.execution != name:
        if record.execution and held(record, ports.disruption_executions):
            return replace(run, next=Next.HAND_OVER, why=f"execution {record.execution} has the run")
        record = written(replace(record, execution=name, attempt=record.attempt + 1, retry=None), ports.disruptions)
    if record.told:
        return replace(run, next=Next.FOLLOW, why="its nodes were told to go: they are followed")
    if record.attempt > 1:
        return replace(run, next=Next.GIVE_UP, why=record.why or "its execution ended before its nodes were told to go")
    return replace(run, next=Next.VALIDATE, pause=SETTLES, why=record.summary)
