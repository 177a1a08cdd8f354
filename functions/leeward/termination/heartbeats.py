"""Keeping lifecycle hooks of ours waiting while a termination is under way, or rests after a failure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from leeward.model.group import LifecycleHook
from leeward.model.termination import TerminationRecord
from leeward.policy.document import NodePolicy
from leeward.ports import Ports
from leeward.termination import verdict
from leeward.termination.situation import UNSELECTED, Situation

AT_EVERY_CHANCE = timedelta(minutes=2)  # before a heartbeat is due: two sweeps may fail


def beat(situation: Situation, ports: Ports, ahead: timedelta = timedelta()) -> Mapping[str, datetime]:
    """Heartbeat the hooks of ours that hold the instance and want one within `ahead`; answers each hook's last
    heartbeat.
    """
    record = situation.record
    if not situation.held or situation.group is None:
        return dict(record.heartbeats)
    return keep_waiting(record, situation.group.name, situation.our_hooks, situation.policy, ports, ahead)


def keep_waiting(
    record: TerminationRecord,
    group: str,
    hooks: Iterable[LifecycleHook],
    policy: NodePolicy | None,
    ports: Ports,
    ahead: timedelta,
) -> Mapping[str, datetime]:
    """The same for one that is known to be held, by these hooks; without a policy the defaults hold."""
    last, now = dict(record.heartbeats), ports.clock.now()
    since = min((cause.at for cause in record.causes), default=now)
    interval = (policy or UNSELECTED).interruption.heartbeat
    for hook in verdict.heartbeats_due(hooks, last, interval, since, now + ahead):
        if ports.groups.heartbeat(group=group, hook=hook.name, instance=record.instance):
            last[hook.name] = now
    if last != record.heartbeats:
        ports.claims.note(record.instance, heartbeats=last)
    return last
