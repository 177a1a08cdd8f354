"""Moments of an execution that matter to a person: its cause, what blocked what and until when, the decisions, the
failures and the end; not each of a thousand state transitions."""

from collections.abc import Iterator
from datetime import datetime

from leeward.cli.report.affected_nodes import own_cause
from leeward.cli.report.facts import ReportFacts
from leeward.cli.report.node_markers import cut_short, failures_of, of_node, shape
from leeward.cli.report.record import Mark, MarkKind
from leeward.model.execution import ExecutionStatus, Machine
from leeward.model.termination import Cause, CauseKind, TerminationRecord
from leeward.model.times import format_instant

LOOPS = frozenset({"wait", "follow", "boot"})  # repeated while nothing changes
_BLOCKED = frozenset({"blocked", "paused", "alarm", "window", "bake", "eviction-failure", "give-up"})
_FAULTS = frozenset({"failed", "creation-failure", "update-failure"})
# Steps of Leeward whose effects the phases of nodes or other marks show
_BOOKKEEPING = frozenset(
    {
        "TakeLease",
        "PrepareTemplate",
        "PointGroupAtTemplate",
        "RestoreGroup",
        "NoteOutcome",
        "TakeDisruption",
        "RequestTerminations",
        "FollowTerminations",
        "EndDisruption",
    }
)
_SHOWN_BY_STEPS = frozenset({"DrainBlocked", "PodEvictionFailure", "TerminationCancelled", "Rebooting", "Rebooted"})
_SHOWN_BY_CAUSES = frozenset(
    {
        "SpotInterruption",
        "CapacityReservationInterruption",
        "CapacityBlockExpiration",
        "RebalanceRecommendation",
        "ScheduledChange",
        "InstanceStateChange",
        "GroupTerminating",
        "RootVolumeReplacement",
    }
)
_FROM_OUTSIDE = frozenset(
    {
        CauseKind.SPOT_INTERRUPTION,
        CauseKind.CAPACITY_RESERVATION,
        CauseKind.CAPACITY_BLOCK,
        CauseKind.REBALANCE_RECOMMENDATION,
        CauseKind.SCHEDULED_CHANGE,
        CauseKind.STATE_CHANGE,
        CauseKind.ASG_TERMINATE,
        CauseKind.REPLACE_ROOT_VOLUME,
        CauseKind.MANUAL,
        CauseKind.NODE_DELETED,
        CauseKind.UNHEALTHY,
    }
)


def marks_of(facts: ReportFacts, start: datetime) -> tuple[Mark, ...]:
    """Return the marks in the order of time, all within the period that is drawn."""
    found = [
        *(mark for name, stories in facts.stories.items() for mark in of_node(name, stories, facts)),
        *(_of_machine(facts) if facts.execution.machine is not Machine.TERMINATION else ()),
        *_failed_launches(facts),
        *_events(facts),
        *_ending(facts),
    ]
    within = (mark for mark in found if start <= mark.at <= facts.end)
    return tuple(sorted((*_causes(facts, start), *within), key=lambda mark: mark.at))


def _causes(facts: ReportFacts, start: datetime) -> Iterator[Mark]:
    """Yield the causes for which nodes are terminated; for a termination also those long before it. The own cause of an
    upgrade or run is left out: the chart shows that itself.
    """
    alone = facts.execution.machine is Machine.TERMINATION
    where = (facts.group, facts.cluster, facts.number)
    for name, record in facts.terminations.items():
        if name not in facts.touched:
            continue
        for cause in record.all_causes:
            ours = own_cause(cause, facts.execution, *where, name) or _offsets_its_own(cause, facts)
            meanwhile = cause.at <= facts.end and (alone or cause.at >= start)
            if meanwhile and not ours and not _follows(cause, record):
                kind = MarkKind.EVENT if cause.kind in _FROM_OUTSIDE else MarkKind.DECISION
                yield Mark(at=cause.at, kind=kind, node=facts.name_of(name), text=cut_short(_said(cause)))


def _offsets_its_own(cause: Cause, facts: ReportFacts) -> bool:
    """Return whether an old node's end offsets a new one of the upgrade or run: bookkeeping, not news."""
    return cause.kind is CauseKind.SURPLUS and facts.execution.machine is not Machine.TERMINATION


def _follows(cause: Cause, record: TerminationRecord) -> bool:
    """Return whether the group or EC2 announces Leeward's own request; their times are in whole seconds."""
    asked = record.times.get("terminating")
    echoes = cause.kind in {CauseKind.ASG_TERMINATE, CauseKind.STATE_CHANGE}
    return echoes and asked is not None and cause.at >= asked.replace(microsecond=0)


