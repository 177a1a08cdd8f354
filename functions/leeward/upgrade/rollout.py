"""One turn of a running upgrade: settle what has ended, launch what comes ahead, request terminations of old nodes.

Everything is decided on one observation, written into the record in one conditional write, and only then done.
Killed before the write, nothing has happened; killed after it, the next turn finds in the record what was still to
be done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from leeward.model.capacity import Offset
from leeward.model.group import ScalingActivity
from leeward.model.launch_refusal import EVENT, sentence
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.compute import Templates
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Claims
from leeward.snapshot.gather import read_specs
from leeward.termination import capacity_ledger
from leeward.termination.capacity_ledger import by_request, shrunk_since
from leeward.termination.requests import read_apart
from leeward.upgrade.alarms import announce, taken_back, watch_of, with_alarms, with_rollback
from leeward.upgrade.capacity_ledger import (
    LedgerView,
    conclude,
    detect_resize,
    ended_before_request,
    held_by_hook,
    with_late_offsets,
    without,
)
from leeward.upgrade.control import Hold, Move, Permission
from leeward.upgrade.gate import is_proven, zones_to_serve
from leeward.upgrade.lease import written
from leeward.upgrade.members import Age
from leeward.upgrade.observation import (
    Observation,
    launched_by_others,
    measured,
    observe,
)
from leeward.upgrade.record import UpgradeRecord, tag_for
from leeward.upgrade.surge.ended_launches import settled
from leeward.upgrade.surge.launches import launches
from leeward.upgrade.surge.orders import DESIRED_SIZE, adopted, launch_ordered, order, raise_desired_size
from leeward.upgrade.template_moves import launched_instead, launched_since
from leeward.upgrade.termination_requests import request_force, request_terminations
from leeward.upgrade.waits import allowed, with_canary
from leeward.upgrade.waves.drain_selection import starts
from leeward.upgrade.waves.early_starts import PodCapacity
from leeward.upgrade.waves.recorded_starts import without_misfits
from leeward.upgrade.waves.shared_budgets import still_allowed
from leeward.workflow.scale_down_protection import protect


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Result of a turn. `exhausted`: INCREMENTAL has launched 2 x zones and a zone is still without a new node; `held`:
    old instances that their hook holds, whose pods have not left in time, and why.
    """

    record: UpgradeRecord
    observation: Observation
    permission: Permission
    requests: int = 0
    exhausted: bool = False
    held: Mapping[str, str] = field(default_factory=dict)


def take_turn(before: UpgradeRecord, ports: Ports, *, drains: bool) -> Turn:
    """Take one turn. `drains`: whether terminations of old nodes may be requested, or new ones only launched."""
    before = launch_ordered(before, ports)  # a launch whose response was lost comes before every count
    observation = observe(before, ports)
    known = observation.terminations
    ends = {old: known.read[old] for old in before.under_way if old in known.read}
    ledger = conclude(before, ends, before.under_way.keys() & known.unreadable.keys())
    record = without_misfits(_without_gone(ledger, observation), ledger.unclaimed, ends, observation.preflight)
    record = _resized(adopted(record, observation), observation, ports, gating=not drains)
    record = with_canary(record, observation, ports.clock.now())
    watch = watch_of(record, observation.policy.update, ports.alarms, ports.clock)
    record = with_alarms(record, watch.reading(), ports.clock.now())
    permission = allowed(record, observation, ports.clock)
    record = with_rollback(record, permission)
    permission = _unless_moved(permission, record, observation, ports.templates)
    unclaimed = [old for old in ledger.unclaimed if old in record.under_way]
    exhausted = False
    if permission.move is Move.GO:
        record = _proven(record, observation, ports.clock)
        rolling = record.proven is not None and permission.at_most is None
        zones = launches(observation.preflight, record, rolling=rolling, gating=not drains)
        exhausted = zones is None
        record = order(record, observation, zones or (), ports.network, ports.catalog)
        if drains:
            record, late = with_late_offsets(record, ends)
            record, requested = _begin(record, observation, permission.at_most, ports.clusters)
            unclaimed += [*late, *requested]
    if record != before:
        record = written(record, ports.upgrades)
    new = (one.node for one in observation.preflight.members if one.age is Age.NEW and one.node is not None)
    protect(new, record.group, ports.clusters.kubernetes(record.cluster))
    gating = not drains and permission.move is Move.GO
    record = launch_ordered(raise_desired_size(record, observation, ports, gating=gating), ports)
    _announce_refusal(before, record, observation, ports.clock, ports.clusters)
    announce(before, record, observation, ports.clock, ports.clusters)
    record, unclaimed = still_allowed(record, unclaimed, observation.preflight, ports)
    alarmed = permission.hold is Hold.ALARM
    left = request_terminations(record, unclaimed, observation, ports, may_start=lambda: not alarmed and watch.allows())
    record, begun = taken_back(record, left, ports.claims, ports.upgrades)
    request_terminations(record, begun, observation, ports)
    request_force(record, ledger.unforced, observation, ports)
    held = held_by_hook(record, ends, observation.policy.drain.timeout, ports.clock.now())
    return Turn(
        record=record,
        observation=observation,
        permission=permission,
        requests=len(unclaimed),
        exhausted=exhausted,
        held=held,
    )


