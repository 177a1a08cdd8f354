"""Restoration of what an upgrade's execution left when it was stopped, timed out or died: by the rule on how
executions end, at once, and by the minute reconciler where that event was lost.

A lease without an open execution holds nothing: AZRebalance is resumed, MaxSize put back where it can be.
The record stays, and the next start resumes where it was. The execution is not restarted automatically: the operator
who stopped it had a reason. The record says that it was stopped, which notifies of the end: the reconciler writes it at
its second observation only, because the event of an end takes seconds, and a listing may be behind."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from leeward.errors import LeewardError
from leeward.isolation import attempt, isolate_errors, reraise
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.reconcile.second_observation import seen_before
from leeward.upgrade.completion import give_back, remind, restore_group
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import is_held, written
from leeward.workflow.scale_down_protection import owners, release

STOPPED = "upgrade-stopped"  # name of an observation


def reconcile_upgrades(
    groups: Iterable[Group], ports: Ports, note: Callable[[str, LeewardError], object] = reraise
) -> list[str]:
    """Restore groups and return their names: one read of the table for a hundred groups, one for each where that fails.
    Groups that no policy selects are among them: an upgrade may have been started with that finding overridden, or the
    policy has changed since. `note` takes a group that could not be handled and why; the others are.
    """
    restored: list[str] = []
    names = [group.name for group in groups]
    records = attempt(lambda: ports.upgrades.read_all(names))
    for name in names:
        with isolate_errors(partial(note, name)):
            record = ports.upgrades.read(name) if isinstance(records, LeewardError) else records.get(name)
            restored += _restored(record, ports)
            if record is not None:
                remind(record, ports)
    return restored


def _restored(record: UpgradeRecord | None, ports: Ports) -> list[str]:
    if record is None or not (record.runs or record.suspended):
        return []
    if is_held(record, ports.upgrade_executions, ports.managed_upgrade_executions):
        return []
    restored = restore_group(record, ports) if record.suspended else record
    if record.runs and seen_before(f"{STOPPED}#{record.group}#{record.execution}", ports.clock, ports.claims):
        restored = _stopped(restored, "does not run any more", ports.clock)
    return [record.group] if restored != record and ports.upgrades.write(restored) is not None else []


def _stopped(record: UpgradeRecord, how: str, clock: Clock) -> UpgradeRecord:
    """Return the record of an upgrade whose execution has ended without a step that could record an end."""
    why = f"execution {record.execution} {how}: start the upgrade of {record.group} again, and it continues"
    return replace(record, why=why, stopped=clock.now(), hold=None)


def handle_failed_execution(detail: Mapping[str, Any], ports: Ports) -> str:
    """Handle one execution that ended with FAILED, TIMED_OUT or ABORTED and return what was done, in a sentence. A
    repeated delivery does nothing more. Raises RecordChangedError while others write the record.
    """
    name, status = str(detail.get("name") or ""), str(detail.get("status") or "")
    records = ((there, there.upgrades.read(_group_of(detail))) for there in ports.everywhere())
    mine = ((there, record) for there, record in records if record is not None and record.execution == name)
    ports, record = next(mine, (ports, None))
    if (
        record is None
        or record.ended is not None
        or is_held(record, ports.upgrade_executions, ports.managed_upgrade_executions)
    ):
        return f"execution {name} ended with {status} and left nothing"
    stopped = restore_group(_stopped(record, f"ended with {status}", ports.clock), ports)
    written(stopped, ports.upgrades)
    return stopped.why


def _group_of(detail: Mapping[str, Any]) -> str:
    """Return the group from the execution's input, empty where the event does not hold it; the minute reconciler then
    finds the group.
    """
    try:
        given = json.loads(detail.get("input") or "{}")
    except ValueError:
        return ""
    group = given.get("group") if isinstance(given, dict) else ""
    return group if isinstance(group, str) else ""


def give_back_after_upgrades(nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Return cordoned nodes of upgrades that have no execution any more to service and return their names: the step
    that was to do it could not, or died with its execution.
    """
    nodes, returned = list(nodes), list[str]()
    marks = (well_known.CORDONED_FOR, well_known.EXCLUDED_FOR)
    groups = {value for node in nodes for mark in marks if (value := node.annotations.get(mark))}
    for group in sorted(groups):
        record = ports.upgrades.read(group)
        if record is not None and not is_held(record, ports.upgrade_executions, ports.managed_upgrade_executions):
            returned += give_back(record, nodes, ports.clusters)
    return returned


def unprotect_after_upgrades(cluster: str, nodes: Iterable[Node], ports: Ports) -> list[str]:
    """Remove the protection of nodes whose upgrade has no execution any more, or is unknown, and return their names."""
    nodes, released = list(nodes), list[str]()
    for group in owners(nodes):
        if group.startswith(well_known.OF_DISRUPTION):
            continue
        record = ports.upgrades.read(group)
        if record is None or not is_held(record, ports.upgrade_executions, ports.managed_upgrade_executions):
            released += release(nodes, group, ports.clusters.kubernetes(cluster))
    return released
