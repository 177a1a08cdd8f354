"""Turn of a surplus: whether a termination that an offset alone requests may begin to drain its pods now.

Nothing urgent takes such a node, whatever gave the launch up: an upgrade, a disruption run, the end of a prescale, or a
termination that passed it on. So it drains within the limits that hold for old nodes, and serves until its turn comes
(docs/designs/capacity-ledger.md). The records of its group decide: those whose drain has begun come first, then those
claimed before. A claim is written seconds before its own first look here, and reads are consistent, so of two that
look at once exactly one begins. An upgrade counts each such record from its claim on (`upgrade/waves`)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil

from leeward.budgets.disruption_budgets import allowance_among, upgrade_budgets
from leeward.errors import ClusterUnreachableError, ThrottledError
from leeward.model.group import Group
from leeward.model.lifecycle import ENDING, role_of
from leeward.model.termination import VOLUNTARY, CauseKind, TerminationRecord
from leeward.policy.document import NodePolicy, Reason
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.ports.records import Upgrades
from leeward.termination.capacity_ledger import is_under_way, only_surplus
from leeward.termination.drain_plan import DrainPlan
from leeward.termination.eviction import plan_now
from leeward.termination.instance_state import InstanceState, find_node
from leeward.termination.run import Next, Run
from leeward.upgrade.record import cause_id
from leeward.upgrade.surge.sizes import parallelism

SHORTEST_PAUSE, LONGEST_PAUSE = 10, 300  # seconds between two looks
A_DRAIN = 15  # seconds: a look for about every second node in front, so that a long queue costs few calls
MOST_NAMED = 5
LATE = timedelta(minutes=10)  # beyond the time of a drain, for its last pods and the look of the next in the queue
EVER = datetime.min.replace(tzinfo=UTC)


def before_drain(run: Run, situation: InstanceState, ports: Ports) -> Run | None:
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
        plan = plan_now(node, situation, now, kubernetes, ports)
    except (ClusterUnreachableError, ThrottledError) as error:
        return replace(run, next=Next.WAIT, pause=SHORTEST_PAUSE, why=f"waiting for an answer: {error}"[:500])
    if blocked := _blocked(plan):
        return replace(
            run, next=Next.FAILED, why=f"another node offsets the launch, here pods are blocked: {blocked}"[:500]
        )
    return None if plan.drained else _wait(replace(run, node=node.name), situation, now, ports)


def _wait(run: Run, situation: InstanceState, now: datetime, ports: Ports) -> Run | None:
    """Return the pause until the nodes in front have drained; None where the limits allow one more. A wait in which no
    drain begins, and none can still end in its own time, is given up.
    """
    queue = _queue(situation, now, ports)
    awaited = queue.beyond_limits()
    if not awaited:
        return None
    names = ", ".join(sorted(one.instance for one in awaited)[:MOST_NAMED])
    if now > queue.ends(situation.policy.drain.timeout) + LATE:
        return replace(
            run, next=Next.FAILED, why=f"another node offsets the launch, {names} do not finish their drains"
        )
    why = f"as a surplus it drains within maxUnavailable and the budgets for Upgrade: after {names}"
    return replace(run, next=Next.WAIT, pause=queue.pause(), why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queue:
    """Terminations that a surplus looks at. `groups`: its own, and the policy's others where a budget counts them;
    `records`: of their members; `front`: those that count before it, also old nodes that an upgrade is about to claim.
    """

    record: TerminationRecord
    policy: NodePolicy
    groups: Mapping[str, Group]
    records: Collection[TerminationRecord]
    front: Sequence[TerminationRecord]
    now: datetime

    @property
    def most(self) -> int:
        """Number of the group's nodes that may drain at once. A share is of the size without the surplus."""
        name = self.record.subject.group or ""
        surplus = [one for one in self.records if one.subject.group == name and is_under_way(one) and only_surplus(one)]
        size = self.groups[name].desired if name in self.groups else 0
        return parallelism(self.policy.update, max(size - len(surplus), 1))

    def beyond_limits(self) -> list[TerminationRecord]:
        """Return the terminations beside which the limits allow no further one; none where they do."""
        mine = [one for one in self.front if one.subject.group == self.record.subject.group]
        if len(mine) >= self.most:
            return mine
        budgets, place = upgrade_budgets(self.policy), self.record.subject.zone
        nodes = [member.zone for group in self.groups.values() for member in group.instances]
        front = [one.subject.zone for one in self.front]
        for zone in (None, place):
            allowed = allowance_among(budgets, nodes, front, reason=Reason.UPGRADE, zone=zone, now=self.now)
            if allowed == 0 and (there := [one for one in self.front if zone in {None, one.subject.zone}]):
                return there
        return []

    def ends(self, timeout: timedelta) -> datetime:
        """Return when the last drain in front gives up, at the latest."""
        claimed = self.record.times.get("claimed", self.now)
        known = (one.times.get("until", one.times.get("draining", claimed) + timeout) for one in self.front)
        return max((claimed + timeout, *known))

    def pause(self) -> int:
        """Return the seconds until the next look: longer the more nodes are in front, and the longer none has begun."""
        begun = (one.times["draining"] for one in self.front if "draining" in one.times)
        quiet = self.now - max((self.record.times.get("claimed", self.now), *begun))
        least = max(SHORTEST_PAUSE, A_DRAIN * len(self.front) / self.most, quiet.total_seconds() / 4)
        return min(ceil(least), LONGEST_PAUSE)


