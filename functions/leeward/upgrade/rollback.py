"""Abort and rollback of an upgrade: old nodes return to service, or the previous version becomes the target.

An abort waits for nodes whose termination is requested already, or fails with what blocks them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leeward.errors import ObjectGoneError
from leeward.model.counts import count_of
from leeward.model.group import Group
from leeward.model.termination import TerminationRecord
from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.ports.records import Upgrades
from leeward.termination import capacity_ledger
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
from leeward.upgrade.completion import PAUSE, adopt_raised, request_offsets, wait_for_size
from leeward.upgrade.cordoning import uncordon
from leeward.upgrade.eviction_failures import describe_blocked
from leeward.upgrade.lease import read, written
from leeward.upgrade.observation import Observation, described, measured, observe, with_owners_maximum
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.run import Next, Run
from leeward.upgrade.surge.orders import launch_ordered
from leeward.upgrade.template_moves import before_it, is_version, set_by_others
from leeward.upgrade.templates import point_group
from leeward.upgrade.termination_requests import request_terminations
from leeward.upgrade.waits import again, longest_wait, pods_left, track_wait
from leeward.upgrade.waves.shared_budgets import still_allowed


def undo(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
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
        return replace(run, next=Next.CREATION_FAILURE, why=denied)
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
    run: Run, record: UpgradeRecord, held: Mapping[str, str], observation: Observation, ports: Ports
) -> Run:
    """Wait, during an abort, for the terminating nodes; the failure names what blocks them."""
    nodes, limit = sorted(record.under_way.keys() - held.keys()), longest_wait(observation.policy.drain)
    record, stalled = track_wait(
        record, "nodes finish", nodes, limit, ports.clock, ports.upgrades, pods=pods_left(nodes, observation.preflight)
    )
    if stalled:
        blocked = describe_blocked(nodes, record, observation, ports.claims)
        why = f"nodes have not left in {format_duration(limit)}: {blocked}"
        return replace(run, next=Next.EVICTION_FAILURE, why=why)
    return again(run, Next.WAIT, PAUSE, f"{count_of(len(record.under_way), 'node finishes', 'nodes finish')}")


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
        denied = "" if before is None else point_group(record, group, before, ports)
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


def start_rollback(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Begin the rollback: the same workflow with the previous version as the target. Old and new members follow from
    the target; surge nodes stay what they are. Killed after the write, the repeated step changes nothing.
    """
    record = read(run, ports.upgrades)
    if record.control is not ControlRequest.ROLLBACK or record.previous is None:
        return replace(run, next=Next.POINT, why="the rollback has begun")
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
    return replace(run, next=Next.POINT, why=f"rolling back to {target.template.label if target.template else ''}")
