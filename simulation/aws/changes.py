"""`ports.autoscaling.GroupChanges` over the simulated fleet."""

from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef
from simulation.aws.compute import SimGroup
from simulation.aws.fleet import SimFleet
from simulation.journal import Journal


class SimGroupChanges:
    """Requested changes of groups that had an effect: `pointed` (group, version), `raised` (group, desired, maximum),
    `put_back` (group, maximum), `switched` (group, process, whether it was suspended); `written` (group, what) for all
    that change its template or sizes.
    """

    def __init__(self, fleet: SimFleet) -> None:
        self._fleet = fleet
        self.pointed = Journal[tuple[str, str]]()
        self.raised = Journal[tuple[str, int, int]]()
        self.put_back = Journal[tuple[str, int]]()
        self.switched = Journal[tuple[str, str, bool]]()
        self.written = Journal[tuple[str, str]]()

    def point_at(self, group: Group, template: LaunchTemplateRef) -> None:
        """Make the group launch from the template from now on. Raises InvalidInputError for a launch configuration, or
        for another template than its own, which the product never asks for.
        """
        there = self._there(group.name)
        if group.launch.configuration is not None:
            raise InvalidInputError(f"group {group.name}: found a launch configuration, expected a launch template")
        if (template.id or template.name) not in {there.template.id, there.template.name}:
            raise InvalidInputError(f"group {group.name}: found {template.label}, expected its own {there.template.id}")
        there.template.number(template.version)
        if template.version != there.version:
            there.point_at(template.version)
            self.pointed.append((group.name, template.version))
            self.written.append((group.name, f"launch template version {template.version}"))

    def raise_to(
        self, group: str, *, desired: int | None = None, maximum: int | None = None, only_from: int | None = None
    ) -> bool:
        """Raise the desired size and MaxSize; never lowers them. Raises InvalidInputError for a desired size above the
        maximum.
        """
        there = self._there(group)
        if only_from is not None and there.desired != only_from:
            return False
        before = there.desired, there.maximum
        wanted, limit = max(desired or 0, there.desired), max(maximum or 0, there.maximum)
        if wanted > limit:
            raise InvalidInputError(f"ValidationError: Desired capacity:{wanted} must be at most max size:{limit}")
        there.maximum = limit
        if wanted > there.desired:
            for _ in range(wanted - there.desired):
                there.book.launched()
            self._fleet.updated(there, wanted)
        if (there.desired, there.maximum) != before:
            self.raised.append((group, there.desired, there.maximum))
            self.written.append((group, f"desired size {there.desired}, MaxSize {there.maximum}"))
        return True

    def put_back_maximum(self, group: str, maximum: int, *, partly: bool = False) -> bool:
        """Lower MaxSize to `maximum`, with `partly` at least to the desired size. False where that is above it."""
        there = self._there(group)
        fits, lowest = there.desired <= maximum, max(maximum, there.desired)
        if (fits or partly) and there.maximum > lowest:
            there.maximum = lowest
            self.put_back.append((group, lowest))
            self.written.append((group, f"MaxSize {lowest}"))
        return fits

    def suspend(self, group: str, process: str) -> None:
        """Suspend one of the group's processes."""
        there = self._there(group)
        if process not in there.suspended:
            there.suspended.add(process)
            self.switched.append((group, process, True))

    def resume(self, group: str, process: str) -> None:
        """Resume one of the group's processes; it acts at once."""
        there = self._there(group)
        if process in there.suspended:
            self._fleet.scaling.resume(there, process)
            self.switched.append((group, process, False))

    def _there(self, group: str) -> SimGroup:
        found = self._fleet.groups.get(group)
        if found is None or found.deleted:
            raise ObjectGoneError(f"no Auto Scaling group {group}")
        return found