def _queue(situation: InstanceState, now: datetime, ports: Ports) -> _Queue:
    record, policy = situation.record, situation.policy
    groups = _groups(record, policy, ports)
    records = ports.claims.read_all(member.id for group in groups.values() for member in group.instances)
    claims = [claim for group in groups.values() for claim in _requested(group, record, records, ports.upgrades)]
    requested = {one.instance for one in claims}
    front = [one for one in records.values() if one.instance not in requested and comes_before(one, record)]
    return _Queue(
        record=record,
        policy=policy,
        groups=groups,
        records=tuple(records.values()),
        front=(*front, *claims),
        now=now,
    )


def comes_before(other: TerminationRecord, record: TerminationRecord) -> bool:
    """Return whether another termination counts before this surplus: its drain is under way, an upgrade or a run has
    requested it, or it is a surplus that was claimed before.
    """
    if other.instance == record.instance or not is_under_way(other):
        return False
    if "draining" in other.times or (not only_surplus(other) and other.has(CauseKind.UPGRADE, *VOLUNTARY)):
        return True
    mine, others = ((one.times.get("claimed", EVER), one.instance) for one in (record, other))
    return only_surplus(other) and others < mine


def _requested(
    group: Group, record: TerminationRecord, records: Mapping[str, TerminationRecord], upgrades: Upgrades
) -> list[TerminationRecord]:
    """Return records, as they will be, of old nodes that the group's upgrade has recorded and not claimed yet."""
    upgrade = upgrades.read(group.name)
    if upgrade is None or upgrade.ended is not None:
        return []
    return [
        replace(record, times={}, subject=replace(record.subject, instance=one.id, group=group.name, zone=one.zone))
        for one in group.instances
        if one.id in upgrade.under_way
        and (one.id not in records or not records[one.id].knows(cause_id(upgrade, one.id)))
    ]


def _groups(record: TerminationRecord, policy: NodePolicy, ports: Ports) -> dict[str, Group]:
    """Return the group, and the policy's others in the cluster where a budget names the reason Upgrade."""
    name, cluster = record.subject.group or "", record.subject.cluster
    if not upgrade_budgets(policy):
        return dict(ports.groups.describe([name]))
    chain = ports.clusters.policies(cluster).policies
    groups = (*ports.groups.describe([name]).values(), *ports.groups.of_clusters([cluster]))
    known = {group.name: (group, policy_for(chain, group.name, group.tags)) for group in groups}
    return {
        one: group
        for one, (group, selected) in known.items()
        if one == name or (selected is not None and selected.name == policy.name)
    }


def _blocked(plan: DrainPlan) -> str:
    """Return the obstacles to a drain that is not required: a drain that cannot finish at once does not begin."""
    held = [f"{going.pod.key}: {going.refusal.sentence}" for going in plan.evict if going.refusal]
    return "; ".join(held + [f"{refused.pod.key}: {refused.reason}" for refused in plan.refuse])
