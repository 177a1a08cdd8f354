"""Keeping lifecycle hooks of ours waiting while a termination is under way, or rests after a failure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from leeward.ports import Ports
from leeward.termination import verdict
from leeward.termination.situation import Situation

AT_EVERY_CHANCE = timedelta(minutes=2)  # before a heartbeat is due: two sweeps may fail


def beat(situation: Situation, ports: Ports, ahead: timedelta = timedelta()) -> Mapping[str, datetime]:
    """Heartbeat the hooks of ours that hold the instance and want one within `ahead`; answers each hook's last
    heartbeat.
    """
    record, now = situation.record, ports.clock.now()
    last = dict(record.heartbeats)
    if not situation.held or situation.group is None:
        return last
    since = min((cause.at for cause in record.causes), default=now)
    policy = situation.policy.interruption.heartbeat
    for hook in verdict.heartbeats_due(situation.our_hooks, last, policy, since, now + ahead):
        if ports.groups.heartbeat(group=situation.group.name, hook=hook.name, instance=record.instance):
            last[hook.name] = now
    if last != record.heartbeats:
        ports.claims.note(record.instance, heartbeats=last)
    return last