def _unless_moved(
    permission: Permission, record: UpgradeRecord, observation: Observation, templates: Templates
) -> Permission:
    """Return the permission, a hold while the group launches anything but the target."""
    if permission.move is not Move.GO:
        return permission
    since = launched_since(record, observation)
    instead = launched_instead(record, observation.group, templates, resolve=since)
    return Permission(move=Move.HOLD, hold=Hold.TEMPLATE, why=instead) if instead else permission


def _begin(
    record: UpgradeRecord, observation: Observation, at_most: int | None, clusters: Clusters
) -> tuple[UpgradeRecord, list[str]]:
    """Record the old nodes whose termination is requested, and the new node that each offsets."""

    def capacity() -> PodCapacity:
        nodes, pods = read_specs(clusters.kubernetes(record.cluster))
        return PodCapacity(nodes=nodes, pods=pods)

    seed = int(record.began.timestamp())
    chosen = starts(observation.preflight, record, at_most=at_most, seed=seed, capacity=capacity)
    tags = {one.old: tag_for(record, number) for number, one in enumerate(chosen, record.started + 1)}
    early = (*record.early, *(one.old for one in chosen if one.early))
    under_way = {**record.under_way, **tags}
    begun = replace(record, under_way=under_way, started=record.started + len(chosen), early=early)
    return begun.with_offsets({one.new: one.old for one in chosen if one.new is not None}), [one.old for one in chosen]


def _proven(record: UpgradeRecord, observation: Observation, clock: Clock) -> UpgradeRecord:
    """Record since when more new nodes come ahead than the surge: those that the next turns need boot while the gate
    waits for the last of the first.
    """
    preflight = observation.preflight
    zones = zones_to_serve(preflight)
    labels, most = preflight.target.labels, preflight.max_surge
    if record.proven is not None or not zones or not is_proven(preflight.members, zones, labels, most=most):
        return record
    return replace(record, proven=clock.now())


def _without_gone(ledger: LedgerView, observation: Observation) -> UpgradeRecord:
    """Drop old instances without a termination request that EC2 has ended since: they are gone by themselves."""
    record = ledger.record
    for old in ledger.unclaimed:
        instance = observation.instances.get(old)
        if instance is None or instance.ended:
            record = ended_before_request(record, old)
    return record


def _resized(record: UpgradeRecord, observation: Observation, ports: Ports, *, gating: bool) -> UpgradeRecord:
    """Detect changes of the size by others. The history is read where the group is not as the record explains, other
    terminations only where it is larger. Where no launch of the upgrade is in the size, the changed size is the one to
    restore, also a smaller one from which others took members out with decrement. So it is at the gate once the
    launches that are in it have been left to others: without launches ahead the gate would wait for new nodes that
    never come.
    """
    if record.others_scaled is not None:
        left = without(record, record.unassigned)  # the old node of such a launch has not left: it is left to others
        return measured(left, observation.group, ports) if gating and not left.in_sizes else record
    shrunk = False
    if not _is_explained(record, observation):
        activities = ports.groups.activities(record.group, record.measured)
        shrunk = shrunk_since(activities, record.measured)
        record = _without_taken(record, observation, activities, ports.claims)
        if not shrunk:
            record = settled(record, observation, activities, ports.claims)
    desired = observation.group.desired
    others = launched_by_others(observation.group, ports.claims) if desired > record.explained else 0
    resized = detect_resize(record, desired=desired, of_others=others, shrunk=shrunk, now=ports.clock.now())
    if not record.in_sizes and (resized.others_scaled is not None or desired < record.desired):
        return measured(record, observation.group, ports)
    return resized


def _is_explained(record: UpgradeRecord, observation: Observation) -> bool:
    """Return whether the desired size is the recorded one and every launch that awaits an old node stays in the group:
    then no other actor has changed the size, and the group's history can tell nothing new. A launch that is owed is
    settled from the history.
    """
    present = observation.group.desired == record.explained and not record.owed
    return present and capacity_ledger.staying(observation.group) >= set(record.unassigned)


def _without_taken(
    record: UpgradeRecord, observation: Observation, activities: Sequence[ScalingActivity], claims: Claims
) -> UpgradeRecord:
    """Lower the size to give back by the instances that others took out of the group, with decrement, between the
    measuring of that size and the first launch: a launch may hang for minutes. Later decrements are by owners who saw
    the larger size. Terminations of Leeward are left out: the measured size knows of their launches.
    """
    members = [observation.instances[new] for new in record.ahead if new in observation.instances]
    if not members or record.launched > len(members):
        return record  # the first launch is offset, or has ended
    first = min(member.launched for member in members)
    if first <= record.measured:
        return record
    taken = {
        activity.leaves
        for activity in activities
        if activity.leaves is not None and by_request(activity) and record.measured <= activity.at < first
    }
    records = read_apart(taken, claims).read
    taken -= {name for name, one in records.items() if Offset(instance=name) in one.offsets.values()}
    return replace(record, desired=max(record.desired - len(taken), 0), sized=first)


def _announce_refusal(
    before: UpgradeRecord, after: UpgradeRecord, observation: Observation, clock: Clock, clusters: Clusters
) -> None:
    """Write the refusal as an Event of an old node, in the turn that met it. A repeat within ten minutes is one."""
    node = next((old.node for old in observation.preflight.old if old.node is not None), None)
    if after.refusal and after.refusal != before.refusal and node is not None:
        text = sentence(after.group, after.refusal, DESIRED_SIZE)
        kubernetes = clusters.kubernetes(after.cluster)
        kubernetes.event(node, reason=EVENT, message=text[:1000], warning=True, now=clock.now())
