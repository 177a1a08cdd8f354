"""Capacity ahead for the pods of a shifted zone: launched when a shift begins, terminated again when it is over.

Each launch is in the record before it is requested, under a client token made of shift, group and subnet; each instance
is in the record before anything else is decided. So a pass that dies, runs twice or follows a lost event launches once.
After the shift each launch is offset by one termination with decrement, as in any other workflow that gives up a launch
(`termination/given_up_launches.py`)."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.cluster.facets import Known, known_or
from leeward.cluster.state import ClusterState
from leeward.evacuation.prescale_plan import NOT_PRESCALED, PrescaleInputs, launch_token, plan_prescale
from leeward.model import well_known
from leeward.model.facts import ClusterFacts
from leeward.model.termination import Status
from leeward.model.zonal_shift import NOT_SHIFTED, ShiftKind, ZonalShift, ZonalShifts
from leeward.model.zone_record import Prescale, PrescaledNode, PrescaleOrder, ZoneRecord
from leeward.policy.document import OnShift
from leeward.ports import Ports
from leeward.reconcile.evacuations import inputs_of, written
from leeward.reconcile.result import ReconcileResult
from leeward.termination.given_up_launches import Launch, offsetting, request_offset, undone
from leeward.termination.maximum_size import owners_maximum
from leeward.workflow.scale_down_protection import protect, release


def prescale_zones(record: ZoneRecord, state: ClusterState, ports: Ports, result: ReconcileResult) -> ZoneRecord:
    """Begin, continue and end the prescales of a cluster. Nothing is begun or ended while the zonal shifts are not
    known: a shift that cannot be read has not ended.
    """
    if not isinstance(state.shifts, Known):
        return record
    shifts = state.shifts.value
    for shift in _to_begin(record, shifts, state):
        record = written(record.with_prescale(plan_prescale(_inputs(state, ports), shift, ports.clock.now())), ports)
    shifted = _shifted(shifts)
    for known in record.prescales:
        with result.isolate(f"{state.cluster}: prescale of {known.zone}"):
            prescale = known
            if known.ended is None and known.zone not in shifted:
                prescale = replace(known, ended=ports.clock.now())
                record = written(record.with_prescale(prescale), ports)
            record = _launch(record, prescale, shifts, ports, result)
            record = _keep_or_end(record, prescale.shift, state, ports)
    return record


def _to_begin(record: ZoneRecord, shifts: ZonalShifts, state: ClusterState) -> list[ZonalShift]:
    """Return the shifts that call for capacity and have none yet. A practice run calls for none."""
    policies = (state.policy_of(group) for group in state.selected)
    if not any(policy is not None and policy.on_shift is OnShift.PRESCALE for policy in policies):
        return []
    if state.policies.pauses.voluntary():
        return []
    under_way = {one.zone for one in record.prescales if one.ended is None}
    known = {one.shift for one in record.prescales}
    return [
        shift
        for shift in shifts.shifts
        if shift.zone and shift.kind not in NOT_PRESCALED and shift.zone not in under_way and shift.key not in known
    ]


def _shifted(shifts: ZonalShifts) -> frozenset[str]:
    """Return the zones that ARC has shifted traffic away from, for whatever reason."""
    return frozenset(one.zone for one in shifts.shifts if one.kind is not ShiftKind.EVACUATION)


def _inputs(state: ClusterState, ports: Ports) -> PrescaleInputs:
    shifts = known_or(state.shifts, NOT_SHIFTED)
    names = [group.name for group in state.selected]
    upgrades = ports.upgrades.read_all(names)
    return PrescaleInputs(
        evacuation=inputs_of(state, ports, ()),
        facts=replace(ClusterFacts.from_sheets(ports.catalog.read(state.cluster)), shifts=shifts),
        maxima={name: owners_maximum(name, ports.groups, ports.maxima) for name in names},
        upgraded=frozenset(name for name, upgrade in upgrades.items() if upgrade.ended is None),
    )


def _launch(
    record: ZoneRecord, prescale: Prescale, shifts: ZonalShifts, ports: Ports, result: ReconcileResult
) -> ZoneRecord:
    """Request each order, in one subnet after the other. An order of a shift that is over may have been launched
    already: it is followed up once, in its own subnet, so that no launch is forgotten.
    """
    orders = list(prescale.orders)
    while orders:
        order = orders.pop(0)
        answer = ports.groups.launch(group=order.group, subnet=order.subnet, token=order.key, count=order.count)
        place = PrescaledNode(group=order.group, zone=order.zone, subnet=order.subnet)
        prescale = replace(prescale, launched={**prescale.launched, **dict.fromkeys(answer.launched, place)})
        missing = order.count - len(answer.launched)
        further = _elsewhere(order, missing, shifts, prescale) if missing and answer.no_capacity else None
        if further is not None:
            orders.insert(0, further)
        elif missing and prescale.ended is None:
            why = f"{missing} nodes were not launched in {order.zone}: {answer.reason}"
            prescale = replace(prescale, refused=_added(prescale.refused, order.group, why))
        prescale = replace(prescale, orders=tuple(orders))
        record = written(record.with_prescale(prescale), ports)
        result.prescaled += answer.launched
    return record


def _elsewhere(order: PrescaleOrder, missing: int, shifts: ZonalShifts, prescale: Prescale) -> PrescaleOrder | None:
    """Return the order for what one subnet has no capacity for, in the next subnet that is open; None without any."""
    if prescale.ended is not None:
        return None
    places = [place.split("/", 1) for place in order.others]
    left = [(zone, subnet) for zone, subnet in places if not shifts.reason(zone)]
    if not left:
        return None
    (zone, subnet), *others = left
    return PrescaleOrder(
        key=launch_token("", order.key, order.group, subnet, missing),
        group=order.group,
        zone=zone,
        subnet=subnet,
        count=missing,
        others=tuple("/".join(other) for other in others),
    )


def _added(refused: Mapping[str, str], group: str, why: str) -> dict[str, str]:
    return {**refused, group: "; ".join(filter(None, (refused.get(group, ""), why)))[:500]}


def _keep_or_end(record: ZoneRecord, shift: str, state: ClusterState, ports: Ports) -> ZoneRecord:
    """Protect the new nodes from Cluster Autoscaler while the shift lasts; then request their offsets, and remove the
    prescale when all of them are settled.
    """
    prescale = next((one for one in record.prescales if one.shift == shift), None)
    if prescale is None:
        return record
    kubernetes, owner = ports.clusters.kubernetes(state.cluster), f"{well_known.OF_PRESCALE}{prescale.zone}"
    if prescale.ended is None:
        protect((node for node in state.nodes if node.instance_id in prescale.launched), owner, kubernetes)
        return record
    release((node for node in state.nodes if node.instance_id in prescale.launched), owner, kubernetes)
    record = _choose_offsets(record, prescale, ports)
    prescale = next(one for one in record.prescales if one.shift == shift)
    return written(record.without_prescale(shift), ports) if _offset(prescale, state, ports) else record


def _choose_offsets(record: ZoneRecord, prescale: Prescale, ports: Ports) -> ZoneRecord:
    """Record the instance that offsets each launch, once, before any termination is requested."""
    open_ones = {new: node.group for new, node in prescale.launched.items() if not node.offset_by and not node.undone}
    if not open_ones:
        return record
    without_offset, launched = undone(open_ones, prescale.began, ports), dict(prescale.launched)
    for new, group in open_ones.items():
        taken = {node.offset_by for node in launched.values()} | open_ones.keys() - {new}
        by = "" if new in without_offset else offsetting(new, group, taken, ports)
        launched[new] = replace(launched[new], offset_by=by, undone=not by)
    return written(record.with_prescale(replace(prescale, launched=launched)), ports)


def _offset(prescale: Prescale, state: ClusterState, ports: Ports) -> bool:
    """Request the termination that offsets each launch; return whether all of them have ended. A member that was
    returned to service has passed its offset on, which the terminations account for.
    """
    offsets = {new: node.offset_by for new, node in prescale.launched.items() if node.offset_by}
    records = ports.claims.read_all(sorted(set(offsets.values()))) if offsets else {}
    known = ports.instances.describe(offsets.values()) if offsets else {}
    for new, by in offsets.items():
        node, record = prescale.launched[new], records.get(by)
        cause = f"surplus#termination/{new}"
        if record is not None and record.knows(cause):
            continue
        launch = Launch(group=node.group, zone=node.zone, subnet=node.subnet)
        reason = f"{new} was launched ahead for pods of {prescale.zone}, and its zonal shift is over"
        request_offset(new, by, launch, state.cluster, known.get(by), reason, ports)
    return all(by in records and records[by].status is Status.CLOSED for by in offsets.values())
