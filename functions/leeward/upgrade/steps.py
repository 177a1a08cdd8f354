"""The steps of node-group-upgrade before the first drain, and of an abort and a rollback.

The drains are in `rollout.py`, the ends in `completion.py`. Managed groups have a state machine of
their own, whose steps are in `managed/`.

A reconciler: each step reads the record and the cluster's state, calls the pure modules, records what it is about to
do, does it, and returns the run document. Killed anywhere, the step can be run again; an execution that was stopped,
failed or timed out and is started again resumes where it was."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.counts import count_of
from leeward.model.group import AZ_REBALANCE, Group
from leeward.model.launch_refusal import sentence
from leeward.model.termination import TerminationRecord
from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Upgrades
from leeward.termination import capacity_ledger
from leeward.termination.maximum_size import allow
from leeward.termination.requests import read_apart
from leeward.upgrade.capacity_ledger import (
    conclude,
    concluded,
    held_by_hook,
    offset_by,
    settle_held,
    with_late_offsets,
    with_warning,
)
from leeward.upgrade.completion import PAUSE, adopt_raised, request_offsets, scale_down, wait_for_size
from leeward.upgrade.completion import STEPS as END_STEPS
from leeward.upgrade.control import Hold, Move
from leeward.upgrade.failures import creation_failures, describe_blocked, sentences
from leeward.upgrade.gate import gate_of
from leeward.upgrade.members import Age
from leeward.upgrade.observation import Observation, described, measured, observe, with_owners_maximum
from leeward.upgrade.preflight.gather import labelled, labels_overridden, run_preflight
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.rollout import BOOT_PAUSE, Turn, drain, take_turn
from leeward.upgrade.run import UpgradeNext, UpgradeRun, read, wait_for_disruption, written
from leeward.upgrade.start import take_lease
from leeward.upgrade.surge.orders import DESIRED_SIZE, launch_ordered, zones_in_reach
from leeward.upgrade.surge.sizes import most_extra, parallelism, surge
from leeward.upgrade.targets import before_it, is_version, noted, point_group, prepared, set_by_others, wait_or_fail
from leeward.upgrade.terminations import cordon, end_never_joined, request_terminations, uncordon
from leeward.upgrade.waits import (
    SHORTEST,
    STALLED,
    UpgradeWait,
    again,
    held,
    hold_of,
    longest_wait,
    noted_hold,
    pods_left,
    resumed,
    track_wait,
)
from leeward.upgrade.waves.shared_budgets import still_allowed
from leeward.workflow.lease import guarded
from leeward.workflow.steps import Step


def check(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Run pre-flight: blockers that are not overridden by name stop the upgrade before anything is changed, and so does
    a group or a request that cannot be judged.
    """
    record = read(run, ports.upgrades)
    wait_for_disruption(record, ports.disruptions)
    if record.checked:
        return replace(run, next=UpgradeNext.PREPARE, why="pre-flight was passed before; continuing")
    try:
        result = run_preflight(record, ports)
    except InvalidInputError as error:
        return replace(run, next=UpgradeNext.BLOCKED, why=str(error))
    if result.blocked:
        return replace(run, next=UpgradeNext.BLOCKED, why=result.blocked)
    record = written(replace(record, checked=True), ports.upgrades)
    return replace(run, next=UpgradeNext.PREPARE, why=result.summary)


