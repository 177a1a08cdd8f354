"""Heartbeats that keep lifecycle hooks of ours waiting while a termination is under way, or pauses after a failure."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from typing import Any

from leeward.errors import LeewardError, RetryableError
from leeward.model.group import LifecycleHook
from leeward.model.termination import TerminationRecord
from leeward.policy.document import NodePolicy
from leeward.ports import Ports
from leeward.termination import heartbeat_times
from leeward.termination.freshness import Need
from leeward.termination.instance_state import UNSELECTED, InstanceState, read, survey
from leeward.termination.run import Run
from leeward.workflow.steps import Step

AT_EVERY_CHANCE = timedelta(minutes=2)  # before a heartbeat is due: two passes of the minute reconciler may fail
TWO_PASSES = timedelta(minutes=2)  # of the minute reconciler: the next one, which may fail, and the one after it


def record_heartbeat(situation: InstanceState, ports: Ports, ahead: timedelta = timedelta()) -> TerminationRecord:
    """Heartbeat the hooks of ours that hold the instance and need one within `ahead`; return the record as it is then.

    A repeat finds the heartbeat in the record, and sends none before the next is due.
    """
    record = situation.record
    if not situation.held or situation.group is None:
        return record
    return keep_waiting(record, situation.group.name, situation.our_hooks, situation.policy, ports, ahead)


def keep_waiting(
    record: TerminationRecord,
    group: str,
    hooks: Iterable[LifecycleHook],
    policy: NodePolicy | None,
    ports: Ports,
    ahead: timedelta,
    unattended: timedelta = heartbeat_times.UNATTENDED,
) -> TerminationRecord:
    """Heartbeat these hooks of an instance that is known to be held; without a policy the defaults apply. `ahead`,
    `unattended`: as `heartbeat_times.heartbeats_due` takes them.
    """
    now = ports.clock.now()
    settings = (policy or UNSELECTED).interruption.heartbeat
    due = heartbeat_times.heartbeats_due(hooks, record, settings, now, ahead, unattended)
    sent = {
        hook.name: now for hook in due if ports.groups.heartbeat(group=group, hook=hook.name, instance=record.instance)
    }
    held = {"held": now} if sent and "held" not in record.times else {}
    if sent:
        ports.claims.note(record.instance, times=held, heartbeats=sent)
    return replace(record, times={**held, **record.times}, heartbeats={**record.heartbeats, **sent})


def heartbeats_kept(step: Step[Run]) -> Step[Run]:
    """Return the step with a heartbeat of the hooks that hold its instance before an error that the state machine
    retries: retries last for minutes, longer than a short hook waits.
    """

    @wraps(step)
    def kept(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
        try:
            return step(run, call, ports)
        except RetryableError:
            with suppress(LeewardError):
                record_heartbeat(survey(read(run.instance, ports.claims), ports, Need.WORK), ports)
            raise

    return kept
