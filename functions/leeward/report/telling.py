"""The moments that a person would want to see: why it began, who blocked whom and until when, what was decided, what
failed and how it ended; not each of a thousand state transitions."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from leeward.model.blocked import BlockedLine
from leeward.model.execution import Ended, Failure, Machine, Step
from leeward.model.termination import Cause, CauseKind, TerminationRecord
from leeward.model.times import format_instant
from leeward.report.facts import Facts, Story
from leeward.report.record import Mark, MarkKind
from leeward.report.touched import own_cause
from leeward.report.words import length

PAUSES = frozenset({"WaitForPods", "Settle", "WaitForTheEnd"})  # which end by their time-out
LOOPS = frozenset({"wait", "follow", "boot"})  # said again and again while nothing changes
LONGEST = 500
_BLOCKED = frozenset({"blocked", "paused", "window", "bake", "eviction-failure", "give-up"})
_FAULTS = frozenset({"failed", "creation-failure", "canary-failure", "update-failure"})
_TOLD_BY_STEPS = frozenset({"DrainBlocked", "PodEvictionFailure", "TerminationCalledOff"})
_TOLD_BY_CAUSES = frozenset(
    {"SpotInterruption", "RebalanceRecommendation", "ScheduledChange", "InstanceStateChange", "GroupTerminating"}
)
_FROM_OUTSIDE = frozenset(
    {
        CauseKind.SPOT_INTERRUPTION,
        CauseKind.REBALANCE_RECOMMENDATION,
        CauseKind.SCHEDULED_CHANGE,
        CauseKind.STATE_CHANGE,
        CauseKind.ASG_TERMINATE,
        CauseKind.MANUAL,
        CauseKind.NODE_DELETED,
        CauseKind.UNHEALTHY,
    }
)
_SAID_ONCE = frozenset({"AskForReplacement", "TerminateBeforeDrain", "Terminate", "GiveNodeBack"})
_VARIES = re.compile(r"i-[0-9a-f]+|\d+")


def marks_of(facts: Facts, start: datetime) -> tuple[Mark, ...]:
    """In the order of time, all within the time that is drawn."""
    found = [
        *_causes(facts, start),
        *(mark for name, stories in facts.stories.items() for mark in _of_node(name, stories, facts)),
        *(_of_machine(facts) if facts.execution.machine is not Machine.TERMINATION else ()),
        *_failed_launches(facts),
        *_events(facts),
        *_ending(facts),
    ]
    return tuple(sorted((mark for mark in found if start <= mark.at <= facts.end), key=lambda mark: mark.at))


def _causes(facts: Facts, start: datetime) -> Iterator[Mark]:
    """Why nodes go; not that an upgrade or a round of ours wants it: that is what is drawn."""
    where = (facts.group, facts.cluster, facts.number)
    for name, record in facts.terminations.items():
        if name not in facts.touched:
            continue
        for cause in record.causes:
            ours = own_cause(cause, facts.execution, *where, name) or _pays_for_its_own(cause, facts)
            if not ours and not _follows(cause, record):
                kind = MarkKind.EVENT if cause.kind in _FROM_OUTSIDE else MarkKind.DECISION
                at = max(cause.at, start)  # clocks of AWS tell whole seconds
                yield Mark(at=at, kind=kind, node=facts.name_of(name), text=_cut(_said(cause)))


def _pays_for_its_own(cause: Cause, facts: Facts) -> bool:
    """That an old node's end pays for a new one is the books of an upgrade or round, not news."""
    return cause.kind is CauseKind.SURPLUS and facts.execution.machine is not Machine.TERMINATION


def _follows(cause: Cause, record: TerminationRecord) -> bool:
    """The group and EC2 announce what we have just asked them for; their clocks tell whole seconds."""
    asked = record.times.get("terminating")
    echoes = cause.kind in {CauseKind.ASG_TERMINATE, CauseKind.STATE_CHANGE}
    return echoes and asked is not None and cause.at >= asked.replace(microsecond=0)


def _said(cause: Cause) -> str:
    hook = f" (lifecycle hook {cause.hook})" if cause.hook else ""
    deadline = f", gone at {format_instant(cause.deadline)} whatever happens" if cause.deadline else ""
    return f"{cause.kind.value}{f': {cause.reason}' if cause.reason else ''}{hook}{deadline}"


