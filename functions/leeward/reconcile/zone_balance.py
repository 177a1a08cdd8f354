"""AZRebalance of the groups that launch around a closed zone: it would launch into that zone to make the zones even.

What Leeward suspends is recorded first, by the evacuation that needs it, and resumed by the same."""

from collections.abc import Collection, Iterable

from leeward.cluster.state import ClusterState
from leeward.model.group import AZ_REBALANCE, Group
from leeward.ports import Ports
from leeward.ports.autoscaling import GroupChanges
from leeward.reconcile.result import ReconcileResult


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
    from leeward.upgrade.run import held  # late: INIT imports it after the handler

    upgrades = ports.upgrades.read_all(sorted(names))
    return frozenset(
        name
        for name, one in upgrades.items()
        if one.ended is None and held(one, ports.upgrade_executions, ports.managed_upgrade_executions)
    )
