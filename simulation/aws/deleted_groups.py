"""Deletion of an Auto Scaling group with its instances (DeleteAutoScalingGroup with ForceDelete).

The API does not know the group any more. Its entry stays in the fleet, with no size, for what is said about its
instances later."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.aws.compute import SimGroup
    from simulation.aws.fleet import SimFleet


def delete_group(fleet: SimFleet, group: SimGroup) -> None:
    """Delete the group: its lifecycle actions end without an answer, and its instances end at EC2."""
    group.deleted = True
    group.desired = group.minimum = group.maximum = 0
    for member in list(group.members.values()):
        fleet.stop_waits(group.name, member.id)
        member.lifecycle = None
        fleet.end_instance(member)
    group.members.clear()
    group.hooks.clear()
    group.replacing.clear()
    group.postponed.clear()
    group.suspended.clear()
