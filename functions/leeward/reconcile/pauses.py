"""Pauses that time changes: one without an end is announced again every day, one that has ended is removed.

Both are one conditional write to the switch; fn notifications makes the events of it, as of every write."""

from leeward.cluster.state import ClusterState
from leeward.ports import Ports
from leeward.reconcile.result import ReconcileResult


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
