"""Evacuations of zones: each minute the nodes that may leave now are claimed, as many as the disruption budgets allow.

The record in the table says which zones are closed (docs/designs/zone-evacuation.md). Each node leaves through the
ordinary termination: a replacement in another zone first, then the drain, then the end with decrement, so the sizes of
the groups stay. AZRebalance would launch into the closed zone to make the zones even; it is suspended, recorded first
by the evacuation that needs it, and resumed by the same once the zone is open and its terminations have ended."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from leeward.budgets.pdb import PdbIndex
from leeward.cluster.facets import Known, known_or
from leeward.cluster.state import ClusterState
from leeward.errors import RecordChangedError
from leeward.evacuation.plan import EvacuationInputs, EvacuationStanding, NodeVerdict, plan_evacuation
from leeward.model.group import AZ_REBALANCE, Group
from leeward.model.pod import pods_by_node
from leeward.model.termination import Cause, CauseKind, Status
from leeward.model.zonal_shift import NOT_SHIFTED, Evacuation, GroupSizes, ZoneRecord
from leeward.placement.restrictions import by_claim
from leeward.ports import Ports
from leeward.ports.autoscaling import GroupChanges
from leeward.ports.clock import Clock
from leeward.ports.records import Catalog
from leeward.reconcile.result import ReconcileResult
from leeward.termination.decisions import only_evacuated
from leeward.termination.requests import read_apart, start, subject_of

EVENT = "ZoneEvacuation"  # reason of the Event on each node that leaves


def written(record: ZoneRecord, catalog: Catalog, clock: Clock) -> ZoneRecord:
    """Return the record as written. Raises RecordChangedError if another writer was faster."""
    after = catalog.write_zone_record(record, clock.now())
    if after is None:
        raise RecordChangedError(f"{record.cluster}: another writer changed the record of its zones")
    return after


def balanced(groups: Iterable[Group]) -> frozenset[str]:
    """Return the groups that balance their zones now. Where the owner, EKS or another workflow has suspended that, it
    is theirs to resume.
    """
    return frozenset(group.name for group in groups if AZ_REBALANCE not in group.suspended)


def suspend(names: Iterable[str], group_changes: GroupChanges, result: ReconcileResult) -> frozenset[str]:
    """Suspend balancing of these groups; return those of which that failed, as the result says. Idempotent."""
    failed = set(names)
    for name in sorted(failed):
        with result.isolate(name):
            group_changes.suspend(name, AZ_REBALANCE)
            failed.discard(name)
    return frozenset(failed)


def resume(names: Collection[str], state: ClusterState, ports: Ports) -> frozenset[str]:
    """Resume balancing of these groups; return those of which it stays suspended: all while a zone is closed, and the
    groups on which an upgrade or a run works. A later pass tries again. A group that is gone needs nothing.
    """
    if names and ports.catalog.zonal_shifts(state.cluster).shifts:
        return frozenset(names)
    left = _in_use(names, state, ports) if names else frozenset()
    for name in sorted({*names} - left):
        if name in state.groups:
            ports.group_changes.resume(name, AZ_REBALANCE)
    return left


def _in_use(names: Collection[str], state: ClusterState, ports: Ports) -> frozenset[str]:
    """Return the groups of which an execution of an upgrade, or the open disruption run, relies on the suspension: it
    found the process suspended and has not recorded it as its own.
    """
    run = ports.disruptions.read(state.cluster)
    disrupted = frozenset(run.groups) & {*names} if run is not None and run.open else frozenset()
    return disrupted | being_upgraded(names, ports)


def being_upgraded(names: Iterable[str], ports: Ports) -> frozenset[str]:
    """Return the groups of which an execution works on an open upgrade."""
    from leeward.upgrade.run import is_held  # late: INIT imports it after the handler

    upgrades = ports.upgrades.read_all(sorted(names))
    return frozenset(
        name
        for name, one in upgrades.items()
        if is_held(one, ports.upgrade_executions, ports.managed_upgrade_executions)
    )


def evacuate_zones(record: ZoneRecord, state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Claim the nodes that may leave now, and end evacuations whose zone was opened.

    Idempotent: a cause is named by the evacuation and the attempt before, so that a repeat adds nothing. While zonal
    shifts are not known, nothing is done: another zone may be closed as well.
    """
    if not isinstance(state.shifts, Known):
        return
    for evacuation in record.evacuations:
        with result.isolate(f"{state.cluster}: {evacuation.sentence}"):
            if evacuation.closed:
                record, unbalanced = _prepare(record, evacuation, state, ports.catalog, ports.clock)
                _evacuate(evacuation, state, ports, result, balancing=suspend(unbalanced, ports.group_changes, result))
            elif not _under_way(evacuation, state):
                record = _end(record, evacuation, state, ports)


