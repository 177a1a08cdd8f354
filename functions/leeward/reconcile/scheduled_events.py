"""Scheduled events of EC2: their instances are claimed as by AWS Health's message, which may be lost.

EC2 is asked once a minute while it lists any event, and in each third minute while it lists none: the message comes at
once, and a date is hours or days ahead. A cause that Health's message has brought has the same date, and is
not added again. A reboot that the policy waits for (`interruption.systemReboot: wait`) is claimed shortly before its
date: the node is drained, stays, and returns to service after the reboot."""

from leeward.cluster.state import ClusterState
from leeward.model.instance import Instance
from leeward.model.instance_status import ScheduledEvent
from leeward.model.termination import Cause, CauseKind, Reboot, RebootBy, Status, TerminationRecord, drain_begins
from leeward.model.times import format_instant
from leeward.policy.document import NodePolicy
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.reconcile.records import read_records
from leeward.reconcile.result import ReconcileResult
from leeward.reconcile.withdrawn import Listed, drop_withdrawn_maintenance
from leeward.termination.decisions import FAR_AHEAD
from leeward.termination.requests import start, subject_of


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
