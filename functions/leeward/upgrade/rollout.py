"""One turn of a running upgrade: settle what has ended, launch what comes ahead, request terminations of old nodes.

Everything is decided on one observation, written into the record in one conditional write, and only then done.
Killed before the write, nothing has happened; killed after it, the next turn finds in the record what was still to
be done.

The drain step repeats turns until no old node is left or something blocks them. Every wait ends: with the next turn,
or with a failure that names what blocks it (`waits.py`). Only an operator's pause, a closed window and a budget of 0
are waited for without a limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil
from typing import Any

from leeward.model.capacity import Offset
from leeward.model.counts import count_of
from leeward.model.group import ScalingActivity
from leeward.model.launch_refusal import EVENT, sentence
from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.compute import Templates
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Claims, Upgrades
from leeward.snapshot.gather import read_specs
from leeward.termination import capacity_ledger
from leeward.termination.capacity_ledger import by_request, shrunk_since
from leeward.termination.requests import read_apart
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
from leeward.upgrade.failures import creation_failures, describe_blocked, eviction_failures, sentences
from leeward.upgrade.gate import Gate, Lack, gate_of, is_proven, zones_to_serve
from leeward.upgrade.members import Age
from leeward.upgrade.observation import Observation, launched_by_others, measured, observe
from leeward.upgrade.preflight.model import Preflight, others_disrupting, why_zones_wait
from leeward.upgrade.record import NotedHold, UpgradeRecord, tag_for
from leeward.upgrade.run import UpgradeNext, UpgradeRun, read, written
from leeward.upgrade.surge.launches import launches, settled
from leeward.upgrade.surge.orders import DESIRED_SIZE, adopted, launch_ordered, order, raise_desired_size
from leeward.upgrade.targets import launched_instead, launched_since, wait_or_fail
from leeward.upgrade.terminations import request_force, request_terminations, set_cordons
from leeward.upgrade.waits import (
    LONGEST,
    MOST_NAMED,
    SHORTEST,
    STALLED,
    UpgradeWait,
    again,
    allowed,
    announce,
    held,
    leaving_nodes,
    longest_wait,
    noted_hold,
    pods_left,
    resumed,
    taken_back,
    track_wait,
    watch_of,
    with_alarms,
    with_canary,
    with_rollback,
)
from leeward.upgrade.waves.drain_selection import PodCapacity, busy_nodes, starts, still_there, to_try, waiting
from leeward.upgrade.waves.shared_budgets import still_allowed, without_misfits
from leeward.workflow.scale_down_protection import protect

BUSY_PAUSES = (3, 10)  # seconds between two observations while nodes drain, minimum and maximum
ONE_DRAIN = 30  # seconds of an unblocked drain: the usual grace of pods
BOOT_PAUSE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Result of a turn."""

    record: UpgradeRecord
    observation: Observation
    permission: Permission
    requests: int = 0
    exhausted: bool = False  # INCREMENTAL has launched 2 x zones and a zone is still without a new node
    # old instances that their hook holds, whose pods have not left in time -> why
    held: Mapping[str, str] = field(default_factory=dict)

    @property
    def progress(self) -> str:
        """Counts of the old nodes, in a sentence."""
        left = waiting(self.observation.preflight, self.record)
        return (
            f"{count_of(len(left), 'old node waits', 'old nodes wait')}, "
            f"{len(self.record.under_way)} terminating, {self.record.finished} gone"
        )


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


