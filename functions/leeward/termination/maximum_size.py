"""Capacity in the group for a replacement: a group at MaxSize is raised by one for each, and put back afterwards.

Killed anywhere, the owner's MaxSize is not forgotten: it is in the table before the first call that changes it, and
stays there until a call has put it back, in the step that closes a record or in the minute reconciler."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from leeward.errors import ObjectGoneError, TerminalError
from leeward.model.capacity import RaisedMaximum
from leeward.model.launch_refusal import RefusalCause, cause_in
from leeward.model.termination import Replacement, Status, TerminationRecord
from leeward.termination.requests import read_apart

if TYPE_CHECKING:
    from leeward.model.group import Group
    from leeward.ports import Ports
    from leeward.ports.autoscaling import Groups, Maxima
    from leeward.ports.clock import Clock
    from leeward.ports.records import Disruptions, Upgrades
    from leeward.upgrade.record import UpgradeRecord

TRIES = 20  # while other replacements change MaxSize or use it up at the same moment
LOOKS = 3  # a second apart, while MaxSize is being put back
ABANDONED = timedelta(minutes=2)  # longer than an invocation: the caller that was putting MaxSize back has died
BUSY = "MaxSize of the group is being put back"
LOST = "others change MaxSize of the group at the same moment"


def launch(record: TerminationRecord, group: Group, subnet: str, token: str, ports: Ports) -> Replacement:
    """Call LaunchInstances, and raise MaxSize if it refuses because of that. Idempotent: the token gives the same
    instance, and a group below its MaxSize is not raised. The maximum of a managed node group belongs to EKS and stays.
    """
    if group.nodegroup:
        return ports.groups.launch(group=group.name, subnet=subnet, token=token)
    refused: Replacement | None = None
    for number in range(TRIES):
        try:
            lacking = _raise_if_needed(record, group.name, ports, refused)
        except TerminalError as error:
            lacking = f"MaxSize of {group.name} could not be raised: {error}"
        if lacking == LOST:
            ports.clock.sleep(0.05 * number)
            continue
        if lacking:
            return refused or Replacement(reason=lacking)
        refused = ports.groups.launch(group=group.name, subnet=subnet, token=token)
        if refused.launched or refused.no_capacity or cause_in(refused.reason) is not RefusalCause.REFUSED:
            return refused
    return refused or Replacement(reason=LOST)


def _raise_if_needed(record: TerminationRecord, name: str, ports: Ports, refused: Replacement | None) -> str:
    """Raise MaxSize if the launch needs it. Return an empty string once the launch may be tried, else why it may not. A
    launch is tried before MaxSize is read, unless other replacements have raised it: then the instance is first
    recorded as a holder.
    """
    item = _read_at_rest(name, ports.clock, ports.maxima)
    if item is None:
        return BUSY
    holds = record.instance in item.holders
    if refused is None and (holds or not item.active):
        return ""
    # before and after the read of the group
    noted = _recorded(name, record.subject.cluster, ports.upgrades, ports.disruptions)
    group = ports.groups.describe([name]).get(name)
    if group is None:
        return f"no Auto Scaling group {name}"
    has_capacity = group.desired < group.maximum
    if has_capacity and (holds or not item.explains(group.maximum)):
        return refused.reason if refused is not None else ""  # refused for another reason than MaxSize
    if not item.explains(group.maximum):
        noted = noted or _recorded(name, record.subject.cluster, ports.upgrades, ports.disruptions)
        owners = noted[0] if noted and group.maximum <= noted[1] else group.maximum
        item = replace(item, before=owners, raised=())
    holders = tuple(dict.fromkeys((*item.holders, record.instance)))
    most = group.maximum if has_capacity else max(group.desired + 1, item.before + len(holders))
    added = (most,) if most > group.maximum else ()
    raised = tuple(dict.fromkeys((*item.raised, *added)))
    if ports.maxima.write(replace(item, holders=holders, raised=raised)) is None:
        return LOST
    if added:
        ports.group_changes.raise_to(name, maximum=most)
    return ""


def _read_at_rest(name: str, clock: Clock, maxima: Maxima) -> RaisedMaximum | None:
    """Read the group's item. None while a caller puts MaxSize back: a launch at that moment would cause a scale-in."""
    for looked in range(LOOKS):
        if looked:
            clock.sleep(1)
        item = maxima.read(name) or RaisedMaximum(group=name)
        if item.restoring is None:
            return item
    return None


