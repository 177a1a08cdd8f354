"""Observation of a cluster for a run: the snapshot, with the state that only the table holds.

Decides nothing. Groups with an open upgrade are named, so that none of their nodes is a candidate and none of them
launches; old nodes whose termination the upgrade has requested count against budgets before they carry a taint.

Groups whose policy has an alarm that holds are left alone. Alarms are read with the observation that precedes each
decision: before the plan, before the nodes are tainted, and before their terminations are requested. A run whose
commands they hold is rolled back as for any other reason, and the cooldown of its groups follows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from leeward.cluster.facets import Known
from leeward.disruption.record import LONGEST_COOLDOWN, DisruptionRecord
from leeward.model.group import Group
from leeward.model.node import Node, disruption_taint, untainted
from leeward.model.planning_memory import RememberedNode
from leeward.node_template.observed import kept, key_of
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.monitoring import Alarms
from leeward.ports.records import Upgrades
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.gather import gather
from leeward.workflow.alarms import read_each


def observe(cluster: str, ports: Ports, record: DisruptionRecord | None) -> ClusterSnapshot:
    """Return the current snapshot. Raises the errors of the ports: a run without an observation does nothing."""
    seen = record.seen if record is not None else {}
    snapshot = with_records(gather(ports, cluster, ports.clock.now(), seen=seen), ports.upgrades, record)
    return with_alarms(snapshot, ports.alarms)  # last: the reading is the youngest part


def with_records(snapshot: ClusterSnapshot, upgrades: Upgrades, record: DisruptionRecord | None) -> ClusterSnapshot:
    """Return the snapshot with upgrades, the last run of each group and what runs remember. Raises the errors of the
    table.
    """
    blocked, terminating = _upgrades(
        (name for name, group in snapshot.groups.items() if snapshot.policy_of(group)), upgrades
    )
    cooldowns = record.cooldowns if record is not None else {}
    failed = record.failed if record is not None else {}
    recent = {inputs: one for inputs, one in failed.items() if snapshot.now - one.at < LONGEST_COOLDOWN}
    under_way = (_open_run(record),) if record is not None and record.open else ()
    return replace(
        snapshot,
        last_disruptions=cooldowns,
        wanted_launches=record.wanted if record is not None else {},
        failed_commands=recent,
        blocked_groups={**blocked, **_counting_units(snapshot.selected)},
        terminating=terminating,
        warnings=(*snapshot.warnings, *under_way),
    )


def seen_nodes(snapshot: ClusterSnapshot) -> dict[str, RememberedNode]:
    """Return what nodes of each group and type show, or showed while there were any, for the runs to come."""
    return kept(
        {
            key_of(group, name): (observed, launchable.launches.get(name))
            for group, launchable in snapshot.launchables.items()
            for name, observed in launchable.observed.items()
        }
    )


def _open_run(record: DisruptionRecord) -> str:
    """Describe the open run, as a warning for people."""
    requested = "requested" if record.requested else "not requested yet"
    return (
        f"run {record.number} is under way (execution {record.execution}): {record.summary}; "
        f"terminations are {requested}"
    )


def _upgrades(groups: Iterable[str], upgrades: Upgrades) -> tuple[dict[str, str], frozenset[str]]:
    """Return (group -> why none of its nodes may be disrupted, instances with a requested termination): one read of
    the table for each selected group.
    """
    blocked: dict[str, str] = {}
    terminating: set[str] = set()
    for group in groups:
        record = upgrades.read(group)
        if record is None:
            continue
        terminating |= record.under_way.keys()
        if record.ended is None:
            blocked[group] = f"its group {group} is being upgraded"
        elif record.ahead or record.orders:
            blocked[group] = (
                f"an upgrade of its group {group} has failed and is not settled: start it again, or abort it"
            )
    return blocked, frozenset(terminating)


def _counting_units(groups: Iterable[Group]) -> dict[str, str]:
    """Return the groups whose sizes are no instance counts: a launch ahead and the decrement after it do not balance,
    and neither MinSize nor MaxSize says how many nodes may leave or come.
    """
    return {
        group.name: f"its group {group.name} is not disrupted: {group.capacity_units} (CapacityUnits)"
        for group in groups
        if group.capacity_units
    }


def without_own_taints(snapshot: ClusterSnapshot, record: DisruptionRecord, deployment: str) -> ClusterSnapshot:
    """Return the snapshot as it would be without the run: its nodes are untainted, so that they can be validated
    again. The specs keep the taint: no other pod is to land there.
    """
    claimed = record.nodes

    def before(node: Node) -> Node:
        mine = claimed.get(node.name) == node.instance_id and node.instance_id not in snapshot.claimed
        return untainted(node, disruption_taint(deployment)) if mine and node.tainted else node

    return replace(snapshot, node_list=Known(tuple(before(node) for node in snapshot.nodes)))


def for_seconds(seconds: float, clock: Clock) -> Callable[[], bool]:
    """Return a function that says whether there is time for another try; it is called before each."""
    end = clock.now() + timedelta(seconds=seconds)
    return lambda: clock.now() < end


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
