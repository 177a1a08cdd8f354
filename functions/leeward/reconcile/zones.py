"""Work on zones: evacuations that an operator has requested, and capacity ahead for zones that are shifted.

Both stand in one record (docs/designs/zone-evacuation.md), of which a pass reads the newest version."""

from leeward.cluster.facets import known_or
from leeward.cluster.state import ClusterState
from leeward.model.zonal_shift import NOT_SHIFTED
from leeward.ports import Ports
from leeward.reconcile.result import ReconcileResult


def work_on_zones(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Launch ahead first, which the pods of a shifted zone wait for, then evacuate. One GetItem where there is none."""
    record = ports.catalog.zone_record(state.cluster)
    if record.prescales or known_or(state.shifts, NOT_SHIFTED).shifts:
        from leeward.reconcile.prescale import prescale_zones  # late: most cold starts find no zone to work on

        with result.isolate(f"{state.cluster}: prescale"):
            prescale_zones(record, state, ports, result)
    if record.evacuations:
        from leeward.reconcile.evacuations import evacuate_zones  # late, as above

        evacuate_zones(ports.catalog.zone_record(state.cluster), state, ports, result)
