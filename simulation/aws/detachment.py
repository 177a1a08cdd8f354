"""Members that their owner takes out of the group and that run on: detached, in standby."""

from typing import TYPE_CHECKING

from leeward.model import well_known
from simulation.aws.compute import IN_SERVICE, STANDBY, SimInstance
from simulation.aws.listeners import Listeners
from simulation.timeline import Timeline

if TYPE_CHECKING:
    from simulation.aws.fleet import SimFleet


class Detachment:
    """Calls of an owner by which a member of a fleet's group leaves it and runs on."""

    def __init__(self, fleet: "SimFleet", timeline: Timeline, to: Listeners) -> None:
        self._fleet, self._timeline, self._to = fleet, timeline, to
        self.back_in_service: dict[str, float] = {}  # instance -> when it came back from Standby

    def detach(self, member: SimInstance, *, decrement: bool) -> None:
        """Run DetachInstances: the instance runs on in no group and loses the group's tag.

        Source: Amazon EC2 Auto Scaling user guide, "Detach or attach instances" and "Tag groups and instances".
        """
        group = self._fleet.groups[member.group]
        sizes = (group.desired, group.desired - 1) if decrement else None
        group.desired -= decrement
        if decrement:
            group.book.taken_by_owner()
        group.history.asked(member.id, self._timeline.now(), sizes=sizes, verb="detached")
        group.members.pop(member.id)
        group.replacing.pop(member.id, None)
        member.lifecycle = None
        member.tags = {key: value for key, value in member.tags.items() if key != well_known.GROUP_TAG}
        self._fleet.reconcile_soon(group)

    def enter_standby(self, member: SimInstance) -> None:
        """Run EnterStandby with decrement: the instance runs on, and its group does not count it."""
        group = self._fleet.groups[member.group]
        group.history.asked(member.id, self._timeline.now(), sizes=(group.desired, group.desired - 1), verb="moved")
        group.desired -= 1
        group.book.taken_by_owner()
        member.lifecycle = STANDBY
        self._to.changed()

    def exit_standby(self, member: SimInstance) -> None:
        """Run ExitStandby: the group counts the instance again."""
        if member.lifecycle == STANDBY and not member.gone:
            group = self._fleet.groups[member.group]
            group.desired = min(group.desired + 1, max(group.maximum, group.desired))
            member.lifecycle = IN_SERVICE
            self.back_in_service[member.id] = self._timeline.now()
            self._fleet.reconcile_soon(group)
            self._to.changed()
