"""The minute sweeper: finishes what no Catch can finish.

Top-level time-outs, an operator's stop, data limits and runtime errors go uncaught, events are best effort, and a
function can die between two calls. So, once a minute and per group: executions that should run but do not are started
again, hooks of ours that nobody holds are claimed or answered, marks without a record come off, new nodes get the label
of their subnet. Reading first and acting only on what is still true makes any number of sweeps the same as one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from leeward.disruption.budgets import allowance, tightest
from leeward.errors import LeewardError
from leeward.model import keys
from leeward.model.group import LAUNCHING, TERMINATING, Group, GroupInstance, HookResult, LifecycleHook
from leeward.model.instance import Instance, cluster_of
from leeward.model.node import Node
from leeward.model.termination import Cause, CauseKind, Status, Subject, TerminationRecord
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.policy.selection import is_ours, policy_for
from leeward.ports import Ports
from leeward.sync.labels import label_nodes
from leeward.termination import verdict
from leeward.termination.draining import mark
from leeward.termination.heartbeats import AT_EVERY_CHANCE, beat
from leeward.termination.situation import survey
from leeward.termination.starting import start
from leeward.upgrade.sweep import sweep_upgrades

LAUNCH_WAIT = "Pending:Wait"
TERMINATE_WAIT = "Terminating:Wait"
SECOND_SIGHT = timedelta(minutes=10)


@dataclass(slots=True)
class Found:
    """What one sweep mended, by instance or node; `errors` names what it could not look at."""

    restarted: list[str] = field(default_factory=list)
    claimed: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    paced: list[str] = field(default_factory=list)
    labelled: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """For the log."""
        return {name: getattr(self, name) for name in self.__slots__}


def sweep_once(ports: Ports) -> Found:
    """One sweep over all clusters. A part that fails is named in `errors` and does not stop the others."""
    found = Found()
    records = _open_records(ports, found)
    for record in records.values():
        with _apart(record.instance, found):
            _revive(record, ports, found)
    for cluster in ports.clusters.names():
        with _apart(cluster, found):
            _sweep_cluster(cluster, records, ports, found)
    return found


@contextmanager
def _apart(what: str, found: Found) -> Iterator[None]:
    """Note what goes wrong with one thing, so that the others are still looked at."""
    try:
        yield
    except LeewardError as error:
        found.errors.append(f"{what}: {type(error).__name__}: {error}")


def _open_records(ports: Ports, found: Found) -> Mapping[str, TerminationRecord]:
    """By instance. Each minute begins with another one, so that a sweep that dies early leaves no record behind for
    good.
    """
    names = ports.claims.open_instances()
    first = ports.clock.now().minute % len(names) if names else 0
    records: dict[str, TerminationRecord] = {}
    for instance in (*names[first:], *names[:first]):
        with _apart(instance, found):
            record = ports.claims.read(instance)
            if record is not None and record.status is Status.OPEN:
                records[instance] = record
    return records


def _revive(record: TerminationRecord, ports: Ports, found: Found) -> None:
    """Start the execution of an open record again, unless it runs, rests after a failure, or waits for a budget."""
    if ports.executions.running(record.instance, record.attempt):
        return
    beat(survey(record, ports), ports, AT_EVERY_CHANCE)
    now = ports.clock.now()
    if record.times.get("retry", now) > now:
        return
    if _paced(record, now) and not _budget_left(record, ports, found, now):
        found.paced.append(record.instance)
        return
    start(record, ports)
    found.restarted.append(record.instance)


def _paced(record: TerminationRecord, now: datetime) -> bool:
    only_far = all(cause.kind is CauseKind.SCHEDULED_CHANGE for cause in record.causes)
    return only_far and record.deadline is not None and record.deadline - now > verdict.FAR_AHEAD


def _budget_left(record: TerminationRecord, ports: Ports, found: Found, now: datetime) -> bool:
    """Whether the budgets of the node's policy, and those of its zone, allow one more; if so its node is marked at
    once, so that the next one is counted against it.
    """
    situation = survey(record, ports)
    if situation.group is None:
        return True
    members = {member.id: member.zone for member in situation.group.instances}
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    nodes = [node for node in kubernetes.nodes() if node.instance_id in members]
    busy = {n.instance_id for n in nodes if n.marked or n.deleting or not n.ready} | set(found.restarted)
    left = tightest(
        allowance(
            situation.policy.disruption.budgets,
            reason=None,
            zone=zone,
            total=sum(zone in {None, members[node.instance_id]} for node in nodes),
            disrupting=sum(zone in {None, members.get(name)} for name in busy & members.keys()),
            now=now,
        )
        for zone in (None, record.subject.zone)
    )
    if left is not None and left <= 0:
        return False
    for node in nodes:
        if node.instance_id == record.instance:
            mark(node, record, kubernetes, ports)
    return True


def _sweep_cluster(cluster: str, records: Mapping[str, TerminationRecord], ports: Ports, found: Found) -> None:
    """Hooks first and without the nodes where the API server is away: a hook must not time out for want of a Node."""
    policies = ports.clusters.policies(cluster)
    groups = [group for group in ports.groups.of_clusters([cluster]) if _selected(group, policies)]
    nodes: dict[str, Node] = {}
    with _apart(cluster, found):
        nodes = {node.instance_id: node for node in ports.clusters.kubernetes(cluster).nodes()}
    waiting = [(group, member) for group in groups for member in group.instances if member.lifecycle.endswith(":Wait")]
    for group, member in waiting:
        with _apart(member.id, found):
            _settle_hooks(cluster, group, member, policies, nodes.get(member.id), ports, found)
    with _apart(f"{cluster}: upgrades", found):
        found.restored += sweep_upgrades(groups, ports)
    with _apart(f"{cluster}: labels", found):
        found.labelled += label_nodes(cluster, groups, nodes.values(), ports)
    _unmark_stale([node for node in nodes.values() if node.marked], records, ports, found, cluster)


def _selected(group: Group, policies: ClusterPolicies) -> NodePolicy | None:
    return policy_for(policies.policies, group.name, group.tags)


def _settle_hooks(
    cluster: str,
    group: Group,
    member: GroupInstance,
    policies: ClusterPolicies,
    node: Node | None,
    ports: Ports,
    found: Found,
) -> None:
    policy = _selected(group, policies)
    ours = [hook for hook in ports.groups.hooks(group.name) if is_ours(hook, policy, ports.queue_arns)]
    if member.lifecycle == LAUNCH_WAIT:
        _settle_launch([hook for hook in ours if hook.transition == LAUNCHING], group, member, node, ports, found)
    if member.lifecycle == TERMINATE_WAIT:
        hooks = [hook for hook in ours if hook.transition == TERMINATING]
        _adopt(cluster, hooks, group, member, node, ports, found)


def _settle_launch(
    hooks: Sequence[LifecycleHook],
    group: Group,
    member: GroupInstance,
    node: Node | None,
    ports: Ports,
    found: Found,
) -> None:
    """A launch hook is answered once the node is Ready, and kept waiting until then."""
    for hook in hooks:
        if node is not None and node.ready:
            ports.groups.complete(group=group.name, hook=hook.name, instance=member.id, result=HookResult.CONTINUE)
            found.answered.append(member.id)
        else:
            ports.groups.heartbeat(group=group.name, hook=hook.name, instance=member.id)


def _adopt(
    cluster: str,
    hooks: Sequence[LifecycleHook],
    group: Group,
    member: GroupInstance,
    node: Node | None,
    ports: Ports,
    found: Found,
) -> None:
    """An instance held by a hook of ours without an open record: its event was lost. Claim and start, or answer where
    its termination was already brought to an end. Nobody knows how long the hook has waited: it is heartbeaten first,
    so that its time runs from now on, as the claim says.
    """
    record = ports.claims.read(member.id)
    if not hooks or (record is not None and record.status is Status.OPEN):
        return
    instance = ports.instances.describe([member.id]).get(member.id)
    if instance is not None:
        for hook in hooks:
            ports.groups.heartbeat(group=group.name, hook=hook.name, instance=member.id)
        now = ports.clock.now()
        record = ports.claims.claim(
            _subject(cluster, group, instance, node), _orphan_cause(hooks[0], member.id, now), now
        )
    if record is not None and record.status is Status.OPEN:
        start(record, ports)
        found.claimed.append(member.id)
        return
    for hook in hooks:
        ports.groups.complete(group=group.name, hook=hook.name, instance=member.id, result=HookResult.CONTINUE)
    found.answered.append(member.id)


def _orphan_cause(hook: LifecycleHook, instance: str, now: datetime) -> Cause:
    return Cause(
        id=f"orphan#{hook.group}#{hook.name}#{instance}",
        kind=CauseKind.ASG_TERMINATE,
        at=now,
        deadline=now + timedelta(seconds=hook.heartbeat_timeout),
        reason="found by the sweeper waiting in a hook of ours",
        hook=hook.name,
        hook_ours=True,
    )


def _subject(cluster: str, group: Group, instance: Instance, node: Node | None) -> Subject:
    return Subject(
        instance=instance.id,
        cluster=cluster_of(instance.tags, [cluster]) or cluster,
        group=group.name,
        zone=instance.zone,
        subnet=instance.subnet,
        instance_type=instance.type,
        capacity_type=instance.capacity_type,
        node=node.name if node else None,
    )


def _unmark_stale(
    marked: Iterable[Node], records: Mapping[str, TerminationRecord], ports: Ports, found: Found, cluster: str
) -> None:
    """Take our mark off nodes that nobody is terminating, at second sight: fn interruption marks before it claims."""
    for node in _unclaimed(marked, records, ports):
        now = ports.clock.now()
        if ports.claims.once(f"stale-mark#{node.uid}", SECOND_SIGHT, now):
            continue
        ports.clusters.kubernetes(cluster).unmark(node, keys.DISRUPTED_TAINT)
        found.unmarked.append(node.name)


def _unclaimed(marked: Iterable[Node], records: Mapping[str, TerminationRecord], ports: Ports) -> Iterator[Node]:
    candidates = [node for node in marked if node.instance_id not in records]
    instances = ports.instances.describe([node.instance_id for node in candidates]) if candidates else {}
    for node in candidates:
        instance, record = instances.get(node.instance_id), ports.claims.read(node.instance_id)
        alive = instance is not None and instance.state == "running"
        if alive and (record is None or record.status is Status.CLOSED):
            yield node
