"""Execution that `leeward report` draws, by its ARN, its name or its instance, and its facts, read with the caller's
credentials. Decides where each fact is looked for and what happens where it cannot be read: without the execution there
is no report; without any other fact the report is smaller, and the page says so."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from leeward.cli.report import affected_nodes
from leeward.cli.report.facts import EARLIER, ReportFacts, SeenEvent, SeenNode, Story
from leeward.errors import AccessDeniedError, InvalidInputError, LeewardError
from leeward.model.counts import count_of
from leeward.model.execution import Execution, Machine, Step
from leeward.model.group import ScalingActivity
from leeward.model.termination import execution_name
from leeward.ports import Ports
from leeward.ports.executions import PastExecutions
from leeward.ports.kubernetes import Listed
from leeward.ports.records import Claims

MOST_HISTORIES = 200  # of the terminations of one upgrade or run; each is a call
MOST_ATTEMPTS = 3  # of one termination, the last ones
DELETED = " (it is deleted a week after the end)"

T = TypeVar("T")
KEPT_DAYS = 90  # Step Functions deletes executions that ended before that
NEEDED = "states:DescribeExecution and states:GetExecutionHistory"
_ARN = re.compile(r"arn:[^:]+:states:([^:]+):(\d{12}):execution:([^:/]+):([^:/]+)", re.ASCII)
_NAME = re.compile(r"[0-9A-Za-z_-]{1,80}", re.ASCII)
_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedExecution:
    """Requested execution: its name and, as far as an ARN gives them, its state machine, Region and account."""

    name: str
    machine: Machine | None = None
    region: str | None = None
    account: str | None = None


def gather(what: RequestedExecution, cluster: str, now: datetime, ports: Ports, past: PastExecutions) -> ReportFacts:
    """Gather every fact of the execution that can still be read. Raises InvalidInputError where there is none of that
    name, or it is of another cluster, and AccessDeniedError naming the permission.
    """
    execution, steps = find_execution(what, ports.claims, past)
    reader = _FactReader(ports=ports, past=past)
    facts = ReportFacts(execution=execution, steps=steps, now=now, cluster=cluster)
    match execution.machine:
        case Machine.TERMINATION:
            facts = _of_termination(facts, reader)
        case Machine.UPGRADE | Machine.MANAGED_UPGRADE:
            facts = _of_upgrade(facts, reader)
        case Machine.DISRUPTION:
            facts = _of_disruption(facts, reader)
    _check_cluster(facts, cluster)
    facts = replace(facts, instances=reader.mapping("EC2 instances", lambda: ports.instances.describe(facts.touched)))
    return replace(_with_the_cluster(facts, reader), missing=tuple(reader.missing))


@dataclass(kw_only=True)
class _FactReader:
    """Reader that collects the facts which could not be read."""

    ports: Ports
    past: PastExecutions
    missing: list[str] = field(default_factory=list)

    def mapping(self, what: str, call: Callable[[], Mapping[str, T]]) -> Mapping[str, T]:
        """Return the mapping of a call; a call that fails gives an empty mapping and a sentence in `missing`."""
        found = self.optional(what, call)
        return {} if found is None else found

    def sequence(self, what: str, call: Callable[[], Sequence[T]]) -> Sequence[T]:
        """Return the same as `mapping`, for a list."""
        found = self.optional(what, call)
        return () if found is None else found

    def optional(self, what: str, call: Callable[[], T | None]) -> T | None:
        """Return the same as `mapping`, for an object that may be absent: None."""
        try:
            return call()
        except LeewardError as error:
            self.missing.append(f"Not drawn, because it could not be read: {what} ({error}).")
            return None


def _check_cluster(facts: ReportFacts, cluster: str) -> None:
    """Check the cluster: a deployment serves several, and names of nodes and groups belong to one of them."""
    other = _cluster_of(facts)
    if other and other != cluster:
        raise InvalidInputError(
            f"--cluster: found {cluster!r}, expected {other!r}, the cluster of execution {facts.execution.name}"
        )


def _cluster_of(facts: ReportFacts) -> str:
    """Return the cluster that the record or the input names, empty where neither is there."""
    match facts.execution.machine:
        case Machine.TERMINATION:
            record = next((facts.terminations.get(name) for name in facts.touched[:1]), None)
            return record.subject.cluster if record is not None else ""
        case Machine.UPGRADE | Machine.MANAGED_UPGRADE:
            return facts.upgrade.cluster if facts.upgrade is not None else ""
        case Machine.DISRUPTION:
            return str(facts.execution.given.get("cluster") or "")


def _of_termination(facts: ReportFacts, reader: _FactReader) -> ReportFacts:
    name = affected_nodes.instance_of(facts.execution)
    attempt = affected_nodes.attempt_of(facts.execution, facts.steps)
    records = reader.mapping("the termination record", lambda: reader.ports.claims.read_all([name] if name else []))
    record = records.get(name)
    if record is None and name and not reader.missing:
        reader.missing.append(
            f"{name} has no termination record{DELETED}: its phases are those of the execution's history."
        )
    elif record is not None and attempt and record.attempt != attempt:
        reader.missing.append(
            f"The termination record of {name} is of attempt {record.attempt} by now: the phases of attempt {attempt} "
            "are those of its execution's history."
        )
    group = (record.subject.group or "") if record is not None else ""
    return replace(
        facts,
        group=group,
        touched=(*([name] if name else []), *affected_nodes.launched_for(records.values())),
        terminations=records,
        stories={name: (Story(attempt=attempt, steps=facts.steps),)} if name else {},
        activities=_activities([group] if group else [], facts, reader),
    )


def _of_upgrade(facts: ReportFacts, reader: _FactReader) -> ReportFacts:
    group = affected_nodes.group_of(facts.execution)
    record = reader.optional("the upgrade's record", lambda: reader.ports.upgrades.read(group) if group else None)
    if record is not None and not affected_nodes.is_its_upgrade(record, facts.execution, facts.end):
        reader.missing.append(
            f"The record of {group} is of another upgrade: its nodes are those of the group's history."
        )
        record = None
    facts = replace(facts, group=group, upgrade=record, activities=_activities([group] if group else [], facts, reader))
    came_and_went = affected_nodes.moved(facts.activities.get(group, ()), facts.execution.started, facts.end)
    there = reader.mapping("the group's members", lambda: reader.ports.groups.describe([group] if group else []))
    present = [one.id for one in there[group].instances] if group in there else []
    known = reader.mapping("EC2 instances", lambda: reader.ports.instances.describe(present))
    stayed = affected_nodes.members(there.get(group), known, facts.end)
    names = tuple(dict.fromkeys((*stayed, *came_and_went, *affected_nodes.named_by_upgrade(record))))
    return _with_terminations(replace(facts, touched=names), reader)


def _of_disruption(facts: ReportFacts, reader: _FactReader) -> ReportFacts:
    cluster, number = affected_nodes.disruption_of(facts.execution, facts.steps)
    record = reader.optional("the run's record", lambda: reader.ports.disruptions.read(cluster) if cluster else None)
    facts = replace(facts, number=number)
    if record is not None and record.number == number:
        facts = replace(facts, disruption=record, activities=_activities(record.groups, facts, reader))
        return _with_terminations(replace(facts, touched=affected_nodes.named_by_disruption(record)), reader)
    if number:
        reader.missing.append(
            f"The record of run {number} has made way for that of a later one: its nodes are found by their "
            "termination records, what it launched by the histories of their groups."
        )
    groups = reader.sequence(
        "the cluster's groups", lambda: tuple(reader.ports.groups.of_clusters([cluster or facts.cluster]))
    )
    activities = _activities([group.name for group in groups], facts, reader)
    candidates = [
        name for one in activities.values() for name in affected_nodes.moved(one, facts.execution.started, facts.end)
    ]
    records = reader.mapping("termination records", lambda: reader.ports.claims.read_all(candidates))
    own = {name: one for name, one in records.items() if affected_nodes.of_disruption(one, cluster, number)}
    its_groups = {one.subject.group for one in own.values()}
    kept = {name: one for name, one in activities.items() if name in its_groups}
    came = [name for one in kept.values() for name in _entered(one, facts)]
    names = tuple(dict.fromkeys((*own, *came)))
    return _with_terminations(replace(facts, touched=names, activities=kept), reader)


def _entered(activities: Sequence[ScalingActivity], facts: ReportFacts) -> tuple[str, ...]:
    return affected_nodes.moved([one for one in activities if one.enters], facts.execution.started, facts.end)


def _activities(
    groups: Iterable[str], facts: ReportFacts, reader: _FactReader
) -> Mapping[str, Sequence[ScalingActivity]]:
    """Return the scaling activities of each group since the earliest moment that the chart may show: a node that was
    launched just before the execution has its launch there.
    """
    since = facts.start(facts.execution.started - EARLIER)

    def read() -> Mapping[str, Sequence[ScalingActivity]]:
        return {name: reader.ports.groups.activities(name, since) for name in groups}

    return reader.mapping("scaling activities", read)


def _with_terminations(facts: ReportFacts, reader: _FactReader) -> ReportFacts:
    """Add the records of all touched instances, and the histories of their own executions."""
    records = reader.mapping("termination records", lambda: dict(reader.ports.claims.read_all(facts.touched)))
    gone = [
        name
        for name in affected_nodes.moved(_leaving(facts), facts.execution.started, facts.end)
        if name not in records
    ]
    if gone:
        reader.missing.append(f"Of the nodes that left {len(gone)} have no termination record{DELETED}.")
    facts = replace(facts, terminations=records)
    asked = {name: one.attempt for name, one in records.items()} | dict.fromkeys(gone, 1)
    stories = reader.mapping("histories of terminations", lambda: _stories(asked, reader))
    return replace(facts, stories=stories)


def _leaving(facts: ReportFacts) -> list[ScalingActivity]:
    return [one for activities in facts.activities.values() for one in activities if one.leaves in facts.touched]


def _stories(attempts: Mapping[str, int], reader: _FactReader) -> Mapping[str, Sequence[Story]]:
    """Return the last attempts of each node; attempts whose history is no longer kept are left out."""
    found: dict[str, Sequence[Story]] = {}
    for name, last in list(attempts.items())[:MOST_HISTORIES]:
        numbers = range(max(1, last - MOST_ATTEMPTS + 1), last + 1)
        read = ((number, reader.past.steps(Machine.TERMINATION, execution_name(name, number))) for number in numbers)
        stories = tuple(Story(attempt=number, steps=steps) for number, steps in read if steps)
        if stories:
            found[name] = stories
    if len(attempts) > MOST_HISTORIES:
        reader.missing.append(
            f"Blocking pods and budgets are drawn for {MOST_HISTORIES} of {count_of(len(attempts), 'node')}."
        )
    return found


def _with_the_cluster(facts: ReportFacts, reader: _FactReader) -> ReportFacts:
    """Add the nodes that still exist, and Events, which most clusters keep for an hour."""

    def nodes() -> Mapping[str, SeenNode]:
        seen = reader.ports.clusters.kubernetes(facts.cluster).read(Listed.NODES, SeenNode.from_json)
        return {one.instance: one for one in seen if one.instance in facts.touched}

    def events() -> tuple[Sequence[SeenEvent], Sequence[SeenEvent]]:
        kubernetes = reader.ports.clusters.kubernetes(facts.cluster)
        return (
            kubernetes.seen_events(SeenEvent.from_json, "source=leeward"),
            kubernetes.seen_events(SeenEvent.from_json, "involvedObject.kind=Node,reason=NodeReady"),
        )

    facts = replace(facts, nodes=reader.mapping("Nodes of the cluster", nodes))
    by_leeward, joined = reader.optional("Events of the cluster", events) or ((), ())
    times: dict[str, list[datetime]] = {}
    for one in joined:
        times.setdefault(one.about, []).append(one.at)
    return replace(facts, events=by_leeward, joined=times)


def requested_execution(text: str) -> RequestedExecution | None:
    """Parse an ARN or a possible name of an execution; return None for anything else. Raises InvalidInputError for an
    ARN that is not one of an execution of Leeward.
    """
    if not text.startswith("arn:"):
        return RequestedExecution(name=text) if _NAME.fullmatch(text) else None
    found = _ARN.fullmatch(text)
    ours = {machine.named: machine for machine in Machine}
    if found is None or found[3] not in ours:
        raise InvalidInputError(
            f"found {text!r}, expected the ARN of an execution of {', '.join(ours)} (arn:aws:states:REGION:ACCOUNT:"
            "execution:STATE-MACHINE:NAME), for others are not Leeward's to draw"
        )
    return RequestedExecution(name=found[4], machine=ours[found[3]], region=found[1], account=found[2])


def find_execution(what: RequestedExecution, claims: Claims, past: PastExecutions) -> tuple[Execution, Sequence[Step]]:
    """Find the execution by its name among those of Leeward's machines, with its history; an instance's id is its
    latest termination. Raises InvalidInputError where there is none, or more than one, and AccessDeniedError naming the
    permission.
    """
    name = what.name
    try:
        if _INSTANCE.fullmatch(name):
            record = claims.read(name)
            name = execution_name(name, record.attempt if record is not None else 1)
        machines = tuple(Machine) if what.machine is None else (what.machine,)
        there = [one for machine in machines if (one := past.look(machine, name)) is not None]
        if not there:
            raise InvalidInputError(_not_there(name, machines))
        if len(there) > 1:
            several = " and of ".join(one.machine.named for one in there)
            raise InvalidInputError(f"found {name!r} to be an execution of {several}, expected the ARN of one of them")
        return there[0], past.steps(there[0].machine, name) or ()
    except AccessDeniedError as error:
        raise AccessDeniedError(f"{error}; a report needs {NEEDED} on Leeward's state machines") from error


def _not_there(name: str, machines: Iterable[Machine]) -> str:
    named = ", ".join(machine.named for machine in machines)
    return (
        f"found neither a file nor an execution {name!r} of {named}, expected one that runs or ended in the last "
        f"{KEPT_DAYS} days, after which Step Functions forgets it: a name such as GROUP-1, CLUSTER-3-1 or "
        "i-0123456789abcdef0-1, or an instance's id, which is its latest termination"
    )
