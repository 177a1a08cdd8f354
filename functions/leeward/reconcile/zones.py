"""Work on zones: evacuations that an operator has requested (docs/designs/zone-evacuation.md)."""

from leeward.cluster.state import ClusterState
from leeward.ports import Ports
from leeward.reconcile.result import ReconcileResult


def work_on_zones(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Evacuate zones. One GetItem where there is none to evacuate."""
    record = ports.catalog.zone_record(state.cluster)
    if record.evacuations:
        from leeward.reconcile.evacuations import evacuate_zones  # late: most cold starts find no zone to work on

        evacuate_zones(record, state, ports, result)
