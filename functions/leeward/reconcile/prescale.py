"""Capacity ahead for the pods of a shifted zone: launched when a shift begins, terminated again when it is over.

Each launch is in the record before it is requested, under a client token made of shift, group and subnet; each instance
is in the record before anything else is decided. So a pass that dies, runs twice or follows a lost event launches once.
After the shift each launch is offset by one termination with decrement, as in any other workflow that gives up a launch
(`termination/given_up_launches.py`)."""

from collections.abc import Sequence
from dataclasses import replace

from leeward.cluster.facets import Known, known_or
from leeward.cluster.state import ClusterState
from leeward.evacuation.prescale_plan import NOT_PRESCALED, PrescaleInputs, plan_prescale
from leeward.model import well_known
from leeward.model.facts import ClusterFacts
from leeward.model.group import Group
from leeward.model.termination import Status
from leeward.model.zonal_shift import NOT_SHIFTED, ShiftKind, ZonalShift, ZonalShifts
from leeward.model.zone_record import Prescale, ZoneRecord
from leeward.policy.document import OnShift
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.reconcile.evacuations import inputs_of
from leeward.reconcile.prescale_launches import launch_orders, with_orders
from leeward.reconcile.result import ReconcileResult
from leeward.reconcile.zone_balance import balanced, being_upgraded, resume, suspend, uneven
from leeward.reconcile.zone_record import written
from leeward.termination.capacity_ledger import ahead, shrunk_since, surplus_id
from leeward.termination.given_up_launches import Launch, offsetting, request_offset, undone
from leeward.termination.readable_records import read_apart
from leeward.workflow.scale_down_protection import protect, release


def prescale_zones(record: ZoneRecord, state: ClusterState, ports: Ports, result: ReconcileResult) -> ZoneRecord:
    """Begin, continue and end the prescales of a cluster. Nothing is begun or ended while the zonal shifts are not
    known: a shift that cannot be read has not ended.
    """
    if not isinstance(state.shifts, Known):
        return record
    shifts = state.shifts.value
    for shift in _to_begin(record, shifts, state):
        record = written(record.with_prescale(_planned(shift, shifts, state, ports)), ports.catalog, ports.clock)
    shifted = _shifted(shifts)
    for known in record.prescales:
        with result.isolate(f"{state.cluster}: prescale of {known.zone}"):
            prescale = known
            if known.ended is None and known.zone not in shifted:
                prescale = replace(known, ended=ports.clock.now())
                record = written(record.with_prescale(prescale), ports.catalog, ports.clock)
            if prescale.ended is None:
                owned = (group for name, group in state.groups.items() if name in prescale.suspended)
                suspend(balanced(owned), ports.group_changes, result)
            record = launch_orders(record, prescale, state, shifts, ports, result)
            record = _keep_or_end(record, prescale, state, ports, result)
    return record


def _to_begin(record: ZoneRecord, shifts: ZonalShifts, state: ClusterState) -> list[ZonalShift]:
    """Return the shifts that call for capacity and have none yet. A practice run calls for none."""
    if not any(_prescales(group, state) for group in state.selected) or state.policies.pauses.voluntary():
        return []
    under_way = {one.zone for one in record.prescales if one.ended is None}
    return [
        shift
        for shift in shifts.shifts
        if shift.zone and shift.kind not in NOT_PRESCALED and shift.zone not in under_way
    ]


def _prescales(group: Group, state: ClusterState) -> bool:
    policy = state.policy_of(group)
    return policy is not None and policy.on_shift is OnShift.PRESCALE


def _shifted(shifts: ZonalShifts) -> frozenset[str]:
    """Return the zones that ARC has shifted traffic away from, for whatever reason."""
    return frozenset(one.zone for one in shifts.shifts if one.kind is not ShiftKind.EVACUATION)


def _planned(shift: ZonalShift, shifts: ZonalShifts, state: ClusterState, ports: Ports) -> Prescale:
    """Return the prescale to record. Groups that launch would be uneven, and balance into the shifted zone."""
    prescale = plan_prescale(_inputs(shift, state, ports), shift, ports.clock.now())
    launching = {order.group for order in prescale.orders}
    suspended = balanced(group for group in state.selected if group.name in launching)
    return with_orders(replace(prescale, suspended=tuple(sorted(suspended))), prescale.orders, state, shifts)


def _inputs(shift: ZonalShift, state: ClusterState, ports: Ports) -> PrescaleInputs:
    groups = {group.name: group for group in state.selected if shift.zone in group.zones and _prescales(group, state)}
    upgrades = ports.upgrades.read_all(sorted(groups))
    shifts = known_or(state.shifts, NOT_SHIFTED)
    return PrescaleInputs(
        evacuation=inputs_of(state, ports, ()),
        facts=replace(ClusterFacts.from_sheets(ports.catalog.read(state.cluster)), shifts=shifts),
        maxima=_owners_maxima(sorted(groups), ports),
        upgraded=frozenset(name for name, upgrade in upgrades.items() if upgrade.ended is None),
    )


