"""MaxSize of a group that launches beyond it: a replacement raises it by one, an upgrade or a disruption run to the
size that it needs, and it is put back afterwards.

Killed anywhere, the owner's MaxSize is not forgotten: it is in the table before the first call that changes it, and
stays there until a call has put it back: in the step that closes a record, at the end of an upgrade or a run, or in the
minute reconciler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from leeward.errors import GroupBusyError, ObjectGoneError, TerminalError
from leeward.model.capacity import RaisedMaximum
from leeward.model.launch_refusal import RefusalCause, cause_in
from leeward.model.termination import Replacement, Status, TerminationRecord
from leeward.termination.requests import read_apart

if TYPE_CHECKING:
    from leeward.model.group import Group
    from leeward.ports import Ports
    from leeward.ports.autoscaling import Groups, Maxima
    from leeward.ports.clock import Clock
    from leeward.ports.records import Claims
    from leeward.upgrade.record import UpgradeRecord

TRIES = 20  # while other replacements change MaxSize or use it up at the same moment
LOOKS = 3  # a second apart, while MaxSize is being put back
ABANDONED = timedelta(minutes=2)  # longer than an invocation: the caller that was putting MaxSize back has died
BUSY = "MaxSize of the group is being put back"
LOST = "others change MaxSize of the group at the same moment"
UPGRADE, DISRUPTION = "upgrade", "disruption"  # workflows that launch beyond MaxSize for as long as they are open


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
    group = _described(name, ports.groups)
    has_capacity = group.desired < group.maximum
    if has_capacity and (holds or not item.explains(group.maximum)):
        return refused.reason if refused is not None else ""  # refused for another reason than MaxSize
    item = item.of_owner(group.maximum)
    holders = tuple(dict.fromkeys((*item.holders, record.instance)))
    if has_capacity:
        return "" if ports.maxima.write(replace(item, holders=holders)) is not None else LOST
    most = max(group.desired + 1, item.before + len(holders))
    if ports.maxima.write(replace(item, holders=holders).raised_to(most)) is None:
        return LOST
    ports.group_changes.raise_to(name, maximum=most)
    return ""


def allow(name: str, ports: Ports, *, size: int = 0, more: int = 0) -> None:
    """Raise MaxSize for an open upgrade or disruption run, to `size` or for so many `more` instances than the group has
    to have now; a larger one stays. The item is written first. Idempotent. Raises ObjectGoneError, and
    GroupBusyError while others change it.
    """
    for number in range(TRIES):
        item = _read_at_rest(name, ports.clock, ports.maxima)
        if item is None:
            raise GroupBusyError(f"{name}: {BUSY}")
        group = _described(name, ports.groups)
        wanted = size or group.desired + more
        if wanted <= group.maximum:
            return
        if ports.maxima.write(item.of_owner(group.maximum).raised_to(wanted)) is not None:
            ports.group_changes.raise_to(name, maximum=wanted)
            return
        ports.clock.sleep(0.05 * number)
    raise GroupBusyError(f"{name}: {LOST}")


def _read_at_rest(name: str, clock: Clock, maxima: Maxima) -> RaisedMaximum | None:
    """Read the group's item. None while a caller puts MaxSize back: a launch at that moment would cause a scale-in."""
    for looked in range(LOOKS):
        if looked:
            clock.sleep(1)
        item = maxima.read(name) or RaisedMaximum(group=name)
        if item.restoring is None:
            return item
    return None


def _described(name: str, groups: Groups) -> Group:
    group = groups.describe([name]).get(name)
    if group is None:
        raise ObjectGoneError(f"no Auto Scaling group {name}")
    return group


def owners_maximum(name: str, groups: Groups, maxima: Maxima) -> int:
    """Return MaxSize as the group's owner chose it, also while replacements have raised it. The item is read before and
    after the group, because it may be raised or put back in between. Raises ObjectGoneError.
    """
    before = maxima.read(name)
    maximum = _described(name, groups).maximum
    for item in (before, maxima.read(name)):
        if item is not None and maximum in item.raised:
            return item.before
    return maximum


def release(names: Iterable[str], workflow: str, cluster: str, ports: Ports) -> None:
    """Put MaxSize of groups back at the end of an upgrade or a disruption run (`workflow`), as far as it can be; the
    minute reconciler does the rest.
    """
    for item in ports.maxima.read_all(names).values():
        put_back(item, cluster, ports, ending=workflow)


def put_back(
    item: RaisedMaximum,
    cluster: str,
    ports: Ports,
    works: Callable[[UpgradeRecord], bool] = lambda upgrade: upgrade.ended is None,
    *,
    ending: str = "",
) -> bool:
    """Put the owner's MaxSize back once no replacement needs the capacity and the desired size fits; until then lower
    it to the desired size, which is recorded first. Return whether the owner's is back.

    Idempotent. If the group's MaxSize is none that Leeward set, the item is settled without a call: the owner has
    chosen another. While an upgrade or a disruption run of the group is open, but for the one that is `ending`, the
    item waits: they launch into the same capacity.
    """
    name, now = item.group, ports.clock.now()
    if not item.active or (item.restoring is not None and now - item.restoring < ABANDONED):
        return False
    rest = _without_old_holders(item, ports.claims, ports.maxima)
    if rest is None or rest.holders or _in_use(name, cluster, ports, works, ending):
        return False
    item = rest
    group = ports.groups.describe([name]).get(name)
    if group is None or group.maximum not in item.raised:
        ports.maxima.write(item.settled())
        return False
    lowest = max(item.before, group.desired)
    if group.maximum <= lowest > item.before:
        return False
    if lowest > item.before:
        item = item.raised_to(lowest)
    restoring = ports.maxima.write(replace(item, restoring=now))
    if restoring is None:
        return False
    done = ports.group_changes.put_back_maximum(name, item.before, partly=lowest > item.before)
    ports.maxima.write(restoring.settled() if done else replace(restoring, restoring=None))
    return done


def _without_old_holders(item: RaisedMaximum, claims: Claims, maxima: Maxima) -> RaisedMaximum | None:
    """Return the item as written, at rest and without holders that need the capacity no longer; None if another writer
    was faster.
    """
    records = read_apart(item.holders, claims)
    needed = {holder for holder in item.holders if _needs_capacity(records.read.get(holder))}
    holders = tuple(holder for holder in item.holders if holder in needed | records.unreadable.keys())
    if holders == item.holders and item.restoring is None:
        return item
    return maxima.write(replace(item, holders=holders, restoring=None))


def left_above(name: str, maxima: Maxima) -> str:
    """Return the MaxSize that is left above the owner's, in a sentence; empty for none."""
    item = maxima.read(name)
    return f"MaxSize is {item.raised[-1]} instead of {item.before}" if item is not None and item.active else ""


def _needs_capacity(record: TerminationRecord | None) -> bool:
    """Return whether a launch may have been made that is not offset."""
    return record is not None and record.status is Status.OPEN and not record.surge_settled


def _in_use(name: str, cluster: str, ports: Ports, works: Callable[[UpgradeRecord], bool], ending: str) -> bool:
    upgrade = ports.upgrades.read(name) if ending != UPGRADE else None
    if upgrade is not None and works(upgrade):
        return True
    run = ports.disruptions.read(cluster) if ending != DISRUPTION else None
    return run is not None and run.open and name in run.groups
