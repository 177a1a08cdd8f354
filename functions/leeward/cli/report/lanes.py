"""Lanes of the nodes: the known phases of each, its launch, its time in service, its terminations.

A moment that no source recorded is not drawn: the phase is left out, or uses the nearest recorded moment, and `guessed`
names the node so that the page can say so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from leeward.cli.report.affected_nodes import own_cause
from leeward.cli.report.facts import ReportFacts
from leeward.cli.report.record import NodeLane, Phase, Span
from leeward.model.execution import Machine, Step
from leeward.model.group import ScalingActivity
from leeward.model.termination import CauseKind, Outcome, TerminationRecord

_NO_DATE = datetime.min.replace(tzinfo=UTC)
_OUT_OF_SERVICE = frozenset({CauseKind.UNHEALTHY, CauseKind.STATE_CHANGE})  # before any of Leeward's
_STAYED = frozenset({Outcome.RETURNED_TO_SERVICE, Outcome.KEPT, Outcome.REBOOTED})
_CORDONS = {Machine.UPGRADE: "CordonOldNodes", Machine.DISRUPTION: "TaintNodes"}

# Times of a termination record at which a phase begins: the first eviction, the last pod, EC2's confirmation.
PHASES_OF_TIMES: Mapping[str, Phase] = MappingProxyType(
    {
        "draining": Phase.DRAINING,
        "drained": Phase.SETTLING,
        "terminated": Phase.TERMINATED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """One termination of a node. `back`: when it was returned to service, None where it was not."""

    times: Mapping[Phase, datetime]
    back: datetime | None = None

    @property
    def begin(self) -> datetime | None:
        """First moment of the termination."""
        return min(self.times.values(), default=None)


def node_lanes(facts: ReportFacts, start: datetime) -> tuple[NodeLane, ...]:
    """Return one lane for each affected instance, from the facts within the period that is drawn."""
    return tuple(_lane(name, facts, start) for name in facts.touched)


def guessed(facts: ReportFacts, start: datetime) -> tuple[str, ...]:
    """Return the nodes that were launched in that time and whose Ready time no source has any more: the time at which
    Auto Scaling reported them in service stands for it.
    """
    came = [name for name in facts.touched if (birth := _birth(name, facts)) is not None and birth >= start]
    return tuple(facts.name_of(name) for name in came if _ready(name, facts) is None and _in_service(name, facts))


def _lane(name: str, facts: ReportFacts, start: datetime) -> NodeLane:
    record, instance, node = facts.terminations.get(name), facts.instances.get(name), facts.nodes.get(name)
    subject = record.subject if record else None
    known = subject.capacity_type if subject else instance.capacity_type if instance else None
    return NodeLane(
        name=facts.name_of(name),
        instance=name,
        group=(subject.group if subject else None) or (instance.group if instance else None) or _group(name, facts),
        zone=(subject.zone if subject else "") or (instance.zone if instance else "") or (node.zone if node else ""),
        capacity_type=known.value if known else "",
        spans=tuple(_spans(name, facts, start)),
    )


def _spans(name: str, facts: ReportFacts, start: datetime) -> Iterator[Span]:
    """Yield its phases up to its first termination, then each termination; between them it is in service."""
    ends = _terminations(name, facts)
    begins = [one.begin for one in ends if one.begin is not None]
    until = [*begins, facts.end]
    yield from spans_of(_coming(name, facts, start), min(until[0], facts.end))
    for one, upto in zip((one for one in ends if one.times), until[1:], strict=True):
        last = min(upto, facts.end)
        yield from spans_of(one.times, min(one.back or last, last))
        if one.back is not None and one.back < last:
            yield Span(phase=Phase.READY, begin=one.back, end=last)


def _coming(name: str, facts: ReportFacts, start: datetime) -> dict[Phase, datetime]:
    """Return the launch within the period, or service since before; an empty mapping where neither is known."""
    birth = _birth(name, facts)
    if birth is not None and birth >= start:
        ready = _ready(name, facts) or _in_service(name, facts)
        return {Phase.LAUNCHING: birth} | ({Phase.READY: ready} if ready is not None else {})
    return {Phase.READY: start} if _served(name, facts) else {}


def _birth(name: str, facts: ReportFacts) -> datetime | None:
    """Return when it was requested: as the requester recorded, else by the group's history, else EC2's launch time."""
    asked = [
        record.times["replacement"]
        for record in facts.terminations.values()
        if record.replacement and name in record.replacement.launched and "replacement" in record.times
    ]
    entered = [one.at for one in _of(name, facts) if one.enters == name]
    launched = facts.instances[name].launched if name in facts.instances else _NO_DATE
    known = [*asked, *entered, *([launched] if launched != _NO_DATE else [])]
    return min(known, default=None)


def _ready(name: str, facts: ReportFacts) -> datetime | None:
    """Return when its Node first became Ready, if a source still has it: its kubelet's Event, or its condition, which
    holds only the last time. An Event older than its launch is of an earlier node of that name.
    """
    node = facts.nodes.get(name)
    known = [*facts.joined.get(facts.name_of(name), ()), node.ready if node else None]
    birth = _birth(name, facts) or _NO_DATE
    return min((at for at in known if at is not None and birth.replace(microsecond=0) <= at <= facts.end), default=None)


def _in_service(name: str, facts: ReportFacts) -> datetime | None:
    ended = [one.ended for one in _of(name, facts) if one.enters == name and one.ended and not one.failed]
    return min(ended, default=None)


def _served(name: str, facts: ReportFacts) -> bool:
    """Return whether it was in service: it had joined before, was not found unhealthy, and no earlier execution of the
    upgrade may have cordoned it.
    """
    record, node = facts.terminations.get(name), facts.nodes.get(name)
    if record is not None and record.causes and record.causes[0].kind in _OUT_OF_SERVICE:
        return False
    if facts.execution.machine in {Machine.UPGRADE, Machine.MANAGED_UPGRADE} and _attempt(facts.steps) > 1:
        return False
    return bool((record and record.subject.node) or node)


def _attempt(steps: Sequence[Step]) -> int:
    return max((int(step.output.get("attempt") or 0) for step in steps), default=0)


def _terminations(name: str, facts: ReportFacts) -> list[Leaving]:
    """Return its terminations from the histories of its executions; the record completes the attempt that it belongs
    to. Without either, from its group's history alone.
    """
    record, stories = facts.terminations.get(name), facts.stories.get(name, ())
    found = [_of_story(story.steps) for story in stories]
    if record is not None and _within(record, facts):
        kept = _of_record(record)
        if stories and stories[-1].attempt == record.attempt:
            kept = Leaving(times={**found[-1].times, **kept.times}, back=found[-1].back or kept.back)
            found = [*found[:-1], kept]
        elif not stories:
            found = [kept]
    if not any(one.times for one in found):
        ended = [one.ended for one in _of(name, facts) if one.leaves == name and one.ended]
        found = [Leaving(times={Phase.TERMINATED: min(ended)})] if ended else []
    return _cordoned(name, facts, [one for one in found if one.begin is not None and one.begin <= facts.end])


def _within(record: TerminationRecord, facts: ReportFacts) -> bool:
    """Return whether the record covers this period: one that was reopened later does not."""
    claimed = record.times.get("claimed")
    return claimed is None or claimed <= facts.end


def _of_record(record: TerminationRecord) -> Leaving:
    times = {phase: record.times[name] for name, phase in PHASES_OF_TIMES.items() if name in record.times}
    if "tainted" in record.times:
        times[Phase.CORDONED] = record.times["tainted"]
    back = record.times.get("closed") if record.outcome in _STAYED else None
    return Leaving(times=times, back=back)


def _of_story(steps: Sequence[Step]) -> Leaving:
    """Read the phases as states were entered and left: a step's own clock runs within its stay."""
    times: dict[Phase, datetime] = {}
    back = None
    for step in steps:
        if step.state == "Drain":
            times.setdefault(Phase.DRAINING, step.entered)
        if step.left is None:
            continue
        if step.state == "Drain" and step.next == "drained":
            times.setdefault(Phase.SETTLING, step.left)
        if step.next in {"gone", "remove"}:
            times.setdefault(Phase.TERMINATED, step.left)
        if step.state == "ReturnNodeToService":
            back = step.left
    return Leaving(times=times, back=back)


