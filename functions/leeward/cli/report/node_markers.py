"""Marks from the steps of one node's own termination: what blocked it and until when, the waits and the failures."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from leeward.cli.report.facts import ReportFacts, Story
from leeward.cli.report.record import Mark, MarkKind
from leeward.cli.report.texts import length
from leeward.model.blocked import BlockedLine
from leeward.model.execution import Failure, Machine, Step
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant

PAUSES = frozenset({"WaitForPods", "Settle", "WaitForReboot", "WaitForTheEnd"})  # which end by their time-out
SAID_ONCE = frozenset({"AskForReplacement", "TerminateBeforeDrain", "Terminate", "ReturnNodeToService"})
LONGEST = 500
LEAVING = re.compile(r"\d pods? (is|are) terminating")  # as every drain reports
RETRIED_WITHIN = timedelta(seconds=30)  # a try that failed and succeeded sooner has held nothing up
_REQUESTS = frozenset({"Terminate", "TerminateBeforeDrain"})  # which the phases of the node show
_VARIES = re.compile(r"i-[0-9a-f]+|\d+")


def of_node(name: str, stories: Sequence[Story], facts: ReportFacts) -> Iterator[Mark]:
    """Yield all marks of a termination; for an upgrade or a run only those that it does not decide itself."""
    record, node = facts.terminations.get(name), facts.name_of(name)
    for story in stories:
        gives_up = None
        if record is not None and record.attempt == story.attempt:
            gives_up = record.times.get("until")
        yield from _blocks(story.steps, node, gives_up, facts.end)
        yield from failures_of(story.steps, node)
        if facts.execution.machine is Machine.TERMINATION:
            yield from _waits(story.steps, node)
            yield from _decisions(story.steps, node)
        else:
            yield from _returned_to_service(story.steps, node, record)


def _blocks(steps: Sequence[Step], node: str, gives_up: datetime | None, end: datetime) -> Iterator[Mark]:
    """Yield a mark each time that pods do not leave: the cause, until when the drain waits, how long it lasted."""
    together: dict[tuple[datetime, datetime, str], list[BlockedLine]] = {}
    for since, over, line in _stays(steps, end):
        together.setdefault((since, over, line.why), []).append(line)
    for (since, over, why), lines in together.items():
        until = lines[0].until or gives_up
        borne = f", waited for until {format_instant(until)} at the latest" if until and not lines[0].until else ""
        lasted = f" (for {length(over - since)})" if over > since else ""
        pods = ", ".join(sorted(str(line.pod) for line in lines))
        text = f"{pods} {'does' if len(lines) == 1 else 'do'} not leave: {why}{borne}{lasted}"
        yield Mark(at=since, kind=MarkKind.BLOCKED, node=node, text=cut_short(text))


def _stays(steps: Sequence[Step], end: datetime) -> Iterator[tuple[datetime, datetime, BlockedLine]]:
    """Yield (since, until, line) of each stay of a pod in the reports of drains: until the first report that does not
    name it, or the first step after them, or `end`.
    """
    drains = [(step.left, step.why) for step in steps if step.state == "Drain" and step.left is not None]
    open_: dict[str, tuple[datetime, BlockedLine]] = {}
    for left, why in drains:
        lines = {line.pod: line for part in why.split("; ") if (line := BlockedLine.read(part)).pod}
        for pod in [pod for pod in open_ if pod not in lines]:
            since, line = open_.pop(pod)
            yield since, left, line
        for pod, line in lines.items():
            open_.setdefault(str(pod), (left, line))
    last = drains[-1][0] if drains else end
    after = next(
        (step.entered for step in steps if step.entered > last and step.works and step.state not in PAUSES), end
    )
    for since, line in open_.values():
        yield since, after, line


def _waits(steps: Iterable[Step], node: str) -> Iterator[Mark]:
    """Yield what a drain or an end waited for besides blocked pods: each reason once."""
    known: set[str] = set()
    for step in steps:
        waiting = step.state in {"Drain", "AnswerHooks", "RemoveNode", "Finish"} and step.next in {
            "wait",
            "drain",
            "drained",
        }
        if step.left is None or not step.why or not waiting or BlockedLine.read(step.why.split("; ")[0]).pod:
            continue
        key = f"{step.state}: {shape(step.why)}"
        if key not in known and not _usual(step):
            known.add(key)
            kind = MarkKind.FAULT if step.why.startswith("waiting for an answer") else MarkKind.DECISION
            internal = kind is MarkKind.DECISION and (step.state != "Drain" or LEAVING.search(step.why) is not None)
            yield Mark(at=step.left, kind=kind, node=node, text=cut_short(step.why), internal=internal)


def _usual(step: Step) -> bool:
    """Return whether every termination reports it: the phases show it already."""
    return step.why.startswith(("every pod that has to leave", "the group says", "EC2 says"))


def _decisions(steps: Iterable[Step], node: str) -> Iterator[Mark]:
    for step in steps:
        if step.left is not None and step.why and step.state in SAID_ONCE:
            kind = MarkKind.BLOCKED if step.state == "ReturnNodeToService" else MarkKind.DECISION
            prefix = {"AskForReplacement": "replacement: ", "ReturnNodeToService": "returned to service: "}.get(
                step.state, ""
            )
            internal = step.state in _REQUESTS
            yield Mark(at=step.left, kind=kind, node=node, text=cut_short(prefix + step.why), internal=internal)


def _returned_to_service(steps: Iterable[Step], node: str, record: TerminationRecord | None) -> Iterator[Mark]:
    """Yield the returns to service: an upgrade or a run does not decide them itself."""
    for step in steps:
        if step.left is not None and step.state == "ReturnNodeToService":
            why = step.why or (record.failure if record else "")
            yield Mark(at=step.left, kind=MarkKind.BLOCKED, node=node, text=cut_short(f"returned to service: {why}"))


def failures_of(steps: Iterable[Step], node: str | None) -> Iterator[Mark]:
    """Yield failed tries with their cause; the same one again in a stay is counted. A pause ends by failing."""
    for step in steps:
        tries: dict[str, list[Failure]] = {}
        for failure in step.failures:
            if not (step.state in PAUSES and _ends_a_pause(failure)):
                tries.setdefault(f"{failure.error}: {message_of(failure.cause)}".rstrip(": "), []).append(failure)
        for text, failures in tries.items():
            times = f" ({len(failures)} tries)" if len(failures) > 1 else ""
            said = cut_short(f"{step.state}: {text}") + times
            internal = bool(step.next) and step.left is not None and step.left - failures[0].at < RETRIED_WITHIN
            yield Mark(at=failures[0].at, kind=MarkKind.FAULT, node=node, text=said, internal=internal)


def _ends_a_pause(failure: Failure) -> bool:
    return "Timeout" in failure.error or "ConditionalCheckFailed" in failure.error


def message_of(cause: str) -> str:
    """Return the message of a failed try: a history has Lambda's JSON with a traceback, or text, which is returned."""
    try:
        found = json.loads(cause)
    except ValueError:
        return cause
    said = found.get("errorMessage") if isinstance(found, dict) else None
    return str(said) if said else cause


def shape(why: str) -> str:
    """Return a sentence without its variable parts: numbers, ids, times; up to its first comma or colon."""
    return _VARIES.sub("#", re.split(r"[,:]", why, maxsplit=1)[0])


def cut_short(text: str) -> str:
    """Cut the text to the length that a mark can show."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
