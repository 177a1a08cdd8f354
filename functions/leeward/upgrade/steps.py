"""The steps of node-group-upgrade before the first drain.

The drains are in `drains.py`, the ends in `completion.py` and `rollback.py`. Managed groups have a state machine of
their own, whose steps are in `managed/`.

A reconciler: each step reads the record and the cluster's state, calls the pure modules, records what it is about to
do, does it, and returns the run document. Killed anywhere, the step can be run again; an execution that was stopped,
failed or timed out and is started again resumes where it was."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.group import AZ_REBALANCE
from leeward.model.launch_refusal import sentence
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Upgrades
from leeward.upgrade.capacity_ledger import concluded
from leeward.upgrade.completion import STEPS as END_STEPS
from leeward.upgrade.completion import scale_down
from leeward.upgrade.control import Hold, Move
from leeward.upgrade.cordoning import cordon
from leeward.upgrade.creation_failures import creation_failures
from leeward.upgrade.drains import BOOT_PAUSE, drain
from leeward.upgrade.expected_labels import are_overridden, labelled
from leeward.upgrade.gate import gate_of
from leeward.upgrade.lease import read, wait_for_disruption, written
from leeward.upgrade.members import Age
from leeward.upgrade.observation import described, measured, observe, with_owners_maximum
from leeward.upgrade.preflight.gather import run_preflight
from leeward.upgrade.rollback import start_rollback, undo
from leeward.upgrade.rollout import Turn, take_turn
from leeward.upgrade.run import Next, Run
from leeward.upgrade.start import take_lease
from leeward.upgrade.surge.orders import DESIRED_SIZE, zones_in_reach
from leeward.upgrade.surge.sizes import most_extra, parallelism, surge
from leeward.upgrade.template_moves import noted, wait_or_fail
from leeward.upgrade.templates import point_group, prepared
from leeward.upgrade.termination_requests import end_never_joined
from leeward.upgrade.waits import (
    SHORTEST,
    STALLED,
    again,
    held,
    hold_of,
    noted_hold,
    resumed,
    track_wait,
)
from leeward.workflow.lease import guarded
from leeward.workflow.steps import Step


def check(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Run pre-flight: blockers that are not overridden by name stop the upgrade before anything is changed, and so does
    a group or a request that cannot be judged.
    """
    record = read(run, ports.upgrades)
    wait_for_disruption(record, ports.disruptions)
    if record.checked:
        return replace(run, next=Next.PREPARE, why="pre-flight was passed before; continuing")
    try:
        result = run_preflight(record, ports)
    except InvalidInputError as error:
        return replace(run, next=Next.BLOCKED, why=str(error))
    if result.blocked:
        return replace(run, next=Next.BLOCKED, why=result.blocked)
    record = written(replace(record, checked=True), ports.upgrades)
    return replace(run, next=Next.PREPARE, why=result.summary)


def prepare(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Determine the target, and make the launch template version where there is none yet. Each start measures the sizes
    again where no launch of the upgrade is left in them: owners may have changed them while no execution ran, and
    executions that pre-flight waited for since the lease was taken.
    """
    record = read(run, ports.upgrades)
    ended = concluded(record, ports.claims)  # read before the group: its size includes every offset that is found
    group = described(record.group, ports.groups)
    made = replace(prepared(ended, group, ports), pointed=record.prepared and record.pointed)
    made = with_owners_maximum(made, ports.groups, ports.maxima) if made.in_sizes else measured(made, group, ports)
    if not record.prepared or are_overridden(record):
        made = labelled(made, group, ports.clusters.kubernetes(record.cluster).nodes(), ports.launches)
    if made != record:
        written(made, ports.upgrades)
    target = made.target.template
    return replace(run, next=Next.POINT, why=f"the target is {target.label}" if target else "no launch template")


def point(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
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
            raised_maximum=record.raised_maximum or maximum > group.maximum,
            raised_to=max(record.raised_to, maximum),
        ),
        ports.upgrades,
    )
    if record.suspended:
        ports.group_changes.suspend(record.group, AZ_REBALANCE)
    if record.raised_maximum:
        ports.group_changes.raise_to(record.group, maximum=maximum)
    if not record.pointed:
        if denied := point_group(record, group, record.target, ports):
            return replace(run, next=Next.CREATION_FAILURE, why=denied)
        written(replace(record, pointed=True), ports.upgrades)
    target = record.target.template
    return replace(run, next=Next.LAUNCH, why=f"{record.group} launches {target.label if target else 'as before'}")


def launch(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Launch the first new nodes, in the zones of the old ones. Instances of an earlier start that never joined are
    terminated first.
    """
    record = read(run, ports.upgrades)
    end_never_joined(record, observe(record, ports), ports)
    turn = take_turn(read(run, ports.upgrades), ports, drains=False)
    new = ", ".join(turn.record.ahead) or "none"
    refusal = turn.record.refusal
    refused = f"; {sentence(run.group, refusal, DESIRED_SIZE)}" if refusal else ""
    return replace(run, next=Next.WAIT, why=f"new nodes ahead of the drains: {new}{refused}")


def gate(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Wait for at least one new node in each zone that has nodes, every new node Ready, with the labels of the target.
    A node that does not come in time ends the upgrade with its cause.
    """
    turn = take_turn(read(run, ports.upgrades), ports, drains=False)
    opened = noted_hold(_opened(run, turn, ports.clock, ports.upgrades), turn.record, ports.upgrades)
    return replace(opened, healthy=turn.observation.healthy)


def _opened(run: Run, turn: Turn, clock: Clock, upgrades: Upgrades) -> Run:
    if turn.permission.hold is Hold.CANARY:  # termination requested by an earlier start, behind an open gate
        hold = hold_of(turn.permission, clock.now())
        return replace(run, next=Next.READY, why=turn.permission.why, hold=hold)
    if turn.permission.hold is Hold.TEMPLATE:
        return wait_or_fail(run, turn.record, turn.permission.why, clock, upgrades)
    if turn.permission.move is not Move.GO:
        return held(run, turn.permission, len(turn.record.under_way), clock.now())
    preflight, launches = turn.observation.preflight, turn.record.others_scaled is None
    reach = zones_in_reach(preflight, turn.record)
    result = gate_of(preflight, turn.record.proven, launches=launches, reach=reach)
    if result.open:
        return replace(run, next=Next.READY, why="every new node is Ready, in every zone that has nodes")
    record = resumed(run, turn.record, clock, upgrades)
    failures = creation_failures(record, turn.observation, result, clock.now(), exhausted=turn.exhausted)
    if failures:
        return replace(run, next=Next.CREATION_FAILURE, why="; ".join(f"{one.message}: {one.fix}" for one in failures))
    track_wait(record, "gate", (), STALLED, clock, upgrades)
    missing = "; ".join(one.message for one in result.missing)
    joined = any(one.age is Age.NEW and one.node is not None for one in turn.observation.preflight.members)
    return again(run, Next.WAIT, SHORTEST if joined else BOOT_PAUSE, missing)  # the others join within seconds


STEPS: Mapping[str, Step[Run]] = {
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
