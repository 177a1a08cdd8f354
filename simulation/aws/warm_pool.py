"""Warm pools: stopped instances that a group starts again under their old id."""

from typing import TYPE_CHECKING

from simulation.aws import events
from simulation.aws.compute import PENDING, WARM, SimGroup, SimInstance
from simulation.aws.listeners import Listeners
from simulation.timeline import Timeline

if TYPE_CHECKING:
    from simulation.aws.fleet import SimFleet

WARM_FOR = 1800.0  # seconds until the pool terminates an instance


class WarmPools:
    """Warm pools of a fleet's groups. `reused`: instances that came out of one."""

    def __init__(self, fleet: "SimFleet", timeline: Timeline, to: Listeners) -> None:
        self._fleet, self._timeline, self._to = fleet, timeline, to
        self.reused: set[str] = set()

    def start(self, group: SimGroup) -> SimInstance | None:
        """Start a stopped instance of the group's warm pool again under its old id; None where it has none, or keeps
        those that it has.

        Source: Amazon EC2 Auto Scaling user guide, "Warm pools": scale-out draws from the pool; StartInstances renews
        the launch time.
        """
        if not getattr(group.plan, "launches_warm", False):
            return None
        pooled = (one for one in self._fleet.instances.values() if (one.group, one.lifecycle) == (group.name, WARM))
        member = next(pooled, None)
        if member is None:
            return None
        self._to.said(f"{member.id} comes out of the warm pool of {group.name}")
        member.state, member.lifecycle, member.launched = "pending", PENDING, self._timeline.now()
        member.returns, member.joined, member.ended_at = False, False, None
        group.members[member.id] = member
        self.reused.add(member.id)
        self._fleet.boot(group, member)
        self._to.changed()
        return member

    def stop(self, group: SimGroup, member: SimInstance) -> None:
        """Stop the instance and put it into the warm pool, which terminates it some time later."""
        self._to.said(f"{member.id} returns to the warm pool of {group.name}")
        member.state, member.lifecycle = "stopped", WARM
        group.members.pop(member.id, None)
        self._fleet.emit(events.state_change, member.id, "stopped")
        self._to.ended(member)
        self._timeline.after(WARM_FOR, lambda: self._terminate(member), "warm pool shrinks")
        self._to.changed()

    def _terminate(self, member: SimInstance) -> None:
        if member.lifecycle == WARM:  # still there
            self._fleet.end_instance(member)
            member.lifecycle = None
