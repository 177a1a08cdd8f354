"""Observation of the steps of an upgrade: the group, its nodes and pods, joined once, and records made from it.

Decides nothing; a step observes, calls the pure modules, executes their decision and records it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from leeward.budgets.healthy_pods import HealthSample, samples_of
from leeward.cluster.facets import Known
from leeward.errors import InvalidInputError
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.termination import Status, TerminationRecord
from leeward.model.visible import quoted
from leeward.policy.document import ClusterSettings, NodePolicy
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups, Maxima
from leeward.ports.clock import Clock
from leeward.ports.records import Claims
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.termination import capacity_ledger
from leeward.termination.maximum_size import owners_maximum
from leeward.termination.requests import ReadableRecords, read_apart
from leeward.termination.situation import UNSELECTED
from leeward.time_budget import SearchTime
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.preflight.model import FOR_SEARCH, Preflight, PreflightInputs
from leeward.upgrade.record import UpgradeRecord, UpgradeRequest
from leeward.upgrade.surge.sizes import Strategy, max_surge, parallelism
from leeward.upgrade.waves.shared_budgets import others_of, surplus_among, terminating_elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One observation."""

    preflight: Preflight
    instances: Mapping[str, Instance]  # the group's members as EC2 sees them
    settings: ClusterSettings
    # records of the members and of what the upgrade terminates
    terminations: ReadableRecords = field(default_factory=ReadableRecords)
    paused: str = ""  # why the pause switch stops upgrades of the group, empty if it does not

    @property
    def group(self) -> Group:
        """Group as Auto Scaling sees it now."""
        return self.preflight.group

    @property
    def policy(self) -> NodePolicy:
        """Policy of the group."""
        return self.preflight.policy

    @property
    def healthy(self) -> tuple[HealthSample, ...]:
        """Samples of the budgets that select pods of the group's nodes."""
        snapshot = self.preflight.snapshot
        nodes = [member.node.name for member in self.preflight.members if member.node is not None]
        pods = [pod for node in nodes for pod in snapshot.pods_on(node)]
        return samples_of(snapshot.budgets, pods, snapshot.now)


def described(group: str, groups: Groups) -> Group:
    """Return the group. Raises InvalidInputError for one that does not exist."""
    description = groups.describe([group]).get(group)
    if description is None:
        raise InvalidInputError(f"group: found {quoted(group)}, unknown to Auto Scaling; expected a group's name")
    return description


def observe(record: UpgradeRecord, ports: Ports, inputs: PreflightInputs | None = None) -> Observation:
    """Observe with three lists of the cluster, one DescribeAutoScalingGroups, one DescribeInstances, one read of the
    table for zonal shifts and one for each hundred members; with budgets for Upgrade, the cluster's groups, and one
    read of the table for its run and for each other group of the policy.
    """
    group = described(record.group, ports.groups)
    policies = ports.clusters.policies(record.cluster)
    policy = policies.policy_of(group)
    chosen = policy or UNSELECTED
    kubernetes = ports.clusters.kubernetes(record.cluster)
    instances = ports.instances.describe(member.id for member in group.instances)
    others = others_of(chosen, group, record.cluster, ports.clusters, ports.groups)
    snapshot = ClusterSnapshot(
        cluster=record.cluster,
        now=ports.clock.now(),
        policies=policies,
        node_list=Known(tuple(kubernetes.nodes())),
        pods=tuple(kubernetes.pods()),
        budgets=tuple(kubernetes.budgets()),
        daemon_sets=kubernetes.daemon_sets(),
        groups={group.name: group, **others},
        instances=instances,
        hooks={group.name: ports.groups.hooks(group.name)},
        terminating=terminating_elsewhere(record, others, ports).all,
        shifts=Known(ports.catalog.zonal_shifts(record.cluster)),
    )
    members = [member.id for one in (group, *others.values()) for member in one.instances]
    terminations = read_apart((*members, *record.under_way), ports.claims)
    requested = surplus_among(members, terminations.read)
    snapshot = replace(snapshot, terminating=snapshot.terminating | requested)
    given = inputs or PreflightInputs(force=record.request.force, selected=policy is not None)
    preflight = Preflight.of(snapshot, group, chosen, record.target, given, only_ready=True)
    preflight = replace(preflight, time=SearchTime(ports.budget).part(FOR_SEARCH))
    return Observation(
        preflight=_running(preflight, record),
        instances=instances,
        settings=policies.settings,
        terminations=terminations,
        paused=policies.pauses.voluntary(group.name),
    )


