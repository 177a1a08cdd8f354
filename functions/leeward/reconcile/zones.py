"""Zones of a cluster: zonal shifts, polled each minute, and evacuations that an operator has requested.

ARC sends the events of shifts best effort, and none for a shift that expires. Nodes in a shifted zone get an Event when
the shift begins and when it is over; practice runs are reported like any other shift."""

from leeward.cluster.facets import known_or
from leeward.cluster.state import ClusterState
from leeward.errors import AwsUnavailableError
from leeward.model.zonal_shift import NOT_SHIFTED, REMEMBERED, ShiftKind, ShiftSource, ZonalShift, ZonalShifts
from leeward.ports import Ports
from leeward.reconcile.result import AttentionNotice, ReconcileResult
from leeward.sync.zonal_shifts import read_shifts

EVENT, EVENT_ENDED = "ZonalShift", "ZonalShiftEnded"  # reasons of the Events on Nodes
MOST_NODES = 50  # that get an Event in one pass: writing takes time, and the shift is in the log as well
ANNOUNCED_FOR = REMEMBERED * 2  # a shift that is reported again after so long is the same one


def poll_shifts(cluster: str, ports: Ports, result: ReconcileResult) -> ZonalShifts:
    """Ask ARC and keep its answer; return what holds now. While ARC does not answer the last known shifts hold, which
    the result says. Raises the errors of the table.
    """
    read = read_shifts(cluster, ports.clock, ports.recovery, ports.catalog, source=ShiftSource.POLL)
    if read.failed:
        what = f"{cluster}: zonal shifts"
        result.note(what, AwsUnavailableError(f"{read.failed}; the last known ones hold: {_names(read.state)}"))
    result.shifted += [
        AttentionNotice(cluster=cluster, what=shift.sentence) for shift in read.state.shifts if _of_arc(shift)
    ]
    result.shift_changes += [f"{cluster}: {change}" for change in read.changes]
    return read.state


def announce_shifts(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Write an Event on the Nodes of a zone, once when its shift begins and once when it has ended. Best effort."""
    del result  # errors of a pass are noted by its caller
    shifts = known_or(state.shifts, NOT_SHIFTED)
    for shift in filter(_of_arc, shifts.shifts):
        message = f"{shift.sentence}: Leeward launches no node in the zone and removes none voluntarily"
        _announce(shift, EVENT, message, state, ports)
    for shift in shifts.ended:
        _announce(shift, EVENT_ENDED, f"{shift.sentence} has ended", state, ports)


def _announce(shift: ZonalShift, reason: str, message: str, state: ClusterState, ports: Ports) -> None:
    now = ports.clock.now()
    nodes = [node for node in state.nodes if shift.zone and state.zone_of(node) == shift.zone]
    if not nodes or not ports.claims.once(f"{reason}#{state.cluster}#{shift.key}", ANNOUNCED_FOR, now):
        return
    kubernetes = ports.clusters.kubernetes(state.cluster)
    for node in sorted(nodes, key=lambda node: node.name)[:MOST_NODES]:
        kubernetes.event(node, reason=reason, message=message, warning=reason == EVENT, now=now)


def _of_arc(shift: ZonalShift) -> bool:
    return shift.kind is not ShiftKind.EVACUATION


def _names(state: ZonalShifts) -> str:
    return ", ".join(shift.sentence for shift in state.shifts) or "none"


def work_on_zones(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Evacuate zones. One GetItem where there is none to evacuate."""
    record = ports.catalog.zone_record(state.cluster)
    if record.evacuations:
        from leeward.reconcile.evacuations import evacuate_zones  # late: most cold starts find no zone to work on

        evacuate_zones(record, state, ports, result)
