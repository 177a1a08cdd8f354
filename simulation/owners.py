"""Requests of a group's owners to Auto Scaling and EKS, past the product: sizes, terminations of single instances,
updates of managed node groups.

Each returns what the API would: whether it had an effect."""

from simulation.aws.compute import IN_SERVICE, SimGroup, SimInstance
from simulation.scene import Scene


def set_desired(scene: Scene, group: SimGroup, desired: int, who: str) -> bool:
    """Run SetDesiredCapacity: the group launches, or chooses which members to terminate. False outside of its limits or
    without a change.
    """
    if desired == group.desired or not group.minimum <= desired <= group.maximum:
        return False
    scene.say(f"{who} changes the desired capacity of {group.name} from {group.desired} to {desired}")
    scene.fleet.resize(group, desired)
    return True


def terminate(scene: Scene, member: SimInstance, who: str, *, decrement: bool) -> bool:
    """Run TerminateInstanceInAutoScalingGroup. False for one that is leaving, and where the group would fall below its
    minimum.
    """
    group = scene.fleet.groups[member.group]
    if member.leaving or (decrement and group.desired <= group.minimum):
        return False
    scene.say(f"{who} terminates {member.id} {'with' if decrement else 'without'} decrement")
    scene.fleet.terminate(member, decrement=decrement)
    return True


def detach(scene: Scene, member: SimInstance, who: str, *, decrement: bool) -> bool:
    """Run DetachInstances: the instance runs on in no group and loses the group's tag. Only of an instance in service.

    Source: Amazon EC2 Auto Scaling user guide, "Detach or attach instances" and "Tag groups and instances".
    """
    group = scene.fleet.groups[member.group]
    if member.lifecycle != IN_SERVICE or (decrement and group.desired <= group.minimum):
        return False
    scene.say(f"{who} detaches {member.id} {'with' if decrement else 'without'} decrement")
    scene.fleet.detachment.detach(member, decrement=decrement)
    return True


def update_in_console(scene: Scene, group: SimGroup) -> bool:
    """Start an update of the managed node group past the product, to the newest version; False for any other group."""
    nodegroup = scene.system.managed_updates.of_group(group.name)
    if nodegroup is None:
        return False
    version = None
    if nodegroup.template is not None:
        own = scene.system.templates.template(nodegroup.template[0])
        version = own.add(f"ami-{len(own.images) + 1:017d}")
    scene.say(f"the owner of {nodegroup.name} updates it in the console")
    scene.system.managed_updates.start_by_others(nodegroup, template_version=version)
    return True
