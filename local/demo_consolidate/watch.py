"""Watch of the disruption runs: the schedule is run faster than deployed, and each run is printed as it changes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from leeward.disruption.command import Command, CommandDecision
from leeward.disruption.record import DisruptionRecord
from local.command import acting_on
from local.demo import ledger
from local.demo_consolidate import scene
from local.stack import LocalStack, LocalStackError
from local.stage import say

PLAY_SECONDS = 1200  # limits only the wait for a run that does not end
PLAN_EVERY = 3.0  # seconds; the deployed schedule has minutes
QUIET = 3  # decisions without a plan, one after the other, after which no further plan is expected
LOOK_SECONDS = 0.5


@dataclass(kw_only=True)
class Watched:
    """Observations: disruption runs by number, as last read."""

    disruptions: dict[int, DisruptionRecord] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ended(self) -> list[DisruptionRecord]:
        """Ended disruption runs in their order."""
        return [record for _, record in sorted(self.disruptions.items()) if not record.open]

    @property
    def saved(self) -> float:
        """Dollars an hour saved, as promised by each run's commands."""
        return sum(one.savings or 0.0 for record in self.ended for one in record.active_commands.values())


def watch(stack: LocalStack) -> Watched:
    """Watch until several decisions in a row find nothing to do. Raises LocalStackError when that takes too long."""
    seen, began, decided, quiet = Watched(), time.monotonic(), 0.0, 0
    with acting_on(stack) as ports:
        while quiet < QUIET:
            record = _look(seen, ports.disruptions.read(stack.cluster))
            if (record is None or not record.open) and time.monotonic() - decided > PLAN_EVERY:
                scene.decide(stack)
                decided, after = time.monotonic(), _look(seen, ports.disruptions.read(stack.cluster))
                quiet = quiet + 1 if after is None or (record and after.number == record.number) else 0
            if time.monotonic() - began > PLAY_SECONDS:
                raise LocalStackError(
                    f"the runs have not ended within {PLAY_SECONDS} s: {scene.disruptions_run(stack)}"
                )
            time.sleep(LOOK_SECONDS)
    seen.seconds = time.monotonic() - began
    return seen


def _look(seen: Watched, record: DisruptionRecord | None) -> DisruptionRecord | None:
    """Print the changes of the record, and keep it."""
    if record is not None:
        for line in news(seen.disruptions.get(record.number), record):
            say(line)
        seen.disruptions[record.number] = record
    return record


def news(before: DisruptionRecord | None, now: DisruptionRecord) -> Iterator[str]:
    """Return the changes since the last observation, a line each."""
    if before is None:
        for command in now.commands:
            yield f"run {now.number}, {now.method.value}: {reported(command)}"
    for number, why in now.dropped.items():
        if before is None or number not in before.dropped:
            yield f"run {now.number}: command {number} is not carried out: {why}"
    for new, node in now.launched.items():
        if before is None or new not in before.launched:
            yield f"run {now.number}: {node.group}/{node.zone}/{node.subnet} has launched {new}"
    if now.requested and not (before and before.requested):
        yield f"run {now.number}: validated again, its nodes drain"
    if not now.open and (before is None or before.open):
        yield f"run {now.number}: {now.outcome.value if now.outcome else 'ended'}{f', {now.why}' if now.why else ''}"


def reported(command: Command) -> str:
    """Return the command as a sentence for people."""
    nodes = ", ".join(ledger.short(name) for name in command.nodes)
    saves = "" if command.savings is None else f", saves ${command.savings:.3f} an hour"
    if command.decision is CommandDecision.DELETE:
        return f"{nodes} can go{saves} ({command.reason})"
    coming = ", ".join(
        f"{one.group} ({'/'.join(one.types)}, {one.capacity.value if one.capacity else 'any capacity'})"
        for one in command.replacements
    )
    return f"{nodes} for one of {coming}{saves} ({command.reason})"


def verdicts(plan: dict[str, Any], node: str) -> dict[str, str]:
    """Return method -> reason, of one node of `leeward plan -o json`."""
    found = next(one for one in plan["nodes"] if one["node"] == node)
    return {one["method"]: one["reason"] for one in found["verdicts"]}
