"""Turn of a surplus: whether a termination that an offset alone requests may begin to drain its pods now.

Nothing urgent takes such a node, whatever gave the launch up: an upgrade, a disruption run, or a termination that
passed it on. So it drains within the limits that hold for old nodes, and serves until its turn comes
(docs/designs/capacity-ledger.md). The records of its group decide: those whose drain has begun come first, then those
claimed before. A claim is written seconds before its own first look here, and reads are consistent, so of two that look
at once exactly one begins. An upgrade counts each such record from its claim on (`upgrade/waves`). The nodes of an open
disruption run come first: a run gives way to drains that have begun, and waits for none, so neither waits for the
other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil

from leeward.budgets.disruption_budgets import allowance_among, upgrade_budgets
from leeward.disruption.record import DisruptionRecord
from leeward.disruption.record import cause_id as run_cause
from leeward.errors import ClusterUnreachableError, ThrottledError
from leeward.model.capacity import SurgeOwner
from leeward.model.group import Group, GroupInstance
from leeward.model.lifecycle import ENDING, STAYING, role_of
from leeward.model.termination import VOLUNTARY, CauseKind, Status, TerminationRecord
from leeward.policy.document import DisruptionReason, NodePolicy
from leeward.ports import Ports
from leeward.ports.kubernetes import Clusters
from leeward.termination.capacity_ledger import is_under_way, only_surplus, to_offset
from leeward.termination.drain_plan import DrainPlan
from leeward.termination.eviction import plan_now
from leeward.termination.requests import read_apart
from leeward.termination.run import Next, Run
from leeward.termination.situation import DrainContext, Situation, find_node
from leeward.upgrade.record import UpgradeRecord, cause_id
from leeward.upgrade.surge.sizes import parallelism

SHORTEST_PAUSE, LONGEST_PAUSE = 10, 300  # seconds between two looks
A_DRAIN = 15  # seconds: a look for about every second node in front, so that a long queue costs few calls
MOST_NAMED = 5
LATE = timedelta(minutes=10)  # beyond the time of a drain, for its last pods and the look of the next in the queue
EVER = datetime.min.replace(tzinfo=UTC)


def before_drain(run: Run, situation: Situation, ports: Ports) -> Run | None:
    """Return the step that comes instead of the drain: a pause until its turn, or failed where its pods, or the nodes
    in front of it, are blocked: another node then offsets the launch. None: the drain may begin. A node without pods
    that have to leave waits for nothing, nor does one whose drain has begun or that its group ends already.
    """
    record = situation.record
    if not only_surplus(record) or {"draining", "terminating"} & record.times.keys():
        return None
    if role_of(situation.lifecycle) in ENDING:
        return None
    now, kubernetes = ports.clock.now(), ports.clusters.kubernetes(record.subject.cluster)
    try:
        node = find_node(record, kubernetes)
        if node is None or node.tainted:
            return None
        plan = plan_now(node, DrainContext(situation=situation, started=now, ports=ports))
        if blocked := _blocked(plan):
            why = f"another node offsets the launch, here pods are blocked: {blocked}"[:500]
            return replace(run, next=Next.FAILED, why=why)
        return None if plan.drained else _wait(replace(run, node=node.name), situation, now, ports)
    except (ClusterUnreachableError, ThrottledError) as error:
        return replace(run, next=Next.WAIT, pause=SHORTEST_PAUSE, why=f"waiting for an answer: {error}"[:500])


def _wait(run: Run, situation: Situation, now: datetime, ports: Ports) -> Run | None:
    """Return the pause until the nodes in front have drained; None where the limits allow one more. A wait in which no
    drain begins, and none can still end in its own time, is given up.
    """
    queue = _queue(situation, now, ports)
    awaited = queue.beyond_limits()
    if not awaited:
        return None
    names = ", ".join(sorted(record.instance for record in awaited)[:MOST_NAMED])
    if now > queue.ends(situation.policy.drain.timeout) + LATE:
        return replace(
            run, next=Next.FAILED, why=f"another node offsets the launch, {names} do not finish their drains"
        )
    why = f"as a surplus it drains within maxUnavailable and the budgets for Upgrade: after {names}"
    return replace(run, next=Next.WAIT, pause=queue.pause(), why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queue:
    """Terminations that a surplus looks at."""

    record: TerminationRecord
    policy: NodePolicy
    groups: Mapping[str, Group]  # its own, and the policy's others where a budget counts them
    size: int  # of its own, as the owner wants it
    front: Sequence[TerminationRecord]  # count before it, also nodes that an upgrade or a run is about to claim
    now: datetime

    @property
    def most(self) -> int:
        """Number of the group's nodes that may drain at once. A share is of the size without the surplus."""
        return parallelism(self.policy.update, max(self.size, 1))

    def beyond_limits(self) -> list[TerminationRecord]:
        """Return the terminations beside which the limits allow no further one; none where they do."""
        mine = [other for other in self.front if other.subject.group == self.record.subject.group]
        if len(mine) >= self.most:
            return mine
        budgets, place = upgrade_budgets(self.policy), self.record.subject.zone
        nodes = [member.zone for group in self.groups.values() for member in group.instances]
        front = [other.subject.zone for other in self.front]
        for zone in (None, place):
            allowed = allowance_among(budgets, nodes, front, reason=DisruptionReason.UPGRADE, zone=zone, now=self.now)
            if allowed == 0 and (there := [other for other in self.front if zone in {None, other.subject.zone}]):
                return there
        return []

    def ends(self, timeout: timedelta) -> datetime:
        """Return when the last drain in front gives up, at the latest."""
        claimed = self.record.times.get("claimed", self.now)
        known = (other.times.get("until", other.times.get("draining", claimed) + timeout) for other in self.front)
        return max((claimed + timeout, *known))

    def pause(self) -> int:
        """Return the seconds until the next look: longer the more nodes are in front, and the longer none has begun."""
        begun = (other.times["draining"] for other in self.front if "draining" in other.times)
        quiet = self.now - max((self.record.times.get("claimed", self.now), *begun))
        least = max(SHORTEST_PAUSE, A_DRAIN * len(self.front) / self.most, quiet.total_seconds() / 4)
        return min(ceil(least), LONGEST_PAUSE)