def _prepare(
    record: ZoneRecord, evacuation: Evacuation, state: ClusterState, catalog: Catalog, clock: Clock
) -> tuple[ZoneRecord, frozenset[str]]:
    """Record the sizes of the groups that could launch into the zone, and those whose AZRebalance is to be suspended;
    return the record and these.
    """
    groups = [group for group in state.selected if evacuation.zone in group.zones and evacuation.covers(group.name)]
    sizes = {
        group.name: GroupSizes(minimum=group.minimum, desired=group.desired, maximum=group.maximum) for group in groups
    }
    suspended = balanced(groups)
    after = replace(
        evacuation,
        sizes={**sizes, **evacuation.sizes},
        suspended=tuple(sorted({*evacuation.suspended, *suspended})),
    )
    if after != evacuation:
        record = written(record.with_evacuation(after), catalog, clock)
    return record, suspended


def _evacuate(
    evacuation: Evacuation, state: ClusterState, ports: Ports, result: ReconcileResult, *, balancing: frozenset[str]
) -> None:
    """Claim the nodes that may leave now. `balancing`: groups that would still launch into the zone."""
    nodes = [node for node in state.nodes if state.zone_of(node) == evacuation.zone]
    if not nodes:
        return
    inputs = replace(inputs_of(state, ports, [node.instance_id for node in nodes]), balancing=balancing)
    for verdict in plan_evacuation(inputs, evacuation.zone, evacuation.groups):
        if verdict.standing is EvacuationStanding.LEAVES:
            with result.isolate(verdict.node.name):
                result.evacuated += _claim(verdict, evacuation, inputs, ports)


def inputs_of(state: ClusterState, ports: Ports, instances: Iterable[str]) -> EvacuationInputs:
    """Read the pods, the volumes, the subnets of the selected groups, and the terminations of these instances."""
    kubernetes = ports.clusters.kubernetes(state.cluster)
    pods = pods_by_node(kubernetes.pods())
    claimed = any(pod.claims for on_node in pods.values() for pod in on_node)
    shifts = known_or(state.shifts, NOT_SHIFTED)
    return EvacuationInputs(
        state=state,
        pods=pods,
        volumes=by_claim(kubernetes.volumes()) if claimed else {},
        subnets=ports.network.subnets(sorted({name for group in state.selected for name in group.subnets})),
        records=read_apart(sorted(filter(None, instances)), ports.claims).read,
        closed=shifts.zones,
        budgets=PdbIndex(kubernetes.budgets()),
        now=ports.clock.now(),
    )


def _claim(verdict: NodeVerdict, evacuation: Evacuation, inputs: EvacuationInputs, ports: Ports) -> list[str]:
    """Claim and start; return the instance if its termination is under way now."""
    node, now = verdict.node, ports.clock.now()
    instance = ports.instances.describe([node.instance_id]).get(node.instance_id)
    if instance is None or instance.ended:
        return []
    before = inputs.records.get(instance.id)
    cause = Cause(
        id=evacuation.cause_id(instance.id, before.attempt if before is not None else 0),
        kind=CauseKind.EVACUATION,
        at=now,
        reason=f"{evacuation.sentence}{f': {evacuation.why}' if evacuation.why else ''}",
    )
    subject = subject_of(instance, inputs.state.cluster, group=verdict.group, node=node.name)
    record = ports.claims.claim(subject, cause, now)
    if record.status is Status.CLOSED:
        return []
    start(record, ports)
    kubernetes = ports.clusters.kubernetes(inputs.state.cluster)
    message = f"Leeward will replace this node in another zone: {cause.reason}"
    kubernetes.event(node, reason=EVENT, message=message[:1000], warning=True, now=now)
    return [instance.id]


def _under_way(evacuation: Evacuation, state: ClusterState) -> bool:
    """Return whether a termination that nothing but the evacuation requires is still open: one that waits for a
    maintenance as well may last for days.
    """
    records = (record for record in known_or(state.records, {}).values() if only_evacuated(record))
    return any(evacuation.caused(cause) for record in records for cause in record.causes)


def _end(record: ZoneRecord, evacuation: Evacuation, state: ClusterState, ports: Ports) -> ZoneRecord:
    """Resume AZRebalance, then remove the evacuation. Where it stays suspended, the next pass tries again."""
    left = resume(evacuation.suspended, state, ports)
    if not left:
        return written(record.without_evacuation(evacuation.zone), ports.catalog, ports.clock)
    after = replace(evacuation, suspended=tuple(sorted(left)))
    return written(record.with_evacuation(after), ports.catalog, ports.clock) if after != evacuation else record