def _running(preflight: Preflight, record: UpgradeRecord) -> Preflight:
    """Return pre-flight as the running machine counts: shares are of the size before the surge, and new nodes that were
    given up are left out.
    """
    failed, given_up = frozenset(record.failed), frozenset(record.given_up)
    parallel = min(preflight.parallel, parallelism(preflight.policy.update, max(record.desired, 1)))
    return replace(
        preflight,
        members=tuple(one for one in preflight.members if one.instance.id not in given_up),
        parallel=parallel,
        max_surge=max_surge(preflight.policy.update, max(record.desired, 1)),
        limits=replace(preflight.limits, together=min(preflight.limits.together, parallel)),
        wave_nodes=tuple(
            replace(one, failed_before=_id_of(preflight, one.name) in failed) for one in preflight.wave_nodes
        ),
    )


def _id_of(preflight: Preflight, node: str) -> str:
    known = preflight.snapshot.node(node)
    return known.instance_id if known is not None else ""


def launched_by_others(group: Group, claims: Claims) -> int:
    """Count launches of other terminations in the group that are not offset, also those that are not recorded yet."""
    return sum(_to_offset(one) + one.launching for one in _others(group, claims))


def measured(record: UpgradeRecord, group: Group, ports: Ports) -> UpgradeRecord:
    """Record the sizes that the upgrade restores: those of the group while no launch of the upgrade is in it, without
    launches for which other terminations will still shrink it. What others have scaled until now is part of them: the
    upgrade launches ahead again.
    """
    desired = group.desired - sum(_to_offset(one) for one in _others(group, ports.claims))
    sized = replace(record, desired=desired, sized=ports.clock.now(), others_scaled=None, others_seen=None)
    return with_owners_maximum(sized, ports.groups, ports.maxima)


def with_owners_maximum(record: UpgradeRecord, groups: Groups, maxima: Maxima) -> UpgradeRecord:
    """Return the record with MaxSize as its owner chooses it now."""
    return replace(record, maximum=owners_maximum(record.group, groups, maxima))


def _others(group: Group, claims: Claims) -> list[TerminationRecord]:
    """Return the open termination records of the group. The index of open records lags: one that has just been claimed
    is found as a member of the group. Those that cannot be read, of whatever group, are left out.
    """
    members = (member.id for member in group.instances)
    terminations = read_apart((*claims.open_instances(), *members), claims).read
    return [one for one in terminations.values() if one.subject.group == group.name and one.status is Status.OPEN]


def _to_offset(termination: TerminationRecord) -> int:
    return sum(not surge.returns for surge in capacity_ledger.to_offset(termination))


def fresh_record(
    group: Group, cluster: str, policy: NodePolicy, request: UpgradeRequest, clock: Clock
) -> UpgradeRecord:
    """Return the record of an upgrade that has not begun: its target is determined later."""
    return UpgradeRecord(
        group=group.name,
        cluster=cluster,
        target=UpgradeTarget(nodegroup=group.nodegroup),
        strategy=Strategy(policy.update.strategy),
        desired=group.desired,
        maximum=group.maximum,
        began=clock.now().replace(microsecond=0),
        request=request,
    )


def existing_groups(names: tuple[str, ...], groups: Groups) -> tuple[str, ...]:
    """Return the same names. Raises InvalidInputError for one that Auto Scaling does not know, before the first is
    changed.
    """
    for name in names:
        described(name, groups)
    return names
