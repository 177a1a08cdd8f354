"""One small managed node group that EKS rolls in the simulation, with a launch template of its own if asked."""

from random import Random

from simulation.aws.managed_groups import ManagedGroups
from simulation.aws.templates import SimTemplate
from simulation.definitions import MANAGED_NODE_GROUP_UPGRADE
from tests.simulation.upgrade_stand_in import GROUP, Upgraded

NODEGROUP = "web"


class Managed(Upgraded):
    """Group `app` is node group `web`; its own template has two versions. `user_data_breaks`: EKS' labels do not reach
    new nodes.
    """

    def __init__(self, fleet=None, *, own=True, user_data_breaks=False, at_once=1, **more):
        super().__init__(fleet, machine=MANAGED_NODE_GROUP_UPGRADE, **more)
        world = self.world
        del self.template.images[1:]  # versions of EKS' own copy come with its updates
        self.own = SimTemplate(id="lt-own", name="own", images=["ami-own-1", "ami-own-2"]) if own else None
        self.groups = ManagedGroups(
            "blue",
            world.cluster,
            world.fleet,
            world.system.managed_updates,
            world.system.templates,
            world.timeline,
            Random(world.seed),
        )
        self.groups.manage(world.fleet.groups[GROUP], NODEGROUP, self.own, max_unavailable=at_once, version="1.33")
        if user_data_breaks:
            self.groups.unlabelled.add(GROUP)
        world.labels = self.groups.labels

    @property
    def updates(self):
        """Of EKS, in the order of their beginning."""
        return list(self.world.system.managed_updates.updates.values())

    @property
    def asked(self):
        """Version, template version and force of each update."""
        return [one.asked for one in self.updates]

    @property
    def images(self):
        """Of the members, as EKS labels them, or the version of the own template."""
        key = "eks.amazonaws.com/sourceLaunchTemplateVersion" if self.own else "eks.amazonaws.com/nodegroup-image"
        members = {member.id for member in self.group.instances}
        nodes = [one for one in self.world.cluster.store.each("nodes") if one["spec"]["providerID"][-19:] in members]
        return sorted({one["metadata"]["labels"].get(key, "") for one in nodes})

    @property
    def untouched(self):
        """Whether nothing was written through Auto Scaling by us."""
        changes = self.world.system.changes
        return not (changes.pointed or changes.raised or changes.put_back or changes.switched) and not list(
            self.world.system.groups.launches
        )
