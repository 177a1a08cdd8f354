"""Ends that AWS announces: scheduled events of EC2, maintenance that is taken back, and Capacity Blocks.

Instances with scheduled events are claimed as by AWS Health's message, which may be lost. EC2 is asked once a minute
while it lists any event, and in each third minute while it lists none: the message comes at once, and a date is hours
or days ahead. A cause that Health's message has brought has the same date, and is not added again. A reboot that the
policy waits for (`interruption.systemReboot: wait`) is claimed shortly before its date: the node is drained, stays, and
returns to service after the reboot.

Maintenance is taken back when it is canceled, completed early, moved to another date, or listed no more. EC2's list
decides, as it does where AWS Health announces maintenance: a message of Health acts only where EC2 confirms it, so a
closed Health event needs no message of its own. What is dropped in error is claimed again from the list.

Instances of a Capacity Block are claimed when the policy's `drainBefore` begins. EventBridge warns once, 40 minutes
before the end, and may lose the warning; a policy may ask for more time than that. So the end is read from what fn sync
has kept of the reservations, as Karpenter reads it (designs/capacity-block-support in its repository). The cause is the
warning's own: the second of the two adds nothing."""

from collections.abc import Iterator, Mapping, Sequence

from leeward.cluster.facets import Known, known_or, required
from leeward.cluster.state import ClusterState
from leeward.model.capacity_block import CapacityBlock
from leeward.model.facts import FactKind, blocks_of
from leeward.model.instance import Instance
from leeward.model.instance_status import ScheduledEvent
from leeward.model.termination import (
    Cause,
    CauseKind,
    Outcome,
    Reboot,
    RebootBy,
    Status,
    TerminationRecord,
    drain_begins,
)
from leeward.model.times import format_instant
from leeward.policy.document import NodePolicy
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.reconcile.executions import read_records
from leeward.reconcile.result import ReconcileResult
from leeward.reconcile.second_observation import seen_before
from leeward.termination.decisions import CANCELLED, FAR_AHEAD, is_cancelled
from leeward.termination.requests import start, subject_of

EVENT = "TerminationCancelled"
RUNNING = "running"

Listed = Mapping[str, Sequence[ScheduledEvent]]


def claim_scheduled_events(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Claim the instances and start what is near; maintenance far ahead is started when the budgets allow it. Then drop
    what AWS has taken back.
    """
    if not any(state.interruption_policy_of(group) for group in state.selected):
        return
    scheduled = ports.instances.scheduled_events(recent=True)
    _claim_due(scheduled, state, ports, result)
    drop_withdrawn_maintenance(scheduled, state, ports, result)


def _claim_due(scheduled: Listed, state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    events = {
        name: due
        for name, listed in scheduled.items()
        if (due := [event for event in listed if _is_due(event, state, ports.clock)])
    }
    if not events:
        return
    records, instances = (
        read_records(sorted(events), ports.clock, ports.claims, result),
        ports.instances.describe(events),
    )
    for name, due in sorted((name, due) for name, due in events.items() if name not in records.unreadable):
        instance, record = instances.get(name), records.read.get(name)
        for event in due:
            if instance is not None and not instance.ended and not _is_known(event, record):
                with result.isolate(name):
                    result.restarted += _claim(event, instance, state, ports)


def _is_due(event: ScheduledEvent, state: ClusterState, clock: Clock) -> bool:
    policy = state.interruption_policy_of(state.group_of_instance(event.instance))
    if policy is None or event.over or event.starts is None:
        return False
    now = clock.now()
    begins = drain_begins(event.starts, policy.drain.longest) if _waits(event, policy) else now
    return begins <= now < event.starts


def _waits(event: ScheduledEvent, policy: NodePolicy) -> bool:
    return event.reboots and policy.interruption.waits_for_reboot


def _is_known(event: ScheduledEvent, record: TerminationRecord | None) -> bool:
    """Return whether a cause of the same date has joined, from wherever: Health's message has an id of its own."""
    causes = (cause for cause in record.all_causes if not cause.withdrawn) if record is not None else ()
    return any(cause.kind is CauseKind.SCHEDULED_CHANGE and cause.deadline == event.starts for cause in causes)


def _claim(event: ScheduledEvent, instance: Instance, state: ClusterState, ports: Ports) -> list[str]:
    """Return the instance if its termination is under way now. Idempotent: the cause is named by event and date."""
    now, group = ports.clock.now(), state.group_of_instance(event.instance)
    policy = state.interruption_policy_of(group)
    if policy is None or event.starts is None:
        return []
    cause = Cause(
        id=f"{event.id}#from-{event.starts:%Y%m%dT%H%M%S}#{event.instance}",
        kind=CauseKind.SCHEDULED_CHANGE,
        at=now,
        deadline=event.starts,
        reason=f"{event.instance}: EC2 has scheduled {event.code} for {format_instant(event.starts)}",
        reboot=Reboot(by=RebootBy.EC2) if _waits(event, policy) else None,
    )
    record = ports.claims.claim(subject_of(instance, state.cluster, group=group.name if group else None), cause, now)
    if record.status is Status.CLOSED or event.starts - now > FAR_AHEAD:
        return []
    start(record, ports)
    return [event.instance]


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
        if not (cause.deadline in due or (cause.deadline is None and due)):
            yield cause


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


def drain_capacity_blocks(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Claim and start, one after the other. One GetItem where no block is near; EC2 is asked only about instances that
    are due.
    """
    sheet = ports.catalog.sheet(state.cluster, FactKind.CAPACITY_BLOCKS)
    blocks = blocks_of(sheet.content) if sheet is not None else {}
    due = {instance: block for instance, block in blocks.items() if _block_is_due(instance, block, state, ports.clock)}
    if not due:
        return
    known = ports.instances.describe(due)
    for name in sorted(due):
        instance = known.get(name)
        if instance is not None and not instance.ended:
            with result.isolate(name):
                result.restarted += _claim_of_block(instance, due[name], state, ports)


def _block_is_due(instance: str, block: CapacityBlock, state: ClusterState, clock: Clock) -> bool:
    """Return whether its drain should have begun, and no open record knows of that."""
    group = state.group_of_instance(instance)
    policy = state.interruption_policy_of(group)
    if group is None or policy is None:
        return False
    now = clock.now()
    listed = next((member for member in group.instances if member.id == instance), None)
    begins = block.drained_from(listed.type if listed is not None else "", policy.interruption.drain_block_before)
    record = known_or(state.records, {}).get(instance)
    return begins <= now < block.ends and not (record is not None and record.knows(f"{block.event_id}#{instance}"))


def _claim_of_block(instance: Instance, block: CapacityBlock, state: ClusterState, ports: Ports) -> list[str]:
    """Return the instance if its termination is under way now. Idempotent: the cause is named by block and end."""
    now = ports.clock.now()
    group = state.group_of_instance(instance.id)
    cause = Cause(
        id=f"{block.event_id}#{instance.id}",
        kind=CauseKind.CAPACITY_BLOCK,
        at=now,
        deadline=block.taken_at(instance.type),
        reason=f"{instance.id}: its Capacity Block {block.reservation} ends at {format_instant(block.ends)}",
    )
    record = ports.claims.claim(subject_of(instance, state.cluster, group=group.name if group else None), cause, now)
    if record.status is Status.CLOSED:
        return []
    start(record, ports)
    return [instance.id]