def _said(cause: Cause) -> str:
    hook = f" (lifecycle hook {cause.hook})" if cause.hook else ""
    deadline = f", gone at {format_instant(cause.deadline)} whatever happens" if cause.deadline else ""
    return f"{cause.kind.value}{f': {cause.reason}' if cause.reason else ''}{hook}{deadline}"


def _of_machine(facts: ReportFacts) -> Iterator[Mark]:
    """Yield the steps of an upgrade or a run, whenever one of them reports something new."""
    last: dict[str, str] = {}
    known: set[tuple[str, str]] = set()
    for step in facts.steps:
        if step.left is None or not step.works or not step.why or not step.next:
            continue
        key = (step.state, shape(step.why) if step.next not in LOOPS else step.next)
        turned = last.get(step.state) != step.next
        last[step.state] = step.next
        if key in known and not (turned and step.next in _BLOCKED):
            continue
        known.add(key)
        kind = _kind(step.next)
        internal = kind is MarkKind.DECISION and step.state in _BOOKKEEPING
        yield Mark(at=step.left, kind=kind, text=cut_short(f"{step.state}: {step.why}"), internal=internal)
    yield from failures_of(facts.steps, None)


def _kind(onward: str) -> MarkKind:
    if onward in _BLOCKED:
        return MarkKind.BLOCKED
    return MarkKind.FAULT if onward in _FAULTS else MarkKind.DECISION


def _failed_launches(facts: ReportFacts) -> Iterator[Mark]:
    """Yield one mark for each reason that Auto Scaling gave: it retries every few minutes."""
    known: dict[tuple[str, str], datetime] = {}
    for group, activities in facts.activities.items():
        for one in sorted(activities, key=lambda activity: activity.at):
            if one.failed and facts.execution.started <= one.at <= facts.end:
                known.setdefault((group, one.failed), one.at)
    for (group, why), at in known.items():
        yield Mark(at=at, kind=MarkKind.FAULT, text=cut_short(f"{group}: {why}"))


def _events(facts: ReportFacts) -> Iterator[Mark]:
    """Yield the Events that Leeward wrote about the drawn nodes, unless another mark shows the same more exactly."""
    drawn = {facts.name_of(name): name for name in facts.touched}
    for event in facts.events:
        name = drawn.get(event.about)
        if name is None or event.at < facts.execution.started.replace(microsecond=0):
            continue
        if event.reason in _SHOWN_BY_STEPS and name in facts.stories:
            continue
        if event.reason.startswith("Awaiting") and name in facts.stories:
            continue
        if event.reason in _SHOWN_BY_CAUSES and name in facts.terminations:
            continue
        kind = MarkKind.BLOCKED if event.reason in _SHOWN_BY_STEPS else MarkKind.EVENT
        at = max(event.at, facts.execution.started)  # Kubernetes cuts times to whole seconds
        yield Mark(at=at, kind=kind, node=event.about, text=cut_short(f"{event.reason}: {event.message}"))


def _ending(facts: ReportFacts) -> Iterator[Mark]:
    """Yield how the execution ended, in the words of its last state."""
    one = facts.execution
    if one.stopped is None:
        return
    last = facts.steps[-1].state if facts.steps else ""
    why = next((step.why for step in reversed(facts.steps) if step.why), "")
    node = facts.name_of(facts.touched[0]) if one.machine is Machine.TERMINATION and facts.touched else None
    reason = f"{one.error}: {one.cause}".strip(": ") or "no reason was given"
    match one.status:
        case ExecutionStatus.SUCCEEDED | ExecutionStatus.RUNNING | ExecutionStatus.PENDING_REDRIVE:
            explained = why and one.machine is Machine.TERMINATION  # the other machines' last step says it already
            kind, text = MarkKind.DECISION, f"{last}: {why}" if explained else last
        case ExecutionStatus.ABORTED:
            kind, text = MarkKind.EVENT, f"the execution was stopped manually: {reason}"
        case ExecutionStatus.TIMED_OUT:
            kind, text = MarkKind.FAULT, f"the execution ran out of time in {last}: {reason}"
        case ExecutionStatus.FAILED:
            kind, text = MarkKind.FAULT, f"the execution failed: {reason}"
    internal = kind is MarkKind.DECISION  # the headline says how it ended
    yield Mark(at=one.stopped, kind=kind, node=node, text=cut_short(text or "it succeeded"), internal=internal)
