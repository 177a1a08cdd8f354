"""The drain step of node-group-upgrade: old nodes drain in their order, until none is left or something blocks them.

Every wait ends: with the next turn, or with a failure that names what blocks it (`waits.py`). Only an operator's
pause, a closed window and a budget of 0 are waited for without a limit."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from math import ceil
from typing import Any

from leeward.model.counts import count_of
from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Upgrades
from leeward.upgrade.control import Hold, Move
from leeward.upgrade.cordoning import set_cordons
from leeward.upgrade.creation_failures import creation_failures
from leeward.upgrade.eviction_failures import describe_blocked, eviction_failures
from leeward.upgrade.gate import Gate, Lack, gate_of
from leeward.upgrade.lease import read
from leeward.upgrade.preflight.model import Preflight, others_disrupting, why_zones_wait
from leeward.upgrade.record import NotedHold, UpgradeRecord
from leeward.upgrade.rollout import Turn, take_turn
from leeward.upgrade.run import Next, Run
from leeward.upgrade.template_moves import wait_or_fail
from leeward.upgrade.waits import (
    LONGEST,
    MOST_NAMED,
    SHORTEST,
    STALLED,
    again,
    held,
    leaving_nodes,
    longest_wait,
    noted_hold,
    pods_left,
    resumed,
    track_wait,
)
from leeward.upgrade.waves.drain_selection import busy_nodes, still_there, to_try, waiting

BUSY_PAUSES = (3, 10)  # seconds between two observations while nodes drain, minimum and maximum
ONE_DRAIN = 30  # seconds of an unblocked drain: the usual grace of pods
BOOT_PAUSE = 5


def drain(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Request the termination of the old nodes that start now. Each drains, settles and ends in an execution of its
    own; no node waits for the end of a wave.
    """
    turn = take_turn(read(run, ports.upgrades), ports, drains=True)
    followed = noted_hold(_follow(run, turn, ports), turn.record, ports.upgrades)
    return replace(followed, healthy=turn.observation.healthy)


def _follow(run: Run, turn: Turn, ports: Ports) -> Run:
    record, preflight = turn.record, turn.observation.preflight
    if not preflight.old and not record.under_way:
        return _drains_done(run, turn, ports.clock)
    left = waiting(preflight, record)
    progress = (
        f"{count_of(len(left), 'old node waits', 'old nodes wait')}, "
        f"{len(record.under_way)} terminating, {record.finished} gone"
    )
    if turn.permission.hold is Hold.TEMPLATE:
        return wait_or_fail(run, record, turn.permission.why, ports.clock, ports.upgrades)
    if _canary_is_held(turn):
        return _none_started(run, turn, progress, ports)
    if turn.permission.move is not Move.GO:
        stalled = _stalled(run, turn, progress, ports) if _canary_terminates(turn) else None
        return stalled or held(run, turn.permission, len(record.under_way), ports.clock.now())
    set_cordons(record, turn.observation, ports.clusters)
    if turn.requests or leaving_nodes(preflight, record, turn.held):
        pause = SHORTEST if turn.requests else busy_pause(preflight.parallel)
        pause = min(pause, until_a_place(preflight, record, ports.clock.now()) or pause)
        return _stalled(run, turn, progress, ports) or again(run, Next.WAIT, pause, progress)
    return _none_started(run, turn, progress, ports)


