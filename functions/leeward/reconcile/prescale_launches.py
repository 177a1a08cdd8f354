"""Launches of a prescale: each order is recorded as requested before it is, and its instances before the next one.

Killed anywhere, the same order is requested again under its client token. An order that was never requested is changed
or dropped when the cluster has changed since: its zone was closed, the shift is over, its group was paused."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from leeward.cluster.state import ClusterState
from leeward.errors import TerminalError
from leeward.evacuation.prescale_plan import launch_token
from leeward.model.counts import count_of
from leeward.model.termination import Replacement
from leeward.model.zonal_shift import ZonalShifts
from leeward.model.zone_record import Prescale, PrescaledNode, PrescaleOrder, ZoneRecord
from leeward.policy.document import OnShift
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.reconcile.result import ReconcileResult
from leeward.reconcile.zone_record import written

LONGEST_REASON = 500  # characters


def launch_orders(
    record: ZoneRecord,
    prescale: Prescale,
    state: ClusterState,
    shifts: ZonalShifts,
    ports: Ports,
    result: ReconcileResult,
) -> ZoneRecord:
    """Request each order, in one subnet after the other. One that was requested before is followed up in its own subnet
    even if the shift is over by now, so that no launch is forgotten. Raises retryable errors: the next pass repeats it.
    """
    ready = with_orders(prescale, prescale.orders, state, shifts)
    if ready != prescale:
        record = written(record.with_prescale(ready), ports.catalog, ports.clock)
    while ready.orders:
        order, *orders = ready.orders
        answer = _launch(order, ports.groups)
        place = PrescaledNode(group=order.group, zone=order.zone, subnet=order.subnet)
        ready = replace(ready, launched={**ready.launched, **dict.fromkeys(answer.launched, place)})
        missing = order.count - len(answer.launched)
        further = _elsewhere(order, missing, shifts) if missing and answer.no_capacity else None
        if further is not None:
            orders.insert(0, further)
        elif missing and ready.ended is None:
            why = (
                f"{missing} of {count_of(order.count, 'node was', 'nodes were')} "
                f"not launched in {order.zone}: {answer.reason}"
            )
            ready = _refused(ready, order, why)
        ready = with_orders(ready, orders, state, shifts)
        record = written(record.with_prescale(ready), ports.catalog, ports.clock)
        result.prescaled += answer.launched
    return record


def with_orders(
    prescale: Prescale, orders: Iterable[PrescaleOrder], state: ClusterState, shifts: ZonalShifts
) -> Prescale:
    """Return the prescale with these orders, the first of them recorded as requested. Orders that were never requested
    are dropped where they may not be any more, or moved to a zone that is open.
    """
    left = list(orders)
    while left and not left[0].requested:
        order = left.pop(0)
        if prescale.ended is not None:
            continue
        if reason := _not_any_more(order, state):
            prescale = _refused(
                prescale,
                order,
                f"{order.count} of {count_of(order.count, 'node is', 'nodes are')} not launched: {reason}",
            )
        elif not shifts.reason(order.zone):
            left.insert(0, replace(order, requested=True))
        elif (further := _elsewhere(order, order.count, shifts)) is not None:
            left.insert(0, further)
        else:
            why = (
                f"{order.count} of {count_of(order.count, 'node was', 'nodes were')} "
                f"not launched in {order.zone}: {shifts.reason(order.zone)}"
            )
            prescale = _refused(prescale, order, why)
    return replace(prescale, orders=tuple(left))


def _launch(order: PrescaleOrder, groups: Groups) -> Replacement:
    try:
        return groups.launch(group=order.group, subnet=order.subnet, token=order.key, count=order.count)
    except TerminalError as error:  # else no later order would be requested, and the prescale would never end
        return Replacement(reason=str(error), refused=True)


def _not_any_more(order: PrescaleOrder, state: ClusterState) -> str:
    """Return why the group is not to launch any more; empty if it is."""
    policy = state.policy_of(state.groups.get(order.group))
    if policy is None or policy.on_shift is not OnShift.PRESCALE:
        return "no policy prescales its group any more"
    return state.policies.pauses.voluntary(order.group)


def _elsewhere(order: PrescaleOrder, count: int, shifts: ZonalShifts) -> PrescaleOrder | None:
    """Return the order for nodes that one subnet does not take, in the next subnet that is open; None without any."""
    places = [place.split("/", 1) for place in order.others]
    left = [(zone, subnet) for zone, subnet in places if not shifts.reason(zone)]
    if not left:
        return None
    (zone, subnet), *others = left
    return PrescaleOrder(
        key=launch_token(order.key, order.group, subnet, count),
        group=order.group,
        zone=zone,
        subnet=subnet,
        count=count,
        others=tuple("/".join(other) for other in others),
    )


def _refused(prescale: Prescale, order: PrescaleOrder, why: str) -> Prescale:
    return replace(prescale, refused=_added(prescale.refused, order.group, why))


def _added(refused: Mapping[str, str], group: str, why: str) -> dict[str, str]:
    return {**refused, group: "; ".join(filter(None, (refused.get(group, ""), why)))[:LONGEST_REASON]}
