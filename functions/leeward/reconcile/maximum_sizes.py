"""MaxSize of groups that replacements have raised: put back once no replacement needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leeward.cluster.state import ClusterState
from leeward.ports import Ports
from leeward.reconcile.result import ReconcileResult
from leeward.termination.maximum_size import put_back

if TYPE_CHECKING:
    from leeward.upgrade.record import UpgradeRecord


def put_back_maximum_sizes(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Put back MaxSize of groups that replacements have raised, also of those that no policy selects any more. One read
    serves a hundred groups. Idempotent: a MaxSize that is put back has no item.
    """
    from leeward.upgrade.run import held  # late: INIT imports it after the handler

    def works(upgrade: UpgradeRecord) -> bool:
        return upgrade.ended is None and held(upgrade, ports.upgrade_executions, ports.managed_upgrade_executions)

    for item in ports.maxima.read_all(state.groups).values():
        if item.active:
            with result.isolate(item.group):
                if put_back(item, state.cluster, ports, works):
                    result.restored.append(item.group)