def _stalled(run: Run, turn: Turn, progress: str, ports: Ports) -> Run | None:
    """Return None while one of the terminating nodes moves, else the failure with what blocks them: the upgrade's own,
    and those that another controller or a person terminates and cannot terminate.
    """
    preflight = turn.observation.preflight
    nodes = leaving_nodes(preflight, turn.record, turn.held)
    limit = longest_wait(turn.observation.policy.drain)
    left = pods_left(nodes, preflight)
    _, stalled = track_wait(
        turn.record, "waiting for nodes to leave", nodes, limit, ports.clock, ports.upgrades, pods=left
    )
    if not stalled:
        return None
    blocked = describe_blocked(nodes, turn.record, turn.observation, ports.claims)
    return replace(
        run, next=Next.EVICTION_FAILURE, why=f"nodes have not left in {format_duration(limit)}: {progress}: {blocked}"
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


def _drains_done(run: Run, turn: Turn, clock: Clock) -> Run:
    """Finish the drains. Old nodes may have gone while their successors still booted: those have to join before the
    step is done.
    """
    late = Gate(
        missing=tuple(one for one in gate_of(turn.observation.preflight).missing if one.lack is Lack.NOT_JOINED)
    )
    if late.open:
        return replace(run, next=Next.SCALE_DOWN, why="no node of an older template version is left")
    failures = creation_failures(turn.record, turn.observation, late, clock.now(), exhausted=False)
    if failures:
        return replace(run, next=Next.CREATION_FAILURE, why="; ".join(f"{one.message}: {one.fix}" for one in failures))
    return again(run, Next.WAIT, BOOT_PAUSE, "; ".join(one.message for one in late.missing))


def _none_started(run: Run, turn: Turn, progress: str, ports: Ports) -> Run:
    """Wait or fail when no node is terminating and none could start: report why, and limit the wait."""
    record, preflight = turn.record, turn.observation.preflight
    shifted = why_zones_wait(preflight.snapshot, preflight.group)
    if shifted and not turn.held and not waiting(preflight, record):
        return _waits(run, f"{progress}; the others wait for the end of the {shifted}", ports.clock)
    if turn.held or not to_try(preflight, record):
        reasons = {**record.reasons, **turn.held}
        causes = [f"{one.message}: {one.fix}" for one in eviction_failures(preflight, {*record.failed, *turn.held})]
        blocked = "; ".join(causes or [f"{old}: {why}" for old, why in reasons.items()])
        return replace(run, next=Next.EVICTION_FAILURE, why=f"pods did not leave: {progress}: {blocked}")
    if preflight.limits.together <= 0:
        return _no_budget(run, turn, progress, ports.clock, ports.upgrades)
    return _new_nodes_missing(run, turn, progress, ports)


def _new_nodes_missing(run: Run, turn: Turn, progress: str, ports: Ports) -> Run:
    """Wait for new nodes: without a limit where those that come ahead are in a zone with a zonal shift."""
    record, preflight, clock, upgrades = turn.record, turn.observation.preflight, ports.clock, ports.upgrades
    shifted = why_zones_wait(preflight.snapshot, preflight.group)
    record = resumed(run, record, clock, upgrades)
    failures = creation_failures(
        record, turn.observation, gate_of(turn.observation.preflight), clock.now(), exhausted=False
    )
    if failures:
        return replace(run, next=Next.CREATION_FAILURE, why="; ".join(f"{one.message}: {one.fix}" for one in failures))
    if busy := _unavailable(turn):
        return _places_taken(run, replace(turn, record=record), busy, progress, ports)
    nodes = [one.instance.id for one in waiting(preflight, record)]
    record, stalled = track_wait(record, "waiting for new nodes", nodes, STALLED, clock, upgrades)
    if stalled and shifted:
        return _waits(run, f"{progress}; new nodes wait for the end of the {shifted}", clock)
    if stalled:
        why = f"{progress}: no Ready new node has come for them: look at the group's scaling activities and its budgets"
        return replace(run, next=Next.CREATION_FAILURE, why=why)
    return again(run, Next.WAIT, BOOT_PAUSE, f"{progress}; waiting for new nodes")


def _unavailable(turn: Turn) -> list[str]:
    """Return instances that take every place of maxUnavailable and the budgets, empty while one is free: those of the
    group that are terminated for other causes, new ones too.
    """
    preflight = turn.observation.preflight
    instances = {node.name: node.instance_id for node in preflight.snapshot.nodes}
    busy = [instances.get(one.name) or one.name for one in busy_nodes(preflight, turn.record)]
    return busy if len(busy) >= preflight.limits.together else []


def _places_taken(run: Run, turn: Turn, busy: list[str], progress: str, ports: Ports) -> Run:
    """Wait for these nodes as long as pods leave them, else fail with what blocks them: no old node may start."""
    limit = longest_wait(turn.observation.policy.drain)
    left = pods_left(busy, turn.observation.preflight)
    _, stalled = track_wait(turn.record, "waiting for places", busy, limit, ports.clock, ports.upgrades, pods=left)
    taken = f"{progress}; as many nodes as may be unavailable are: {', '.join(sorted(busy)[:MOST_NAMED])}"
    if not stalled:
        return again(run, Next.WAIT, BOOT_PAUSE, taken)
    blocked = describe_blocked(busy, turn.record, turn.observation, ports.claims)
    return replace(run, next=Next.EVICTION_FAILURE, why=f"{taken}, for {format_duration(limit)}: {blocked}")


def _no_budget(run: Run, turn: Turn, progress: str, clock: Clock, upgrades: Upgrades) -> Run:
    """Wait for a budget of 0, which is the operator's; a budget that nodes of the policy's other groups hold is waited
    for as well, as long as these change.
    """
    holders = others_disrupting(turn.observation.preflight)
    if not holders:
        return _waits(run, f"{progress}; the budgets for Upgrade allow none now", clock)
    limit = longest_wait(turn.observation.policy.drain)
    _, stalled = track_wait(turn.record, "waiting for budgets", holders, limit, clock, upgrades)
    held_by = f"{progress}; the budgets for Upgrade are held by {', '.join(holders[:MOST_NAMED])}"
    if stalled:
        fix = "make these nodes Ready or finish their disruption, or raise the policy's budget"
        return replace(run, next=Next.EVICTION_FAILURE, why=f"{held_by} for {format_duration(limit)}: {fix}")
    return again(run, Next.WINDOW, LONGEST, held_by)


def until_a_place(preflight: Preflight, record: UpgradeRecord, now: datetime) -> int | None:
    """Return the seconds until the next node that drains is empty at the latest, because its last pods have been asked
    to end; None while no such moment lies ahead. The observation after it starts the next node.
    """
    draining = {one.name for one in busy_nodes(preflight, record)}
    pods = (filter(still_there, preflight.snapshot.pods_on(name)) for name in draining)
    ends = [[pod.deletion for pod in of_node] for of_node in pods]
    empty = [max(filter(None, of_node)) for of_node in ends if of_node and None not in of_node]
    return min((ceil((moment - now).total_seconds()) for moment in empty if moment > now), default=None)


def _waits(run: Run, why: str, clock: Clock) -> Run:
    """Return the run held without a limit, by the policy or by a zonal shift."""
    hold = NotedHold(kind=Hold.WINDOW.value, since=clock.now(), why=why)
    return replace(again(run, Next.WINDOW, LONGEST, why), hold=hold)


def busy_pause(parallel: int) -> int:
    """Return the pause after which about one of so many nodes that drain in parallel is empty, and
    the next may start.
    """
    least, most = BUSY_PAUSES
    return min(max(ONE_DRAIN // parallel, least), most)