def _of_node(name: str, stories: Sequence[Story], facts: Facts) -> Iterator[Mark]:
    record, node = facts.terminations.get(name), facts.name_of(name)
    for story in stories:
        gives_up = None
        if record is not None and record.attempt == story.attempt:
            gives_up = record.times.get("until")
        yield from _blocks(story.steps, node, gives_up, facts.end)
        yield from _failures(story.steps, node)
        if facts.execution.machine is Machine.TERMINATION:
            yield from _waits(story.steps, node)
            yield from _decisions(story.steps, node)
        else:
            yield from _given_back(story.steps, node, record)


def _blocks(steps: Sequence[Step], node: str, gives_up: datetime | None, end: datetime) -> Iterator[Mark]:
    """Once for each time that pods do not leave: who forbids it, until when that is borne, how long it lasted."""
    together: dict[tuple[datetime, datetime, str], list[BlockedLine]] = {}
    for since, over, line in _stays(steps, end):
        together.setdefault((since, over, line.why), []).append(line)
    for (since, over, why), lines in together.items():
        until = lines[0].until or gives_up
        borne = f", waited for until {format_instant(until)} at the latest" if until and not lines[0].until else ""
        lasted = f" (for {length(over - since)})" if over > since else ""
        pods = ", ".join(sorted(str(line.pod) for line in lines))
        text = f"{pods} {'does' if len(lines) == 1 else 'do'} not leave: {why}{borne}{lasted}"
        yield Mark(at=since, kind=MarkKind.BLOCKED, node=node, text=_cut(text))


def _stays(steps: Sequence[Step], end: datetime) -> Iterator[tuple[datetime, datetime, BlockedLine]]:
    """(since, until, line) of each stay of a pod in what drains say: until the first that does not name it, or the
    first step after them, or now.
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
    """What a drain or an end waited for beside pods that are blocked: each thing once."""
    known: set[str] = set()
    for step in steps:
        waiting = step.state in {"Drain", "AnswerHooks", "RemoveNode", "Finish"} and step.next in {"wait", "drained"}
        if step.left is None or not step.why or not waiting or BlockedLine.read(step.why.split("; ")[0]).pod:
            continue
        shape = f"{step.state}: {_shape(step.why)}"
        if shape not in known and not _usual(step):
            known.add(shape)
            kind = MarkKind.FAULT if step.why.startswith("waiting for an answer") else MarkKind.DECISION
            yield Mark(at=step.left, kind=kind, node=node, text=_cut(step.why))


def _usual(step: Step) -> bool:
    """What every termination says, and the phases show."""
    return step.why.startswith(("every pod that has to leave", "the group says", "EC2 says"))


def _decisions(steps: Iterable[Step], node: str) -> Iterator[Mark]:
    for step in steps:
        if step.left is not None and step.why and step.state in _SAID_ONCE:
            kind = MarkKind.BLOCKED if step.state == "GiveNodeBack" else MarkKind.DECISION
            prefix = {"AskForReplacement": "replacement: ", "GiveNodeBack": "given back: "}.get(step.state, "")
            yield Mark(at=step.left, kind=kind, node=node, text=_cut(prefix + step.why))


def _given_back(steps: Iterable[Step], node: str, record: TerminationRecord | None) -> Iterator[Mark]:
    """What an upgrade or a round does not decide itself."""
    for step in steps:
        if step.left is not None and step.state == "GiveNodeBack":
            why = step.why or (record.failure if record else "")
            yield Mark(at=step.left, kind=MarkKind.BLOCKED, node=node, text=_cut(f"given back: {why}"))


def _of_machine(facts: Facts) -> Iterator[Mark]:
    """The steps of an upgrade or a round: whenever one of them says something else than it has said before."""
    last: dict[str, str] = {}
    known: set[tuple[str, str]] = set()
    for step in facts.steps:
        if step.left is None or not step.works or not step.why or not step.next:
            continue
        told = (step.state, _shape(step.why) if step.next not in LOOPS else step.next)
        turned = last.get(step.state) != step.next
        last[step.state] = step.next
        if told in known and not (turned and step.next in _BLOCKED):
            continue
        known.add(told)
        yield Mark(at=step.left, kind=_kind(step.next), text=_cut(f"{step.state}: {step.why}"))
    yield from _failures(facts.steps, None)


def _kind(onward: str) -> MarkKind:
    if onward in _BLOCKED:
        return MarkKind.BLOCKED
    return MarkKind.FAULT if onward in _FAULTS else MarkKind.DECISION


def _failures(steps: Iterable[Step], node: str | None) -> Iterator[Mark]:
    """Tries that failed, with their cause; the same one again in the same stay is counted. A pause ends by failing."""
    for step in steps:
        tries: dict[str, list[Failure]] = {}
        for failure in step.failures:
            if not (step.state in PAUSES and _ends_a_pause(failure)):
                tries.setdefault(f"{failure.error}: {_message(failure.cause)}".rstrip(": "), []).append(failure)
        for text, failures in tries.items():
            times = f" ({len(failures)} tries)" if len(failures) > 1 else ""
            said = _cut(f"{step.state}: {text}") + times
            yield Mark(at=failures[0].at, kind=MarkKind.FAULT, node=node, text=said)


def _ends_a_pause(failure: Failure) -> bool:
    return "Timeout" in failure.error or "ConditionalCheckFailed" in failure.error


def _message(cause: str) -> str:
    """A function's error comes as JSON with a traceback, of which the message is the sentence."""
    try:
        found = json.loads(cause)
    except ValueError:
        return cause
    said = found.get("errorMessage") if isinstance(found, dict) else None
    return str(said) if said else cause


