"""Maintenance that AWS has taken back: canceled, completed early, moved to another date, or listed no more.

EC2's list decides, as it does where AWS Health announces maintenance: a message of Health acts only where EC2 confirms
it, so a closed Health event needs no message of its own. What is dropped in error is claimed again from the list."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from leeward.cluster.facets import Known, required
from leeward.cluster.state import ClusterState
from leeward.model.instance_status import ScheduledEvent
from leeward.model.termination import Cause, CauseKind, Outcome, Status, TerminationRecord
from leeward.ports import Ports
from leeward.reconcile.result import ReconcileResult
from leeward.reconcile.second_observation import seen_before
from leeward.termination.decisions import CANCELLED, is_cancelled
from leeward.termination.requests import start

EVENT = "TerminationCancelled"
RUNNING = "running"

Listed = Mapping[str, Sequence[ScheduledEvent]]


def drop_withdrawn_maintenance(listed: Listed, state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Drop the causes that EC2 lists no more, or as over, at the second look; a record without any other is closed.
    EC2 has no status of an instance that does not run, so nothing follows from its silence.
    """
    mine = [record for record in required(state.records, "the open records").values() if _may_end(record, state)]
    over = {record.instance: causes for record in mine if (causes := tuple(_over(record, listed)))}
    instances = ports.instances.describe(sorted(over)) if over else {}
    for name, causes in sorted(over.items()):
        instance = instances.get(name)
        if instance is None or instance.state != RUNNING:
            continue
        with result.isolate(name):
            if _drop(name, causes, state, ports):
                result.withdrawn.append(name)


def _may_end(record: TerminationRecord, state: ClusterState) -> bool:
    open_here = record.status is Status.OPEN and record.subject.cluster == state.cluster
    return open_here and "terminating" not in record.times


def _over(record: TerminationRecord, listed: Listed) -> Iterator[Cause]:
    """Yield the causes of maintenance of which EC2 lists no event still to come. A drained node that waits for its
    reboot watches the event itself: it also tells a reboot that was made from one that was canceled.
    """
    due = {event.starts for event in listed.get(record.instance, ()) if not event.over}
    for cause in record.causes:
        if cause.kind is not CauseKind.SCHEDULED_CHANGE or (cause.reboot is not None and "draining" in record.times):
            continue
        if not _is_due(cause.deadline, due):
            yield cause


def _is_due(date: datetime | None, due: set[datetime | None]) -> bool:
    return date in due or (date is None and bool(due))


def _drop(name: str, causes: Sequence[Cause], state: ClusterState, ports: Ports) -> bool:
    """Return whether the causes are dropped now. The run that drains the instance is woken, and ends by itself."""
    dropped = [cause for cause in causes if seen_before(f"withdrawn#{cause.id}", ports.clock, ports.claims)]
    if not dropped:
        return False
    for cause in dropped:
        record = ports.claims.withdraw(name, cause.id)
    if ports.executions.running(name, record.attempt):
        if record.token:
            ports.executions.wake(record.token)
    elif is_cancelled(record):
        _close(record, dropped[-1], state, ports)
    return True


def _close(record: TerminationRecord, cause: Cause, state: ClusterState, ports: Ports) -> None:
    """Close the record where nothing is left to undo; else its execution undoes it. Raises RecordChangedError if a
    cause has joined since.
    """
    node = state.node_of(record.instance)
    known = isinstance(state.node_list, Known) and (node is None or not node.tainted)
    if not (known and record.surge_settled and not record.surges):
        start(record, ports)
        return
    now = ports.clock.now()
    ports.claims.close(record.instance, version=record.version, outcome=Outcome.RETURNED_TO_SERVICE, now=now)
    if node is not None:
        message = f"{CANCELLED} ({cause.reason})"
        kubernetes = ports.clusters.kubernetes(state.cluster)
        kubernetes.event(node, reason=EVENT, message=message[:1000], warning=False, now=now)