def prepare(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Determine the target, and make the launch template version where there is none yet. Each start measures the sizes
    again where no launch of the upgrade is left in them: owners may have changed them while no execution ran, and
    executions that pre-flight waited for since the lease was taken.
    """
    record = read(run, ports.upgrades)
    ended = concluded(record, ports.claims)  # read before the group: its size includes every offset that is found
    group = described(record.group, ports.groups)
    made = replace(prepared(ended, group, ports), pointed=record.prepared and record.pointed)
    made = with_owners_maximum(made, ports.groups, ports.maxima) if made.in_sizes else measured(made, group, ports)
    if not record.prepared or labels_overridden(record):
        made = labelled(made, group, ports.clusters.kubernetes(record.cluster).nodes(), ports.launches)
    if made != record:
        written(made, ports.upgrades)
    target = made.target.template
    return replace(run, next=UpgradeNext.POINT, why=f"the target is {target.label}" if target else "no launch template")


def point(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Launch new instances from the target from now on; suspend the balancing of zones, and raise the maximum size for
    the surge. Changes to the group are recorded first. Where Auto Scaling does not let the group use the template, the
    upgrade ends with the missing right.
    """
    record = read(run, ports.upgrades)
    observation = observe(record, ports)
    group, strategy = observation.group, record.strategy
    zones = {one.zone for one in group.instances if one.zone}
    parallel = parallelism(observation.policy.update, max(record.desired, 1))
    most = observation.preflight.max_surge
    limit = surge(strategy, len(zones), parallel, most)
    left = max(len(observation.preflight.old), len(record.ahead))
    maximum = record.maximum + most_extra(strategy, limit, observation.preflight.parallel, left, most)
    record = written(
        replace(
            noted(record, group, ports.templates),
            surge=limit,
            suspended=record.suspended or AZ_REBALANCE not in group.suspended,
        ),
        ports.upgrades,
    )
    if record.suspended:
        ports.group_changes.suspend(record.group, AZ_REBALANCE)
    if maximum > group.maximum:
        allow(record.group, ports, size=maximum)
    if not record.pointed:
        if denied := point_group(record, group, record.target, ports.group_changes, ports.templates):
            return replace(run, next=UpgradeNext.CREATION_FAILURE, why=denied)
        written(replace(record, pointed=True), ports.upgrades)
    target = record.target.template
    return replace(
        run, next=UpgradeNext.LAUNCH, why=f"{record.group} launches {target.label if target else 'as before'}"
    )


def launch(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Launch the first new nodes, in the zones of the old ones. Instances of an earlier start that never joined are
    terminated first.
    """
    record = read(run, ports.upgrades)
    end_never_joined(record, observe(record, ports), ports)
    turn = take_turn(read(run, ports.upgrades), ports, drains=False)
    new = ", ".join(turn.record.ahead) or "none"
    refusal = turn.record.refusal
    refused = f"; {sentence(run.group, refusal, DESIRED_SIZE)}" if refusal else ""
    return replace(run, next=UpgradeNext.WAIT, why=f"new nodes ahead of the drains: {new}{refused}")


def gate(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Wait for at least one new node in each zone that has nodes, every new node Ready, with the labels of the target.
    A node that does not come in time ends the upgrade with its cause.
    """
    turn = take_turn(read(run, ports.upgrades), ports, drains=False)
    opened = noted_hold(_opened(run, turn, ports.clock, ports.upgrades), turn.record, ports.upgrades)
    return replace(opened, healthy=turn.observation.healthy)


def _opened(run: UpgradeRun, turn: Turn, clock: Clock, upgrades: Upgrades) -> UpgradeRun:
    if turn.permission.hold is Hold.CANARY:  # termination requested by an earlier start, behind an open gate
        hold = hold_of(turn.permission, clock.now())
        return replace(run, next=UpgradeNext.READY, why=turn.permission.why, hold=hold)
    if turn.permission.hold is Hold.TEMPLATE:
        return wait_or_fail(run, turn.record, turn.permission.why, clock, upgrades)
    if turn.permission.move is not Move.GO:
        return held(run, turn.permission, len(turn.record.under_way), clock.now())
    preflight, launches = turn.observation.preflight, turn.record.others_scaled is None
    reach = zones_in_reach(preflight, turn.record)
    result = gate_of(preflight, turn.record.proven, launches=launches, reach=reach)
    if result.open:
        return replace(run, next=UpgradeNext.READY, why="every new node is Ready, in every zone that has nodes")
    record = resumed(run, turn.record, clock, upgrades)
    failures = creation_failures(record, turn.observation, result, clock.now(), exhausted=turn.exhausted)
    if failures:
        return replace(run, next=UpgradeNext.CREATION_FAILURE, why=sentences(failures))
    track_wait(record, UpgradeWait(what="gate", limit=STALLED), clock, upgrades)
    missing = "; ".join(one.message for one in result.missing)
    joined = any(one.age is Age.NEW and one.node is not None for one in turn.observation.preflight.members)
    return again(run, UpgradeNext.WAIT, SHORTEST if joined else BOOT_PAUSE, missing)  # the others join within seconds


def undo(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Abort: return old nodes without a termination request to service, let terminating ones finish, terminate as
    many new nodes as are not offset, those without pods first, and launch as before.
    """
    record = launch_ordered(read(run, ports.upgrades), ports)
    observation = observe(record, ports)
    record = adopt_raised(record, observation, ports.upgrades)
    records = read_apart(record.under_way, ports.claims)
    ends, ledger = records.read, conclude(record, records.read, records.unreadable.keys())
    changed, late = with_late_offsets(ledger.record, ends)
    if changed != record:
        record = written(changed, ports.upgrades)
    record, unrequested = still_allowed(record, [*ledger.unclaimed, *late], observation.preflight, ports)
    request_terminations(record, unrequested, observation, ports)
    record, denied = _pointed_back(record, observation.group, ports)
    if denied:
        return replace(run, next=UpgradeNext.CREATION_FAILURE, why=denied)
    stay = [one for one in observation.preflight.old if one.instance.id not in record.under_way]
    uncordon((one.node for one in stay if one.node is not None), record, ports.clusters)
    held = held_by_hook(record, ends, observation.policy.drain.timeout, ports.clock.now())
    if len(record.under_way) > len(held):
        return wait_for_terminations(run, record, held, observation, ports)
    if held:
        record = _settle_held(record, {old: ends[old] for old in held}, ports)
        record = with_warning(
            record, f"{', '.join(sorted(held))} end when their pods leave: their termination was requested already"
        )
    record = request_offsets(record, observation, ports)
    return wait_for_size(run, record, observation, ports)


def wait_for_terminations(
    run: UpgradeRun, record: UpgradeRecord, held: Mapping[str, str], observation: Observation, ports: Ports
) -> UpgradeRun:
    """Wait, during an abort, for the terminating nodes; the failure names what blocks them."""
    nodes, limit = sorted(record.under_way.keys() - held.keys()), longest_wait(observation.policy.drain)
    left = pods_left(nodes, observation.preflight)
    wait = UpgradeWait(what="nodes finish", objects=nodes, limit=limit, pods=left)
    record, stalled = track_wait(record, wait, ports.clock, ports.upgrades)
    if stalled:
        blocked = describe_blocked(nodes, record, observation, ports.claims)
        why = f"nodes have not left in {format_duration(limit)}: {blocked}"
        return replace(run, next=UpgradeNext.EVICTION_FAILURE, why=why)
    return again(run, UpgradeNext.WAIT, PAUSE, f"{count_of(len(record.under_way), 'node finishes', 'nodes finish')}")


def _settle_held(record: UpgradeRecord, held: Mapping[str, TerminationRecord], ports: Ports) -> UpgradeRecord:
    """Read the group's history and settle offsets, only while a held instance is to offset a launch: no other source
    reports it before their end.
    """
    if not any(offset_by(record, old) for old in held):
        return record
    activities = ports.groups.activities(record.group, record.began - capacity_ledger.MARGIN)
    changed = settle_held(record, held, activities, ports.clock.now())
    return written(changed, ports.upgrades) if changed != record else record


def _pointed_back(record: UpgradeRecord, group: Group, ports: Ports) -> tuple[UpgradeRecord, str]:
    """Point the group at the version before, unless others have set another one. Return the record with its warnings,
    and the sentence of a denial. Where that version was deleted, the abort ends all the same, so that the nodes return
    to service.
    """
    before, others = before_it(record), set_by_others(record, group, ports.templates)
    if others is not None:
        said = f"{record.group} launches {others.label}, which others have set: the abort leaves it"
        changed = record if is_version(others, before) else with_warning(record, said)
        return (written(changed, ports.upgrades) if changed != record else record), ""
    try:
        denied = "" if before is None else point_group(record, group, before, ports.group_changes, ports.templates)
    except ObjectGoneError as error:
        changed = with_warning(record, f"{record.group} launches what it did, the version before was deleted: {error}")
        return (written(changed, ports.upgrades) if changed != record else record), ""
    return record if denied else _rollback_aborted(record, ports.upgrades), denied


def _rollback_aborted(record: UpgradeRecord, upgrades: Upgrades) -> UpgradeRecord:
    """Add a warning which version the group launches: an abort returns to the one before, for a rollback the version
    that it was to leave.
    """
    wanted, before = record.target.template, record.previous.template if record.previous is not None else None
    if not record.rolling_back or wanted is None or before is None:
        return record
    warning = (
        f"the rollback was aborted: {record.group} launches {before.label}, the version that was rolled back from; to "
        f"finish it: leeward upgrade start {record.group} --launch-template-version {wanted.version}"
    )
    changed = with_warning(record, warning)
    return written(changed, upgrades) if changed != record else record


def start_rollback(run: UpgradeRun, _: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Begin the rollback: the same workflow with the previous version as the target. Old and new members follow from
    the target; surge nodes stay what they are. Killed after the write, the repeated step changes nothing.
    """
    record = read(run, ports.upgrades)
    if record.control is not ControlRequest.ROLLBACK or record.previous is None:
        return replace(run, next=UpgradeNext.POINT, why="the rollback has begun")
    target = record.previous
    record = concluded(record, ports.claims)  # read before the group: its size includes every offset that is found
    group = described(record.group, ports.groups)
    turned = replace(
        record,
        target=target,
        previous=record.target,
        control=ControlRequest.RUN,
        rolling_back=not record.rolling_back,
        prepared=True,
        pointed=False,
        checked=True,
        cordoned=False,
        failed=(),
        reasons={},
        error="",
        ended_early={},
        proven=None,
        phase_since=ports.clock.now(),
        why="",
        hold=None,
    )
    if turned.in_sizes:
        turned = with_owners_maximum(turned, ports.groups, ports.maxima)
    else:
        turned = measured(turned, group, ports)
    written(turned, ports.upgrades)
    return replace(
        run, next=UpgradeNext.POINT, why=f"rolling back to {target.template.label if target.template else ''}"
    )


STEPS: Mapping[str, Step[UpgradeRun]] = {
    "take-lease": take_lease,
    **guarded(
        {
            "check": check,
            "prepare": prepare,
            "point": point,
            "launch": launch,
            "gate": gate,
            "cordon": cordon,
            "drain": drain,
            "scale-down": scale_down,
            "undo": undo,
            "start-rollback": start_rollback,
            **END_STEPS,
        }
    ),
}
"""Steps of node-group-upgrade by the name in its definition."""