def drain(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Request the termination of the old nodes that start now. Each drains, settles and ends in an execution of its
    own; no node waits for the end of a wave.
    """
    turn = take_turn(read(run, ports.upgrades), ports, drains=True)
    followed = noted_hold(_follow(run, turn, ports), turn.record, ports.upgrades)
    return replace(followed, healthy=turn.observation.healthy)


def _follow(run: UpgradeRun, turn: Turn, ports: Ports) -> UpgradeRun:
    record, preflight = turn.record, turn.observation.preflight
    if not preflight.old and not record.under_way:
        return _drains_done(run, turn, ports.clock)
    if turn.permission.hold is Hold.TEMPLATE:
        return wait_or_fail(run, record, turn.permission.why, ports.clock, ports.upgrades)
    if _canary_is_held(turn):
        return _none_started(run, turn, ports)
    if turn.permission.move is not Move.GO:
        stalled = _stalled(run, turn, ports) if _canary_terminates(turn) else None
        return stalled or held(run, turn.permission, len(record.under_way), ports.clock.now())
    set_cordons(record, turn.observation, ports.clusters)
    if turn.requests or leaving_nodes(preflight, record, turn.held):
        pause = SHORTEST if turn.requests else busy_pause(preflight.parallel)
        pause = min(pause, until_a_place(preflight, record, ports.clock.now()) or pause)
        return _stalled(run, turn, ports) or again(run, UpgradeNext.WAIT, pause, turn.progress)
    return _none_started(run, turn, ports)


def _stalled(run: UpgradeRun, turn: Turn, ports: Ports) -> UpgradeRun | None:
    """Return None while one of the terminating nodes moves, else the failure with what blocks them: the upgrade's own,
    and those that another controller or a person terminates and cannot terminate.
    """
    preflight = turn.observation.preflight
    nodes = leaving_nodes(preflight, turn.record, turn.held)
    limit = longest_wait(turn.observation.policy.drain)
    wait = UpgradeWait(what="waiting for nodes to leave", objects=nodes, limit=limit, pods=pods_left(nodes, preflight))
    _, stalled = track_wait(turn.record, wait, ports.clock, ports.upgrades)
    if not stalled:
        return None
    blocked = describe_blocked(nodes, turn.record, turn.observation, ports.claims)
    return replace(
        run,
        next=UpgradeNext.EVICTION_FAILURE,
        why=f"nodes have not left in {format_duration(limit)}: {turn.progress}: {blocked}",
    )


def _canary_is_held(turn: Turn) -> bool:
    """Return whether the canary waits for nodes that their hook holds because pods do not leave: no other node starts
    until then, and no time-out ends it.
    """
    waits = turn.permission.hold is Hold.CANARY and turn.permission.until is None
    return waits and bool(turn.held) and not turn.record.under_way.keys() - turn.held.keys()


def _canary_terminates(turn: Turn) -> bool:
    """Return whether the canary waits for terminating nodes: a wait that no operator and no clock ends."""
    return turn.permission.hold is Hold.CANARY and turn.permission.until is None and bool(turn.record.under_way)


def _drains_done(run: UpgradeRun, turn: Turn, clock: Clock) -> UpgradeRun:
    """Finish the drains. Old nodes may have gone while their successors still booted: those have to join before the
    step is done.
    """
    late = Gate(
        missing=tuple(one for one in gate_of(turn.observation.preflight).missing if one.lack is Lack.NOT_JOINED)
    )
    if late.open:
        return replace(run, next=UpgradeNext.SCALE_DOWN, why="no node of an older template version is left")
    failures = creation_failures(turn.record, turn.observation, late, clock.now(), exhausted=False)
    if failures:
        return replace(run, next=UpgradeNext.CREATION_FAILURE, why=sentences(failures))
    return again(run, UpgradeNext.WAIT, BOOT_PAUSE, "; ".join(one.message for one in late.missing))


def _none_started(run: UpgradeRun, turn: Turn, ports: Ports) -> UpgradeRun:
    """Wait or fail when no node is terminating and none could start: report why, and limit the wait."""
    record, preflight = turn.record, turn.observation.preflight
    shifted = why_zones_wait(preflight.snapshot, preflight.group)
    if shifted and not turn.held and not waiting(preflight, record):
        return _waits(run, f"{turn.progress}; the others wait for the end of the {shifted}", ports.clock)
    if turn.held or not to_try(preflight, record):
        reasons = {**record.reasons, **turn.held}
        causes = sentences(eviction_failures(preflight, {*record.failed, *turn.held}))
        blocked = causes or "; ".join(f"{old}: {why}" for old, why in reasons.items())
        return replace(run, next=UpgradeNext.EVICTION_FAILURE, why=f"pods did not leave: {turn.progress}: {blocked}")
    if preflight.limits.together <= 0:
        return _no_budget(run, turn, ports.clock, ports.upgrades)
    return _new_nodes_missing(run, turn, ports)


def _new_nodes_missing(run: UpgradeRun, turn: Turn, ports: Ports) -> UpgradeRun:
    """Wait for new nodes: without a limit where those that come ahead are in a zone with a zonal shift."""
    record, preflight, clock, upgrades = turn.record, turn.observation.preflight, ports.clock, ports.upgrades
    shifted = why_zones_wait(preflight.snapshot, preflight.group)
    record = resumed(run, record, clock, upgrades)
    failures = creation_failures(
        record, turn.observation, gate_of(turn.observation.preflight), clock.now(), exhausted=False
    )
    if failures:
        return replace(run, next=UpgradeNext.CREATION_FAILURE, why=sentences(failures))
    if busy := _unavailable(turn):
        return _places_taken(run, replace(turn, record=record), busy, ports)
    nodes = [one.instance.id for one in waiting(preflight, record)]
    wait = UpgradeWait(what="waiting for new nodes", objects=nodes, limit=STALLED)
    record, stalled = track_wait(record, wait, clock, upgrades)
    if stalled and shifted:
        return _waits(run, f"{turn.progress}; new nodes wait for the end of the {shifted}", clock)
    if stalled:
        why = "no Ready new node has come for them: look at the group's scaling activities and its budgets"
        return replace(run, next=UpgradeNext.CREATION_FAILURE, why=f"{turn.progress}: {why}")
    return again(run, UpgradeNext.WAIT, BOOT_PAUSE, f"{turn.progress}; waiting for new nodes")


def _unavailable(turn: Turn) -> list[str]:
    """Return instances that take every place of maxUnavailable and the budgets, empty while one is free: those of the
    group that are terminated for other causes, new ones too.
    """
    preflight = turn.observation.preflight
    instances = {node.name: node.instance_id for node in preflight.snapshot.nodes}
    busy = [instances.get(one.name) or one.name for one in busy_nodes(preflight, turn.record)]
    return busy if len(busy) >= preflight.limits.together else []


def _places_taken(run: UpgradeRun, turn: Turn, busy: list[str], ports: Ports) -> UpgradeRun:
    """Wait for these nodes as long as pods leave them, else fail with what blocks them: no old node may start."""
    limit = longest_wait(turn.observation.policy.drain)
    left = pods_left(busy, turn.observation.preflight)
    wait = UpgradeWait(what="waiting for places", objects=busy, limit=limit, pods=left)
    _, stalled = track_wait(turn.record, wait, ports.clock, ports.upgrades)
    taken = f"{turn.progress}; as many nodes as may be unavailable are: {', '.join(sorted(busy)[:MOST_NAMED])}"
    if not stalled:
        return again(run, UpgradeNext.WAIT, BOOT_PAUSE, taken)
    blocked = describe_blocked(busy, turn.record, turn.observation, ports.claims)
    return replace(run, next=UpgradeNext.EVICTION_FAILURE, why=f"{taken}, for {format_duration(limit)}: {blocked}")


def _no_budget(run: UpgradeRun, turn: Turn, clock: Clock, upgrades: Upgrades) -> UpgradeRun:
    """Wait for a budget of 0, which is the operator's; a budget that nodes of the policy's other groups hold is waited
    for as well, as long as these change.
    """
    holders = others_disrupting(turn.observation.preflight)
    if not holders:
        return _waits(run, f"{turn.progress}; the budgets for Upgrade allow none now", clock)
    limit = longest_wait(turn.observation.policy.drain)
    wait = UpgradeWait(what="waiting for budgets", objects=holders, limit=limit)
    _, stalled = track_wait(turn.record, wait, clock, upgrades)
    held_by = f"{turn.progress}; the budgets for Upgrade are held by {', '.join(holders[:MOST_NAMED])}"
    if stalled:
        fix = "make these nodes Ready or finish their disruption, or raise the policy's budget"
        return replace(run, next=UpgradeNext.EVICTION_FAILURE, why=f"{held_by} for {format_duration(limit)}: {fix}")
    return again(run, UpgradeNext.WINDOW, LONGEST, held_by)


def until_a_place(preflight: Preflight, record: UpgradeRecord, now: datetime) -> int | None:
    """Return the seconds until the next node that drains is empty at the latest, because its last pods have been asked
    to end; None while no such moment lies ahead. The observation after it starts the next node.
    """
    draining = {one.name for one in busy_nodes(preflight, record)}
    pods = (filter(still_there, preflight.snapshot.pods_on(name)) for name in draining)
    ends = [[pod.deletion for pod in of_node] for of_node in pods]
    empty = [max(filter(None, of_node)) for of_node in ends if of_node and None not in of_node]
    return min((ceil((moment - now).total_seconds()) for moment in empty if moment > now), default=None)


def _waits(run: UpgradeRun, why: str, clock: Clock) -> UpgradeRun:
    """Return the run held without a limit, by the policy or by a zonal shift."""
    hold = NotedHold(kind=Hold.WINDOW.value, since=clock.now(), why=why)
    return replace(again(run, UpgradeNext.WINDOW, LONGEST, why), hold=hold)


def busy_pause(parallel: int) -> int:
    """Return the pause after which about one of so many nodes that drain in parallel is empty, and
    the next may start.
    """
    least, most = BUSY_PAUSES
    return min(max(ONE_DRAIN // parallel, least), most)