def _recorded(name: str, cluster: str, upgrades: Upgrades, disruptions: Disruptions) -> tuple[int, int] | None:
    """Return the owner's MaxSize as an upgrade or a disruption run of the group recorded it, and the most it set."""
    upgrade = upgrades.read(name)
    if upgrade is not None and upgrade.raised_maximum:
        return upgrade.maximum, upgrade.raised_to or sys.maxsize
    run = disruptions.read(cluster)
    return (run.raised[name], sys.maxsize) if run is not None and name in run.raised else None


def owners_maximum(name: str, groups: Groups, maxima: Maxima) -> int:
    """Return MaxSize as the group's owner chose it, also while replacements have raised it. The item is read before and
    after the group, because it may be raised or put back in between. Raises ObjectGoneError.
    """
    before = maxima.read(name)
    group = groups.describe([name]).get(name)
    if group is None:
        raise ObjectGoneError(f"no Auto Scaling group {name}")
    for item in (before, maxima.read(name)):
        if item is not None and group.maximum in item.raised:
            return item.before
    return group.maximum


def put_back(
    item: RaisedMaximum,
    cluster: str,
    ports: Ports,
    works: Callable[[UpgradeRecord], bool] = lambda upgrade: upgrade.ended is None,
) -> bool:
    """Put the owner's MaxSize back once no replacement needs the capacity and the desired size fits; until then lower
    it to the desired size, which is recorded first. Return whether the owner's is back.

    Idempotent. If the group's MaxSize is none that Leeward set, the item is settled without a call: the owner has
    chosen another. While an upgrade or a disruption run of the group is open, the item waits: they launch into the same
    capacity.
    """
    name, now = item.group, ports.clock.now()
    if not item.active or (item.restoring is not None and now - item.restoring < ABANDONED):
        return False
    records = read_apart(item.holders, ports.claims)
    needed = {holder for holder in item.holders if _needs_capacity(records.read.get(holder))}
    holders = tuple(holder for holder in item.holders if holder in needed | records.unreadable.keys())
    if holders != item.holders or item.restoring is not None:
        written = ports.maxima.write(replace(item, holders=holders, restoring=None))
        if written is None:
            return False
        item = written
    group = ports.groups.describe([name]).get(name)
    if holders or group is None or group.maximum not in item.raised:
        if not holders:
            ports.maxima.write(item.settled())
        return False
    lowest = max(item.before, group.desired)
    if group.maximum <= lowest > item.before or _in_use(name, cluster, ports.upgrades, ports.disruptions, works):
        return False
    lowered = (lowest,) if lowest > item.before else ()
    raised = tuple(dict.fromkeys((*item.raised, *lowered)))
    restoring = ports.maxima.write(replace(item, restoring=now, raised=raised))
    if restoring is None:
        return False
    done = ports.group_changes.put_back_maximum(name, item.before, partly=bool(lowered))
    ports.maxima.write(restoring.settled() if done else replace(restoring, restoring=None))
    return done


def _needs_capacity(record: TerminationRecord | None) -> bool:
    """Return whether a launch may have been made that is not offset."""
    return record is not None and record.status is Status.OPEN and not record.surge_settled


def _in_use(
    name: str, cluster: str, upgrades: Upgrades, disruptions: Disruptions, works: Callable[[UpgradeRecord], bool]
) -> bool:
    upgrade = upgrades.read(name)
    if upgrade is not None and works(upgrade):
        return True
    run = disruptions.read(cluster)
    return run is not None and run.open and name in run.groups
