"""State that has outlived its reason: taints of ours on nodes without an open termination, MaxSize of groups that
replacements have raised, and pauses that have ended. Taints of other deployments are reported."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from leeward.cluster.facets import required
from leeward.cluster.joins import duplicates
from leeward.cluster.state import ClusterState
from leeward.model.lifecycle import IN_POOL, role_of
from leeward.model.node import Node
from leeward.model.termination import Status, TerminationRecord
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.reconcile.executions import read_records
from leeward.reconcile.result import ReconcileResult
from leeward.termination.maximum_size import put_back
from leeward.termination.requests import untaint_unclaimed
from leeward.upgrade.record import UpgradeRecord

SECOND_OBSERVATION = timedelta(minutes=10)


def remove_stale_taints(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Remove the taint of this deployment from nodes without an open record, at the second observation: fn interruption
    may be about to claim them. Nodes of the open disruption run carry it before they are claimed, so nothing is removed
    while that run cannot be read. Idempotent: a repeat finds no taint.
    """
    disrupted = required(state.disrupted, "the nodes of the disruption run")
    tainted = [node for node in state.nodes if node.taken_out and node.instance_id not in disrupted]
    ours = [node for node in tainted if not node.is_foreign(ports.deployment)]
    for node in _unclaimed(ours, required(state.records, "the open records"), ports, result):
        with result.isolate(node.name):
            if _runs_in_warm_pool(node, state, ports.groups):
                continue
            if ports.claims.once(f"stale-taint#{node.uid}", SECOND_OBSERVATION, ports.clock.now()):
                continue
            if untaint_unclaimed(node, ports.clusters.kubernetes(state.cluster), ports):
                result.untainted.append(node.name)


def report_foreign_taints(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Name the nodes that another deployment of Leeward is terminating."""
    foreign = sorted((node for node in state.nodes if node.is_foreign(ports.deployment)), key=lambda node: node.name)
    result.foreign += [f"{node.name}: {node.disrupted_by or 'no owner'}" for node in foreign]


def report_duplicates(state: ClusterState, _: Ports, result: ReconcileResult) -> None:
    """Name the Nodes that share an instance: one was left behind by a kubelet with another name now, or names an
    instance that is not its own.
    """
    for instance, same in duplicates(state.nodes).items():
        chosen = next(node.name for node in same if not state.is_superseded(node))
        others = ", ".join(node.name for node in same if state.is_superseded(node))
        result.duplicates.append(f"{state.cluster}: {others} and {chosen} name {instance}: {chosen} stands for it")


def _runs_in_warm_pool(node: Node, state: ClusterState, groups: Groups) -> bool:
    """Return whether a node that runs on in its warm pool keeps its taint: a group does not list such instances."""
    group = state.group_of(node)
    if group is not None and group.lifecycle_of(node.instance_id) is not None:
        return False
    member = groups.lifecycle_of(node.instance_id)
    return member is not None and role_of(member[1]) in IN_POOL


def _unclaimed(
    tainted: Sequence[Node], records: Mapping[str, TerminationRecord], ports: Ports, result: ReconcileResult
) -> Iterator[Node]:
    """Yield the nodes whose instances run and have no open termination, also by a read of their records now."""
    candidates = [node for node in tainted if node.instance_id not in records]
    names = [node.instance_id for node in candidates]
    instances = ports.instances.describe(names) if names else {}
    claims = read_records(names, ports.clock, ports.claims, result)
    for node in candidates:
        instance, record = instances.get(node.instance_id), claims.read.get(node.instance_id)
        if node.instance_id in claims.unreadable:
            continue
        alive = instance is not None and instance.state == "running"
        if alive and (record is None or record.status is Status.CLOSED):
            yield node


def put_back_maximum_sizes(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Put back MaxSize of groups that replacements have raised, also of those that no policy selects any more. One read
    serves a hundred groups. Idempotent: a MaxSize that is put back has no item.
    """
    from leeward.upgrade.run import is_held  # late: INIT imports it after the handler

    def works(upgrade: UpgradeRecord) -> bool:
        return is_held(upgrade, ports.upgrade_executions, ports.managed_upgrade_executions)

    for item in ports.maxima.read_all(state.groups).values():
        if item.active:
            with result.isolate(item.group):
                if put_back(item, state.cluster, ports, works):
                    result.restored.append(item.group)


def keep_pauses(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Write the switch if a pause is due. Idempotent: the next read finds nothing due, and a write that another writer
    has overtaken is made by the next pass if it is needed still.
    """
    del result  # errors of a pass are noted by its caller
    if not state.policies.pauses.due:
        return
    record = ports.pauses.read(state.cluster)
    kept = record.kept(ports.clock.now())
    if kept != record:
        ports.pauses.write(kept)
