"""Keeping lifecycle hooks of ours waiting while a termination is under way, or rests after a failure."""

from collections.abc import Mapping
from datetime import datetime

from leeward.ports import Ports
from leeward.termination import verdict
from leeward.termination.situation import Situation


def beat(situation: Situation, ports: Ports) -> Mapping[str, datetime]:
    """Heartbeat the hooks of ours that hold the instance and want one; answers each hook's last heartbeat."""
    record, now = situation.record, ports.clock.now()
    last = dict(record.heartbeats)
    if not situation.held or situation.group is None:
        return last
    since = min((cause.at for cause in record.causes), default=now)
    for hook in verdict.heartbeats_due(situation.our_hooks, last, situation.policy.interruption.heartbeat, since, now):
        if ports.groups.heartbeat(group=situation.group.name, hook=hook.name, instance=record.instance):
            last[hook.name] = now
    if last != record.heartbeats:
        ports.claims.note(record.instance, heartbeats=last)
    return last
