"""Open terminations: their records are read, of which one may be malformed or of a newer version, and executions that
should run but do not are started again. Maintenance that lies far ahead waits until the disruption budgets of its
node's policy allow it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from leeward.budgets.disruption_budgets import allowance_among, tightest, why_disrupted
from leeward.cluster.facets import Facet, known_or, load
from leeward.errors import NewerRecordError
from leeward.model.termination import CauseKind, Status, TerminationRecord, detach_deadline, execution_name
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.executions import Executions
from leeward.ports.records import Claims
from leeward.reconcile.result import ReconcileResult
from leeward.retry import retry
from leeward.termination import decisions
from leeward.termination.drain import taint_node
from leeward.termination.requests import read_apart, start
from leeward.termination.situation import survey


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRecords:
    """OpenRecords by instance. `unreadable`: instances whose record cannot be parsed: nothing is done to them. `newer`:
    those of them whose record a newer version can parse.
    """

    read: Mapping[str, TerminationRecord]
    unreadable: frozenset[str] = field(default=frozenset())
    newer: frozenset[str] = field(default=frozenset())


def open_records(clock: Clock, claims: Claims, result: ReconcileResult) -> Mapping[str, TerminationRecord]:
    """Read the open records, by instance. Each minute begins with another one, so that a pass that dies early never
    skips the same record for good. Raises the table's errors: without records the pass ends, because terminations under
    way would be taken for unhandled ones.
    """
    names = retry(claims.open_instances, clock)
    first = clock.now().minute % len(names) if names else 0
    records = read_records(names, clock, claims, result).read
    ordered = [records[name] for name in (*names[first:], *names[:first]) if name in records]
    return {record.instance: record for record in ordered if record.status is Status.OPEN}


def read_records(instances: Sequence[str], clock: Clock, claims: Claims, result: ReconcileResult) -> OpenRecords:
    """Read the existing records; `result` names those that cannot be parsed. Raises the table's errors: a termination
    under way must not be taken for one that no execution handles.
    """
    records = retry(lambda: read_apart(instances, claims), clock)
    for name, error in records.unreadable.items():
        result.note(f"the record of {name}", error)
    newer = frozenset(name for name, error in records.unreadable.items() if isinstance(error, NewerRecordError))
    return OpenRecords(read=records.read, unreadable=frozenset(records.unreadable), newer=newer)


def is_open(record: TerminationRecord | None) -> bool:
    """Return whether there is a record and its termination is under way."""
    return record is not None and record.status is Status.OPEN


def open_executions(clock: Clock, executions: Executions, result: ReconcileResult) -> Facet[frozenset[str]]:
    """Return the names of the open executions, read in one list."""
    return load(lambda: retry(executions.all_running, clock), lambda error: result.note("executions", error))


def restart(
    records: Iterable[TerminationRecord], executions: Facet[frozenset[str]], ports: Ports, result: ReconcileResult
) -> None:
    """Start the executions of open records again, one after the other. Idempotent: the name of an execution is that of
    the attempt, and one that is open is not started.
    """
    for record in records:
        with result.isolate(record.instance):
            _restart(record, executions, ports, result)


def _restart(
    record: TerminationRecord, executions: Facet[frozenset[str]], ports: Ports, result: ReconcileResult
) -> None:
    """Start the execution of an open record again, unless it runs, pauses after a failure, or waits for a budget. If
    the executions could not be listed each is looked up on its own.
    """
    now = ports.clock.now()
    listed = known_or(executions, frozenset())
    if execution_name(record.instance, record.attempt) in listed or record.times.get("retry", now) > now:
        return
    if ports.executions.running(record.instance, record.attempt):  # begun after the list was made
        return
    if can_wait(record, now) and not budget_left(record, ports, result, now):
        result.deferred.append(record.instance)
        return
    start(record, ports)
    result.restarted.append(record.instance)


def can_wait(record: TerminationRecord, now: datetime) -> bool:
    """Return whether the termination can wait: its only causes are maintenance, and that is more than a day away."""
    only_far = all(cause.kind is CauseKind.SCHEDULED_CHANGE for cause in record.causes)
    date = detach_deadline(record, now)
    return only_far and date is not None and date - now > decisions.FAR_AHEAD


def budget_left(record: TerminationRecord, ports: Ports, result: ReconcileResult, now: datetime) -> bool:
    """Return whether the budgets of the node's policy, and those of its zone, allow one more disruption. If so, taint
    the node at once, so that the next one is counted against it. A node that is tainted already (the reconciler died
    before the start) has its place. An instance that has ended needs no budget: its record is only to be closed.
    """
    situation = survey(record, ports)
    if situation.listing is None or situation.ended:
        return True
    members = {member.id: member.zone for member in situation.listing.instances}
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    nodes = [node for node in kubernetes.nodes() if node.instance_id in members]
    disrupting = {node.instance_id for node in nodes if why_disrupted(node, now)} | (
        set(result.restarted) & members.keys()
    )
    left = tightest(
        allowance_among(
            situation.policy.disruption.budgets,
            [members[node.instance_id] for node in nodes],
            [members[name] for name in disrupting - {record.instance}],
            reason=None,
            zone=zone,
            now=now,
        )
        for zone in (None, record.subject.zone)
    )
    if left is not None and left <= 0:
        return False
    for node in nodes:
        if node.instance_id == record.instance:
            taint_node(node, record, kubernetes, ports)
    return True
