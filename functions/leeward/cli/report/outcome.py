"""Headline of an execution: cause and effect in a sentence or two, from its record and its history.

States only what these hold: a record of another attempt, or none, leaves its numbers out."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from leeward.cli.report.affected_nodes import own_cause
from leeward.cli.report.causes import WAS, main_cause, main_kind
from leeward.cli.report.facts import ReportFacts
from leeward.cli.report.texts import count, length, shortened
from leeward.disruption.savings import dollars
from leeward.model.execution import ExecutionStatus, Machine, Step
from leeward.model.termination import TAKEN, CauseKind, Outcome, TerminationRecord

IN_SECONDS = timedelta(minutes=3)  # up to here a length is compared with the two minutes of a spot warning
_INSTANCE = re.compile(r"\bi-[0-9a-f]{8,17}\b", re.ASCII)
ONE_OF = frozenset(kind.value for kind in CauseKind)
LET_GO = ", let go although "  # of a drain that ran out of time
_ENDS = {"Upgraded": "was upgraded", "Aborted": "the upgrade was aborted", "RolledBack": "was rolled back"}


def outcome(facts: ReportFacts) -> str:
    """Return the headline, empty where nothing is known that a count of nodes does not say."""
    match facts.execution.machine:
        case Machine.TERMINATION:
            return _termination(facts)
        case Machine.UPGRADE | Machine.MANAGED_UPGRADE:
            return _upgrade(facts)
        case Machine.DISRUPTION:
            return _disruption(facts)


def _termination(facts: ReportFacts) -> str:
    name = facts.touched[0] if facts.touched else ""
    record, steps = _own_record(name, facts), facts.steps
    kind, node = _kind(record, steps), facts.name_of(name)
    if not name or kind is None:
        return ""
    if facts.execution.status is ExecutionStatus.RUNNING:
        return f"{node} {_present(WAS[kind])}. {_so_far(record, steps)}"
    if any(step.state == "ReturnNodeToService" for step in steps):
        return f"{node} {WAS[kind].partition(' and ')[0]}, but returned to service: {_last_why(facts)}"
    if facts.execution.status is not ExecutionStatus.SUCCEEDED:
        return f"{node} {WAS[kind]}. Its termination did not end: {facts.execution.error or _last_why(facts)}"
    return f"{node} {WAS[kind]}. {_effect(record, steps)}"


def _own_record(name: str, facts: ReportFacts) -> TerminationRecord | None:
    """Return the termination record, if it is of this execution's attempt."""
    record = facts.terminations.get(name)
    attempts = [story.attempt for story in facts.stories.get(name, ())]
    return record if record is not None and attempts in ([], [record.attempt], [0]) else None


def _kind(record: TerminationRecord | None, steps: Sequence[Step]) -> CauseKind | None:
    """Return the main cause, from the record, else from the words of the first step."""
    if record is not None:
        return main_kind(cause.kind for cause in record.causes)
    words = (word for step in steps if step.state == "Claim" for word in step.why.split(", "))
    return main_kind(CauseKind(word) for word in words if word in ONE_OF)


def _present(sentence: str) -> str:
    """Return the sentence for an execution that still runs: what `was` so is being done."""
    first, _, rest = sentence.partition(" ")
    return f"is being {rest}" if first == "was" and " and " not in rest else sentence


def _so_far(record: TerminationRecord | None, steps: Sequence[Step]) -> str:
    evicted = f"{count(record.pods_evicted, 'pod')} evicted so far" if record is not None else "It is draining"
    blocked = len(record.blocked_by) if record is not None else 0
    if _drained(steps) is not None:
        return "Its pods have moved; the instance has not ended yet."
    return f"{evicted}, {count(blocked, 'pod')} blocked." if blocked else f"{evicted}."


