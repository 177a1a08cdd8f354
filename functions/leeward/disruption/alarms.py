"""Alarms that guard disruption: groups whose policy has an alarm that holds are left alone.

They are read with the observation that precedes each decision: before the plan, before the nodes are tainted, and
before their terminations are requested. A run whose commands they hold is rolled back as for any other reason, and the
cooldown of its groups follows."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.ports.monitoring import Alarms
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.workflow.alarms import read_each


def alarm_names(snapshot: ClusterSnapshot) -> dict[str, tuple[str, ...]]:
    """Return the alarms of `disruption.alarms` by group, of the groups whose policy names any."""
    policies = {name: snapshot.policy_of(group) for name, group in snapshot.groups.items()}
    return {
        name: policy.disruption.alarms
        for name, policy in policies.items()
        if policy is not None and policy.disruption.alarms
    }


def with_alarms(snapshot: ClusterSnapshot, alarms: Alarms) -> ClusterSnapshot:
    """Return the snapshot in which the groups held by an alarm are blocked, with the reason. One read for all of them,
    none where no policy names an alarm. Raises nothing.
    """
    names = alarm_names(snapshot)
    readings = read_each(names, alarms)
    held: Mapping[str, str] = {
        group: f"disruption of its group {group} is held: {reading.holds}"
        for group, reading in readings.items()
        if reading.holds
    }
    return replace(snapshot, blocked_groups={**held, **snapshot.blocked_groups}) if held else snapshot
