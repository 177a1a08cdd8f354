"""Work on zones: evacuations that an operator has requested, and capacity ahead for zones that are shifted.

Both stand in one record (docs/designs/zone-evacuation.md), of which a pass reads the newest version."""

from leeward.cluster.state import ClusterState
from leeward.ports import Ports
from leeward.reconcile.evacuations import evacuate_zones
from leeward.reconcile.prescale import prescale_zones
from leeward.reconcile.result import ReconcileResult


def work_on_zones(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Launch ahead first, which the pods of a shifted zone wait for, then evacuate. One GetItem where there is none."""
    record = ports.catalog.zone_record(state.cluster)
    with result.isolate(f"{state.cluster}: prescale"):
        prescale_zones(record, state, ports, result)
    if record.evacuations:
        evacuate_zones(ports.catalog.zone_record(state.cluster), state, ports, result)