def _owners_maxima(groups: Sequence[str], ports: Ports) -> dict[str, int]:
    """Return MaxSize of each group as its owner chose it. The groups are read again: this very pass may have put back
    what replacements had raised.
    """
    raised, described = ports.maxima.read_all(groups), ports.groups.describe(groups)
    return {
        name: raised[name].before if name in raised and group.maximum in raised[name].raised else group.maximum
        for name, group in described.items()
    }


def _keep_or_end(
    record: ZoneRecord, prescale: Prescale, state: ClusterState, ports: Ports, result: ReconcileResult
) -> ZoneRecord:
    """Protect the new nodes from Cluster Autoscaler while the shift lasts; then request their offsets, and remove the
    prescale when all of them are settled. AZRebalance is resumed in each group that is settled, unless a later prescale
    relies on its suspension.
    """
    known = next((one for one in record.prescales if one.identity == prescale.identity), None)
    if known is None:
        return record
    kubernetes, owner = ports.clusters.kubernetes(state.cluster), f"{well_known.OF_PRESCALE}{known.zone}"
    nodes = [node for node in state.nodes if node.instance_id in known.launched]
    if known.ended is None:
        protect(nodes, owner, kubernetes)
        return record
    release(nodes, owner, kubernetes)
    upgraded = being_upgraded(known.groups, ports) if known.launched else frozenset()
    record, known = _choose_offsets(record, known, upgraded, state, ports)
    unsettled = _offset(known, state, ports, result)
    after = replace(known, launched={new: node for new, node in known.launched.items() if node.group in unsettled})
    later = (one for one in record.prescales if one.identity > known.identity)
    held = uneven((after, *later), ports.clock.now()) & set(known.suspended)
    left = held | resume(set(known.suspended) - held, state, ports)
    if not unsettled and not left:
        return written(record.without_prescale(known), ports.catalog, ports.clock)
    after = replace(after, suspended=tuple(sorted(left)))
    return written(record.with_prescale(after), ports.catalog, ports.clock) if after != known else record


def _choose_offsets(
    record: ZoneRecord, prescale: Prescale, upgraded: frozenset[str], state: ClusterState, ports: Ports
) -> tuple[ZoneRecord, Prescale]:
    """Record the instance that offsets each launch, once, before any termination is requested; none for a launch that
    is written off. `upgraded`: groups whose launches wait: the upgrade restores the size that it has measured.
    """
    open_ones = {
        new: node.group
        for new, node in prescale.launched.items()
        if not node.offset_by and not node.undone and node.group not in upgraded
    }
    if not open_ones:
        return record, prescale
    spare = {group: _spare(group, prescale, state, ports.groups) for group in sorted(set(open_ones.values()))}
    without_offset, launched = undone(open_ones, prescale.began, ports), dict(prescale.launched)
    for new, group in open_ones.items():
        taken = {node.offset_by for node in launched.values()} | open_ones.keys() - {new}
        written_off = new in without_offset or not spare[group]
        by = "" if written_off else offsetting(new, group, taken, ports)
        spare[group] -= bool(by)
        launched[new] = replace(launched[new], offset_by=by, undone=not by)
    prescale = replace(prescale, launched=launched)
    return written(record.with_prescale(prescale), ports.catalog, ports.clock), prescale


def _spare(name: str, prescale: Prescale, state: ClusterState, groups: Groups) -> int:
    """Return by how many the group may become smaller: not below its MinSize, and not at all where another actor has
    chosen a smaller size since the launch, with the larger one in view.
    """
    group = state.groups.get(name)
    if group is None or shrunk_since(groups.activities(name, prescale.began), prescale.began):
        return 0
    return max(group.desired - group.minimum, 0)


def _offset(prescale: Prescale, state: ClusterState, ports: Ports, result: ReconcileResult) -> frozenset[str]:
    """Request the termination that offsets each launch; return the groups in which one of them has not ended, or is not
    chosen yet. A member that was returned to service has passed its offset on, which the terminations account for. One
    whose record cannot be read is named, and has ended when EC2 says so.
    """
    offsets = {new: node.offset_by for new, node in prescale.launched.items() if node.offset_by}
    records = read_apart(sorted(set(offsets.values())), ports.claims)
    known = ports.instances.describe(offsets.values()) if offsets else {}
    for new, by in offsets.items():
        node, record = prescale.launched[new], records.read.get(by)
        if by in records.unreadable or (record is not None and record.knows(surplus_id(ahead(new)))):
            continue
        launch = Launch(group=node.group, zone=node.zone, subnet=node.subnet)
        reason = f"{new} was launched ahead for pods of {prescale.zone}, and its zonal shift is over"
        request_offset(new, by, launch, state.cluster, known.get(by), reason, ports)
    closed = {by for by, record in records.read.items() if record.status is Status.CLOSED}
    for by, error in records.unreadable.items():
        result.note(f"the record of {by}", error)
        closed |= {by} if by not in known or known[by].ended else set()
    launched = prescale.launched.values()
    return frozenset(node.group for node in launched if not node.undone and node.offset_by not in closed)