def _failed_launches(facts: Facts) -> Iterator[Mark]:
    """Once for each reason that Auto Scaling gave: it tries again every few minutes."""
    known: dict[tuple[str, str], datetime] = {}
    for group, activities in facts.activities.items():
        for one in sorted(activities, key=lambda activity: activity.at):
            if one.failed and facts.execution.started <= one.at <= facts.end:
                known.setdefault((group, one.failed), one.at)
    for (group, why), at in known.items():
        yield Mark(at=at, kind=MarkKind.FAULT, text=_cut(f"{group}: {why}"))


def _events(facts: Facts) -> Iterator[Mark]:
    """What Leeward told Kubernetes of the nodes drawn, as far as nothing above tells it more exactly."""
    drawn = {facts.name_of(name): name for name in facts.touched}
    for event in facts.told:
        name = drawn.get(event.about)
        if name is None or event.at < facts.execution.started.replace(microsecond=0):
            continue
        if event.reason in _TOLD_BY_STEPS and name in facts.stories:
            continue
        if event.reason.startswith("Awaiting") and name in facts.stories:
            continue
        if event.reason in _TOLD_BY_CAUSES and name in facts.terminations:
            continue
        kind = MarkKind.BLOCKED if event.reason in _TOLD_BY_STEPS else MarkKind.EVENT
        at = max(event.at, facts.execution.started)  # Kubernetes cuts times to whole seconds
        yield Mark(at=at, kind=kind, node=event.about, text=_cut(f"{event.reason}: {event.message}"))


def _ending(facts: Facts) -> Iterator[Mark]:
    """How the execution ended, in the words of its last state."""
    one = facts.execution
    if one.stopped is None:
        return
    last = facts.steps[-1].state if facts.steps else ""
    why = next((step.why for step in reversed(facts.steps) if step.why), "")
    node = facts.name_of(facts.touched[0]) if one.machine is Machine.TERMINATION and facts.touched else None
    reason = f"{one.error}: {_message(one.cause)}".strip(": ") or "no reason was given"
    match one.status:
        case Ended.SUCCEEDED | Ended.RUNNING:
            told = why and one.machine is Machine.TERMINATION  # the other machines' last step says it already
            kind, text = MarkKind.DECISION, f"{last}: {why}" if told else last
        case Ended.ABORTED:
            kind, text = MarkKind.EVENT, f"the execution was stopped by somebody: {reason}"
        case Ended.TIMED_OUT:
            kind, text = MarkKind.FAULT, f"the execution ran out of time in {last}: {reason}"
        case Ended.FAILED:
            kind, text = MarkKind.FAULT, f"the execution failed: {reason}"
    yield Mark(at=one.stopped, kind=kind, node=node, text=_cut(text or "it succeeded"))


def _shape(why: str) -> str:
    """A sentence without what varies: numbers, ids, times; up to its first comma or colon."""
    return _VARIES.sub("#", re.split(r"[,:]", why, maxsplit=1)[0])


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