def _effect(record: TerminationRecord | None, steps: Sequence[Step]) -> str:
    """Return how many pods moved in which time, and what became of the others."""
    drains = [step for step in steps if step.state == "Drain" and step.next]
    if not drains:
        return "It had ended before a drain could begin."
    evicted = None if record is None else record.pods_evicted
    pods = "Its pods" if evicted is None else count(evicted, "pod")
    blocked = len(record.blocked_by) if record is not None else 0
    if drains[-1].next == "gone":
        still = f", with {count(blocked, 'pod')} blocked" if blocked else ""
        return f"{pods} had been evicted when the instance ended, before its drain did{still}."
    took = _took(record, steps)
    moved = f"{pods} moved{f' in {took}' if took else ''}"
    if LET_GO in drains[-1].why:
        return f"{moved}; {count(blocked, 'pod') if blocked else 'the others'} did not leave in time."
    deleted = _deleted(steps)
    if evicted == 0 and not deleted:
        return "No pod had to move."
    return f"{moved}; {f'{deleted} of them deleted instead of evicted' if deleted else 'none was killed'}."


def _deleted(steps: Iterable[Step]) -> int:
    return sum(int(step.output.get("deleted") or 0) for step in steps if step.works and step.state == "Drain")


def _drained(steps: Iterable[Step]) -> datetime | None:
    return next((step.left for step in steps if step.state == "Drain" and step.next == "drained"), None)


def _took(record: TerminationRecord | None, steps: Sequence[Step]) -> str:
    """Return `74 s of 120 s` since the warning of an instance that EC2 takes, else the length of the drain."""
    end = _drained(steps)
    cause = main_cause(record.causes) if record is not None else None
    if end is None:
        return ""
    if cause is not None and cause.kind in TAKEN and cause.deadline is not None and cause.deadline > cause.at:
        return f"{_seconds(end - cause.at)} of {_seconds(cause.deadline - cause.at)}"
    begin = next((step.entered for step in steps if step.state == "Drain"), end)
    return _seconds(end - begin)


def _seconds(span: timedelta) -> str:
    return f"{round(span.total_seconds())} s" if span <= IN_SECONDS else length(span)


def _last_why(facts: ReportFacts) -> str:
    """Return the last step's reason as a headline has space for it: nodes by name, the rest is in the table."""
    said = next((step.why for step in reversed(facts.steps) if step.why), "no reason was given")
    return shortened(_INSTANCE.sub(lambda found: facts.name_of(found[0]), said))


def _upgrade(facts: ReportFacts) -> str:
    last = facts.steps[-1].state if facts.steps else ""
    if not facts.group:
        return ""
    if facts.execution.status is ExecutionStatus.RUNNING:
        return f"{facts.group} is being upgraded. {_sums(facts)} so far."
    if last in _ENDS:
        return f"{facts.group}: {_ENDS[last]}. {_sums(facts)} in {length(facts.end - facts.execution.started)}."
    if facts.execution.status is ExecutionStatus.SUCCEEDED:
        return ""
    error = facts.execution.error or last
    return f"{facts.group}: the upgrade stopped with {error}. {_sums(facts)} before that."


def _disruption(facts: ReportFacts) -> str:
    run = f"Disruption run {facts.number} of {facts.cluster}" if facts.number else ""
    if not run:
        return ""
    record = facts.disruption
    by = f" ({record.method.value})" if record is not None else ""
    if facts.execution.status is ExecutionStatus.RUNNING:
        return f"{run}{by} is under way. {_sums(facts)} so far."
    if not _finished(facts):
        return f"{run}{by} removed no node: {_last_why(facts)}"
    saved = [one.savings for one in record.active_commands.values() if one.savings] if record is not None else []
    saves = f" It saves {dollars(sum(saved))} an hour." if saved else ""
    return f"{run}{by}: {_sums(facts)} in {length(facts.end - facts.execution.started)}.{saves}"


def _finished(facts: ReportFacts) -> list[TerminationRecord]:
    """Return the terminations that the upgrade or run itself caused and that have ended."""
    where = (facts.group, facts.cluster, facts.number)
    return [
        record
        for name, record in facts.terminations.items()
        if record.outcome is Outcome.TERMINATED
        and any(own_cause(cause, facts.execution, *where, name) for cause in record.all_causes)
    ]


def _sums(facts: ReportFacts) -> str:
    ended = _finished(facts)
    pods = sum(record.pods_evicted for record in ended)
    return f"{count(len(ended), 'old node')} left, {count(pods, 'pod')} moved"