def _queue(situation: Situation, now: datetime, ports: Ports) -> _Queue:
    record, policy = situation.record, situation.policy
    groups = _groups(record, policy, ports)
    read = read_apart((member.id for group in groups.values() for member in group.instances), ports.claims)
    records = read.read
    upgrades = {name: ports.upgrades.read(name) for name in groups}
    run = ports.disruptions.read(record.subject.cluster)
    run = run if run is not None and run.open else None
    coming = {*read.unreadable, *(_of_run(run, records, ports.clusters) if run is not None else ())}
    for upgrade in upgrades.values():
        coming |= _requested(upgrade, records)
    members = [(group, member) for group in groups.values() for member in group.instances]
    claims = [
        _as_claimed(group, member, record) for group, member in members if member.id in coming - {record.instance}
    ]
    front = [other for other in records.values() if other.instance not in coming and comes_before(other, record)]
    name = record.subject.group or ""
    size = _wanted_size(groups[name], upgrades[name], run, records) if name in groups else 0
    return _Queue(record=record, policy=policy, groups=groups, size=size, front=(*front, *claims), now=now)


def _wanted_size(
    group: Group,
    upgrade: UpgradeRecord | None,
    run: DisruptionRecord | None,
    records: Mapping[str, TerminationRecord],
) -> int:
    """Return the group's size as its owner wants it: without launches of ours that no decrement has offset yet, whether
    their offset is requested or not. A drained node counts until its group parts with it.
    """
    if upgrade is not None and upgrade.ended is None:
        return upgrade.desired
    staying = (
        records[member.id]
        for member in group.instances
        if member.id in records and role_of(member.lifecycle) in STAYING
    )
    entries = (
        entry for termination in staying if termination.status is Status.OPEN for entry in to_offset(termination)
    )
    surplus = {entry.instance for entry in entries if entry.owner is not SurgeOwner.DISRUPTION}  # those name old nodes
    ahead = run.launched if run is not None else {}
    return group.desired - len(surplus | {new for new, node in ahead.items() if node.group == group.name})


def comes_before(other: TerminationRecord, record: TerminationRecord) -> bool:
    """Return whether another termination counts before this surplus: its drain is under way, an upgrade or a run has
    requested it, or it is a surplus that was claimed before.
    """
    if other.instance == record.instance or not is_under_way(other):
        return False
    if "draining" in other.times or (not only_surplus(other) and other.has(CauseKind.UPGRADE, *VOLUNTARY)):
        return True
    mine, others = ((each.times.get("claimed", EVER), each.instance) for each in (record, other))
    return only_surplus(other) and others < mine


def _requested(upgrade: UpgradeRecord | None, records: Mapping[str, TerminationRecord]) -> set[str]:
    """Return the old nodes that the group's upgrade has recorded and not claimed yet."""
    if upgrade is None or upgrade.ended is not None:
        return set()
    return {old for old in upgrade.under_way if old not in records or not records[old].knows(cause_id(upgrade, old))}


def _of_run(run: DisruptionRecord, records: Mapping[str, TerminationRecord], clusters: Clusters) -> set[str]:
    """Return the nodes of an open run that no termination request of it tells of: those to be terminated, from the
    run's claim on, and those that stay, until their taint is removed.
    """
    going = {node for node in run.under_way if node not in records or not records[node].knows(run_cause(run, node))}
    if not run.staying:
        return going
    kubernetes = clusters.kubernetes(run.cluster)
    nodes = (kubernetes.node(name) for name in run.staying)
    return going | {node.instance_id for node in nodes if node is not None and node.tainted}


def _as_claimed(group: Group, member: GroupInstance, record: TerminationRecord) -> TerminationRecord:
    """Return the record of a termination as it will be."""
    subject = replace(record.subject, instance=member.id, group=group.name, zone=member.zone)
    return replace(record, times={}, subject=subject)


def _groups(record: TerminationRecord, policy: NodePolicy, ports: Ports) -> dict[str, Group]:
    """Return the group, and the policy's others in the cluster where a budget names the reason Upgrade."""
    name, cluster = record.subject.group or "", record.subject.cluster
    if not upgrade_budgets(policy):
        return dict(ports.groups.describe([name]))
    policies = ports.clusters.policies(cluster)
    groups = (*ports.groups.describe([name]).values(), *ports.groups.of_clusters([cluster]))
    known = {group.name: (group, policies.policy_of(group)) for group in groups}
    return {
        one: group
        for one, (group, selected) in known.items()
        if one == name or (selected is not None and selected.name == policy.name)
    }


def _blocked(plan: DrainPlan) -> str:
    """Return the obstacles to a drain that is not required: a drain that cannot finish at once does not begin."""
    held = [f"{going.pod.key}: {going.refusal.sentence}" for going in plan.evict if going.refusal]
    return "; ".join(held + [f"{refused.pod.key}: {refused.reason}" for refused in plan.refuse])
