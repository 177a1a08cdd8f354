"""The steps of node-group-upgrade up to the last drain; how it ends is in `ending.py`, managed groups in `managed.py`.

A reconciler: each step reads the record and the world, asks the pure modules, writes down what it is about to do, does
it, and returns the run document. Killed anywhere, the step can be run again; an execution that was stopped, failed or
timed out and is started again goes on where it was."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from leeward.ports import Ports
from leeward.upgrade import ending, managed
from leeward.upgrade.control import Hold, Move
from leeward.upgrade.cordoning import cordon, set_cordons
from leeward.upgrade.gate import Gate, Lack
from leeward.upgrade.holding import HELD, LONGEST, MOVES, SHORTEST, seconds_until
from leeward.upgrade.labels import labelled
from leeward.upgrade.lease import LeaseLostError, read, take_lease, written
from leeward.upgrade.never_joined import end_never_joined
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.rolling import Turn, take_turn
from leeward.upgrade.rounds import wait_for_round
from leeward.upgrade.run import Next, Run
from leeward.upgrade.scene import described, look, measured
from leeward.upgrade.sizes import most_extra, parallelism, surge
from leeward.upgrade.status import gate_of
from leeward.upgrade.staying import eviction_failures
from leeward.upgrade.stuck import creation_failures
from leeward.upgrade.survey import judge
from leeward.upgrade.templates import points_at, prepared
from leeward.upgrade.turn import to_try, waiting

Step = Callable[[Run, Mapping[str, Any], Ports], Run]
REBALANCE = "AZRebalance"
BUSY_PAUSES = (3, 10)  # seconds between two looks while nodes drain, the least and the most
ONE_DRAIN = 30  # seconds of an unhindered drain: the usual grace of pods
BOOT_PAUSE = 5
STALLED = timedelta(minutes=40)  # longer than a group tries to launch before anybody should look


def check(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Pre-flight: blockers that nobody has overridden by name stop it before anything is changed."""
    record = read(run, ports)
    wait_for_round(record, ports)
    if record.checked:
        return replace(run, next=Next.PREPARE, why="pre-flight was passed before; going on")
    verdict = judge(record, ports)
    if verdict.blocked:
        return replace(run, next=Next.BLOCKED, why=verdict.blocked)
    record = written(replace(record, checked=True), ports)
    return replace(run, next=Next.PREPARE, why=verdict.told)