def _cordoned(name: str, facts: ReportFacts, found: list[Leaving]) -> list[Leaving]:
    """Add the cordon: upgrades and runs cordon their nodes long before these drain."""
    state = _CORDONS.get(facts.execution.machine)
    at = next((step.left for step in facts.steps if step.state == state and step.left), None)
    if at is None or not _was_cordoned(name, facts):
        return found
    if not found:
        return [Leaving(times={Phase.CORDONED: at})]
    first, *others = found
    earlier = first.begin is None or at < first.begin
    return [Leaving(times={**first.times, Phase.CORDONED: at}, back=first.back), *others] if earlier else found


def _was_cordoned(name: str, facts: ReportFacts) -> bool:
    record, node = facts.terminations.get(name), facts.nodes.get(name)
    if facts.disruption is not None and name in facts.disruption.nodes.values():
        return True
    if node is not None and facts.group and node.cordoned_for == facts.group:
        return True
    causes = record.all_causes if record is not None else ()
    return any(own_cause(one, facts.execution, facts.group, facts.cluster, facts.number, name) for one in causes)


def _of(name: str, facts: ReportFacts) -> Iterator[ScalingActivity]:
    every = (one for activities in facts.activities.values() for one in activities)
    return (one for one in every if name in (one.enters, one.leaves))


def _group(name: str, facts: ReportFacts) -> str:
    for group, activities in facts.activities.items():
        if any(name in (one.enters, one.leaves) for one in activities):
            return group
    return facts.group


def spans_of(times: Mapping[Phase, datetime], end: datetime) -> tuple[Span, ...]:
    """Return the phases, each up to the next; a phase that began after a later one is left out, as the later one holds.
    A phase that would begin after the end is left out too.
    """
    known = [(phase, times[phase]) for phase in Phase if phase in times and times[phase] <= end]
    kept: list[tuple[Phase, datetime]] = []
    for phase, at in reversed(known):
        if not kept or at <= kept[0][1]:
            kept.insert(0, (phase, at))
    ends = [*(at for _, at in kept), end][1:]
    return tuple(Span(phase=phase, begin=at, end=until) for (phase, at), until in zip(kept, ends, strict=True))
