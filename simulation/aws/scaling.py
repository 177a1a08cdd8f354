"""Scaling of groups to their size: a group launches missing instances, terminates surplus ones, and balances its zones.

Source: Amazon EC2 Auto Scaling user guide, "Control which Auto Scaling instances terminate during scale in" and "Auto
Scaling benefits for application architecture" (rebalancing)."""

from collections.abc import Callable
from typing import Protocol

from simulation.aws import activities
from simulation.aws.compute import SimGroup, SimInstance
from simulation.aws.warm_pool import WarmPools
from simulation.faults import Injector
from simulation.timeline import Timeline

LOOKS_AFTER = 5.0  # seconds
NO_CAPACITY_RETRY = 60.0
BALANCING = {"AZRebalance", "Launch", "Terminate"}  # it launches one and ends one: none of them may be suspended


class Fleet(Protocol):
    """Groups, and their operations on members."""

    groups: dict[str, SimGroup]

    def launch(self, group: SimGroup, zone: str) -> SimInstance: ...
    def end_member(self, member: SimInstance, cause: str) -> None: ...
    def begin_terminating(self, member: SimInstance) -> None: ...


class Scaling:
    """Scaling of all groups of a fleet."""

    def __init__(
        self, fleet: Fleet, pools: WarmPools, timeline: Timeline, injector: Injector, said: Callable[[str], None]
    ) -> None:
        self._fleet, self._pools, self._timeline = fleet, pools, timeline
        self._injector, self._said = injector, said
        self._due: set[str] = set()

    def look_soon(self, group: SimGroup) -> None:
        """Check the group's size in some seconds, once however often it is requested until then."""
        if group.name not in self._due:
            self._due.add(group.name)
            self._timeline.after(LOOKS_AFTER, lambda: self._look(group), f"{group.name} reconciles")

    def resume(self, group: SimGroup, process: str) -> None:
        """Run ResumeProcesses: postponed work is done now."""
        group.suspended.discard(process)
        if process == "Terminate":
            postponed, group.postponed = group.postponed, {}
            for instance, cause in postponed.items():
                if instance in group.members:
                    self._fleet.end_member(group.members[instance], cause)
        self.look_soon(group)

    def balance_zones(self) -> None:
        """Run AZRebalance of every group."""
        for group in self._fleet.groups.values():
            self.balance(group)

    def balance(self, group: SimGroup) -> None:
        """Run AZRebalance: where zones differ by two or more, launch in the emptiest, terminate one in the fullest."""
        if not group.suspended.isdisjoint(BALANCING) or group.template.lacks(group.version):
            return
        counts = _by_zone(group)
        full, empty = max(counts, key=lambda z: counts[z]), min(group.plan.zones, key=lambda z: counts[z])
        if counts[full] - counts[empty] >= 2 and not self._injector.no_capacity(empty):
            oldest = next((m for m in group.staying if m.zone == full and not m.protected), None)
            if oldest is None:
                return
            self._said(f"{group.name} balances its zones: {oldest.id} goes")
            self._fleet.launch(group, empty)
            self._fleet.end_member(oldest, activities.BALANCED)

    def _look(self, group: SimGroup) -> None:
        self._due.discard(group.name)
        missing = group.desired - len(group.staying)
        if missing > 0 and "Launch" not in group.suspended:
            self._grow(group, missing)
        if missing < 0 and "Terminate" not in group.suspended:
            self._shrink(group, -missing)

    def _grow(self, group: SimGroup, missing: int) -> None:
        """Launch out of the group's warm pool, else in the emptiest zone that has capacity; where none has, retry a
        minute later.
        """
        for _ in range(missing):
            if self._pools.start(group) is not None:
                continue
            counts = _by_zone(group)
            zones = sorted(group.plan.zones, key=lambda zone: (zone != group.next_zone, counts[zone]))
            can_launch = not group.template.lacks(group.version)
            zone = next((zone for zone in zones if can_launch and not self._injector.no_capacity(zone)), None)
            group.next_zone = ""
            if zone is None:
                self._timeline.after(NO_CAPACITY_RETRY, lambda: self.look_soon(group), "no capacity")
                return
            size = len(group.staying)
            group.history.grown(self._timeline.now(), (size, size + 1))
            self._fleet.launch(group, zone)

    def _shrink(self, group: SimGroup, too_many: int) -> None:
        """Terminate the oldest of the fullest zone, one after the other."""
        for _ in range(too_many):
            counts = _by_zone(group)
            fullest = max(counts, key=lambda zone: counts[zone])
            free = [m for m in group.staying if not m.protected]
            surplus = next((m for m in free if m.zone == fullest), free[0] if free else None)
            if surplus is None:
                return  # every one is protected from scale-in
            size = len(group.staying)
            group.history.surplus(surplus.id, self._timeline.now(), (size, size - 1))
            surplus.returns = getattr(group.plan, "reuses", False)
            self._fleet.begin_terminating(surplus)


def _by_zone(group: SimGroup) -> dict[str, int]:
    counts = dict.fromkeys(group.plan.zones, 0)
    for member in group.staying:
        counts[member.zone] = counts.get(member.zone, 0) + 1  # also in a zone that the owner has removed
    return counts