def prepare(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Find out what the nodes shall become, and make the launch template version where there is none yet."""
    record = read(run, ports)
    group = described(record.group, ports)
    made = prepared(record, group, ports)
    if not record.prepared:
        if not record.in_sizes:  # since the lease was taken, those whom pre-flight waited for may have changed them
            made = measured(made, group, ports)
        made = labelled(made, group, ports.clusters.kubernetes(record.cluster).nodes(), ports)
    if made != record:
        written(made, ports)
    target = made.target.template
    return replace(run, next=Next.POINT, why=f"the target is {target.told}" if target else "no launch template")


def point(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """New instances come from the target from now on; zones are not balanced meanwhile, and there is room for the
    surge. What is changed in the group is written down before.
    """
    record = read(run, ports)
    scene = look(record, ports)
    group, strategy = scene.group, record.strategy
    zones = {one.zone for one in group.instances if one.zone}
    limit = surge(strategy, len(zones), parallelism(scene.policy.update, max(record.desired, 1)))
    left = max(len(scene.preflight.old), len(record.debts))
    maximum = record.maximum + most_extra(strategy, limit, scene.preflight.parallel, left)
    record = written(
        replace(
            record,
            surge=limit,
            suspended=record.suspended or REBALANCE not in group.suspended,
            raised_maximum=record.raised_maximum or maximum > group.maximum,
            raised_to=max(record.raised_to, maximum),
        ),
        ports,
    )
    if record.suspended:
        ports.group_changes.suspend(record.group, REBALANCE)
    if record.raised_maximum:
        ports.group_changes.raise_to(record.group, maximum=maximum)
    target = record.target.template
    if target is not None and not points_at(group, record.target, ports):
        ports.group_changes.point_at(group, target)
    return replace(run, next=Next.LAUNCH, why=f"{record.group} launches {target.told if target else 'as before'}")


def launch(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """The first new nodes, in the zones of the old ones. What an earlier start has launched in vain is ended before."""
    record = read(run, ports)
    end_never_joined(record, look(record, ports), ports)
    turn = take_turn(read(run, ports), ports, drains=False)
    new = ", ".join(turn.record.debts) or "none"
    return replace(run, next=Next.WAIT, why=f"new nodes ahead of the drains: {new}")


def gate(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """At least one new node in each zone that has nodes, every new node Ready, with the labels of the target. What does
    not come in time ends the upgrade with its cause.
    """
    turn = take_turn(read(run, ports), ports, drains=False)
    if turn.permission.hold is Hold.CANARY:  # told to go by an earlier start, behind an open gate
        return replace(run, next=Next.READY, why=turn.permission.why)
    if turn.permission.move is not Move.GO:
        return held(run, turn, ports)
    found = gate_of(turn.scene.preflight, turn.record.proven)
    if found.open:
        return replace(run, next=Next.READY, why="every new node is Ready, in every zone that has nodes")
    failures = creation_failures(turn.record, turn.scene, found, ports.clock.now(), exhausted=turn.exhausted)
    if failures:
        return replace(run, next=Next.CREATION_FAILURE, why="; ".join(f"{one.message}: {one.fix}" for one in failures))
    _phase(turn.record, "gate", ports)
    missing = "; ".join(one.message for one in found.missing)
    return again(run, Next.WAIT, BOOT_PAUSE, missing)


def drain(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Tell those old nodes to go whose turn has come. Each drains, settles and ends in an execution of its own; nobody
    waits for the end of a wave.
    """
    turn = take_turn(read(run, ports), ports, drains=True)
    record, preflight = turn.record, turn.scene.preflight
    if not preflight.old and not record.under_way:
        return _all_gone(run, turn, ports)
    left = waiting(preflight, record)
    told = f"{len(left)} old nodes wait, {len(record.under_way)} are on their way, {record.finished} are gone"
    if _canary_is_held(turn):
        return _nothing_goes(run, turn, told, ports)
    if turn.permission.move is not Move.GO:
        return held(run, turn, ports)
    set_cordons(record, turn.scene, ports)
    if record.under_way.keys() - turn.held or turn.told or len(left) < len(preflight.old):
        return again(run, Next.WAIT, SHORTEST if turn.told else busy_pause(preflight.parallel), told)
    return _nothing_goes(run, turn, told, ports)


def _canary_is_held(turn: Turn) -> bool:
    """The canary waits for nodes that their hook holds because pods do not leave: nobody else goes meanwhile, and no
    time-out ends it.
    """
    waits = turn.permission.hold is Hold.CANARY and turn.permission.until is None
    return waits and bool(turn.held) and not turn.record.under_way.keys() - turn.held.keys()


def _all_gone(run: Run, turn: Turn, ports: Ports) -> Run:
    """Old nodes may have gone while their successors still booted: those have to join before this is called done."""
    late = Gate(missing=tuple(one for one in gate_of(turn.scene.preflight).missing if one.lack is Lack.NOT_JOINED))
    if late.open:
        return replace(run, next=Next.SCALE_DOWN, why="no node of an older template version is left")
    failures = creation_failures(turn.record, turn.scene, late, ports.clock.now(), exhausted=False)
    if failures:
        return replace(run, next=Next.CREATION_FAILURE, why="; ".join(f"{one.message}: {one.fix}" for one in failures))
    return again(run, Next.WAIT, BOOT_PAUSE, "; ".join(one.message for one in late.missing))


def _nothing_goes(run: Run, turn: Turn, told: str, ports: Ports) -> Run:
    """Nobody is on his way and nobody could start: why, and for how long that is borne."""
    record, preflight = turn.record, turn.scene.preflight
    if turn.held or not to_try(preflight, record):
        reasons = {**record.reasons, **turn.held}
        causes = [f"{one.message}: {one.fix}" for one in eviction_failures(preflight, reasons)]
        said = "; ".join(causes or [f"{old}: {why}" for old, why in reasons.items()])
        return replace(run, next=Next.EVICTION_FAILURE, why=f"pods did not leave: {told}: {said}")
    if preflight.limits.together <= 0:
        return again(run, Next.WINDOW, LONGEST, f"{told}; the budgets for Upgrade allow none now")
    failures = creation_failures(record, turn.scene, gate_of(turn.scene.preflight), ports.clock.now(), exhausted=False)
    if failures:
        return replace(run, next=Next.CREATION_FAILURE, why="; ".join(f"{one.message}: {one.fix}" for one in failures))
    record = _phase(record, "waiting for new nodes", ports)
    if ports.clock.now() - (record.phase_since or record.began) > STALLED:
        why = f"{told}: no Ready new node has come for them: look at the group's scaling activities and its budgets"
        return replace(run, next=Next.CREATION_FAILURE, why=why)
    return again(run, Next.WAIT, BOOT_PAUSE, f"{told}; waiting for new nodes")


def busy_pause(parallel: int) -> int:
    """Of so many nodes that drain side by side one is empty about then, and the next may start."""
    least, most = BUSY_PAUSES
    return min(max(ONE_DRAIN // parallel, least), most)


def held(run: Run, turn: Turn, ports: Ports) -> Run:
    """Paused, outside the windows, baking, or to be undone."""
    permission = turn.permission
    if permission.move is Move.HOLD and permission.hold is not None:
        on_the_way = f"; {len(turn.record.under_way)} nodes finish" if turn.record.under_way else ""
        pause = seconds_until(permission.until, ports.clock.now())
        return again(run, HELD[permission.hold], pause, permission.why + on_the_way)
    return replace(run, next=MOVES[permission.move], why=permission.why)


def again(run: Run, onward: Next, pause: int, why: str) -> Run:
    """One more round after a pause."""
    return replace(run, next=onward, pause=max(pause, 1), rounds=run.rounds + 1, why=why)


def _phase(record: UpgradeRecord, name: str, ports: Ports) -> UpgradeRecord:
    """Since when this is waited for, counted anew after each start of a node: what lasts too long is told."""
    why = f"{name} (attempt {record.attempt}, after {record.started} nodes)"
    if record.why == why:
        return record
    return written(replace(record, phase_since=ports.clock.now(), why=why), ports)


def guarded(step: Step) -> Step:
    """Whoever has lost the lease ends, and says who has it."""

    def take(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
        try:
            return step(run, call, ports)
        except LeaseLostError as lost:
            return replace(run, next=Next.HAND_OVER, why=str(lost))

    return take


STEPS: Mapping[str, Step] = {
    "take-lease": take_lease,
    **{
        name: guarded(step)
        for name, step in {
            "check": check,
            "prepare": prepare,
            "point": point,
            "launch": launch,
            "gate": gate,
            "cordon": cordon,
            "drain": drain,
            **ending.STEPS,
            **managed.STEPS,
        }.items()
    },
}
