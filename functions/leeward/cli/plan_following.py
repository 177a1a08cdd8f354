"""Following of a disruption run to its end: a line for the run and one for each node that drains.

Reads the table's records alone; interrupting it stops no run."""

from collections.abc import Mapping

from leeward.cli import following
from leeward.cli.drain.live import PHASES
from leeward.cli.progress import Progress
from leeward.disruption.record import GONE, STAYED, DisruptionOutcome, DisruptionRecord
from leeward.model.counts import count_of
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.ports.records import Claims


def follow(cluster: str, number: int, ports: Ports, progress: Progress | None = None) -> int:
    """Print a line for every change of the run. Return 0 when all its nodes are gone, 1 when a command was dropped or a
    node stayed, 130 after a Ctrl-C, which leaves it running. A call that fails for now is repeated.
    """
    lines, name = progress or Progress(), f"run {number}"

    def show() -> int | None:
        record = ports.disruptions.read(cluster)
        if record is None or record.number != number:
            lines.say(f"{name}: it has ended, and its record is that of another run now")
            return 1
        lines.show({name: line_of(record), **_node_lines(record, ports.claims)}, ports.clock.now())
        if record.open:
            return None
        for place, reason in sorted((int(place), reason) for place, reason in record.dropped.items()):
            lines.say(f"{name}: command {place + 1} was dropped: {reason}")
        return _code(record)

    return following.follow(show, lambda: [name], ports.clock, lines)


def line_of(record: DisruptionRecord) -> str:
    """Return the state of the run in a line, without times of its own: it changes only with the run."""
    if record.outcome is not None:
        return f"{record.outcome.value}: {record.why}"
    if record.retry is not None:
        return f"a step failed: {record.why}; tried again at {format_instant(record.retry)}"
    gone, total = sum(end == GONE for end in record.ends.values()), len(record.to_terminate)
    if record.requested:
        return f"terminating: {gone} of {count_of(total, 'node')} gone"
    wanted = sum(len(one.replacements) for one in record.active_commands.values())
    if record.orders or record.launched:
        return f"launching: {len(record.launched)} of {count_of(wanted, 'replacement')} launched"
    return f"validating: {record.summary}" if record.execution else f"starting: {record.summary}"


def _node_lines(record: DisruptionRecord, claims: Claims) -> dict[str, str]:
    """Return a line for each node whose termination was requested."""
    if not record.requested:
        return {}
    terminations = claims.read_all(record.to_terminate.values())
    return {
        name: _node_line(instance, record.ends, terminations.get(instance))
        for name, instance in record.to_terminate.items()
    }


def _node_line(instance: str, ends: Mapping[str, str], termination: TerminationRecord | None) -> str:
    if ends.get(instance) == GONE:
        return f"gone, {count_of(termination.pods_evicted, 'pod')} evicted" if termination is not None else "gone"
    if ends.get(instance) == STAYED:
        return "in service again: its pods did not leave, or something else ended it"
    if termination is None:
        return "waiting to begin"
    phase = next((words for name, words in PHASES.items() if name in termination.times), "waiting to begin")
    blocked = f", waits for {'; '.join(termination.blocked_by)}" if termination.blocked_by else ""
    return f"{phase}, {count_of(termination.pods_evicted, 'pod')} evicted{blocked if phase == 'draining' else ''}"


def _code(record: DisruptionRecord) -> int:
    """Return 0 for a run that has removed every node of every command."""
    complete = not record.dropped and STAYED not in record.ends.values()
    return 0 if record.outcome is DisruptionOutcome.DONE and complete else 1
