"""Objects of AWS that their owners delete while the product works on them: Auto Scaling groups, launch templates, and
versions that groups launch from."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from simulation.aws.deleted_groups import delete_group

if TYPE_CHECKING:
    from simulation.aws.compute import SimGroup
    from simulation.scene import Scene

MENDED_AFTER = (200.0, 1500.0)  # seconds: then the owner points the group at a version that is there
LARGEST = 0.5  # share of the fleet's instances that a deleted group may have


class DeletedGroups:
    """Groups that are deleted with their instances: one for each cluster, the larger ones stay."""

    every = 1300.0

    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene, self._random = scene, random
        self._deleted = False

    def play(self) -> None:
        """Delete a group that EKS does not manage, if there is one beside others."""
        groups = [group for group in _own(self._scene) if group.plan.selected]
        members = sum(len(group.members) for group in self._scene.fleet.groups.values())
        small = [group for group in groups if 0 < len(group.members) <= LARGEST * members]
        if small and len(groups) > 1 and not self._deleted:
            self._deleted = True
            group = self._random.choice(small)
            self._scene.say(f"the owner of {group.name} deletes it with its {len(group.members)} instances")
            delete_group(self._scene.fleet, group)


class DeletedTemplates:
    """Launch templates that are deleted, in whole or in the version from which their group launches."""

    every = 700.0

    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene, self._random = scene, random

    def play(self) -> None:
        """Delete the version of a group or its whole template; its owner makes a new one some minutes later."""
        groups = [group for group in _own(self._scene) if not group.template.gone and not group.deleted]
        if not groups:
            return
        group, template = (chosen := self._random.choice(groups)), chosen.template
        versions = {str(number) for number in range(1, len(template.images) + 1)}
        whole = group.version == "1" or self._random.random() < 0.4  # the default version goes with its template alone
        template.absent, template.gone = whole, versions if whole else {group.version}
        what = "its launch template" if whole else f"version {group.version} of its launch template"
        self._scene.say(f"the owner of {group.name} deletes {what}")
        pause = self._random.uniform(*MENDED_AFTER)
        self._scene.timeline.after(pause, lambda: self._mend(group), "an owner mends a launch template")

    def _mend(self, group: SimGroup) -> None:
        """Add a version with the image that the group had. A template that is made again keeps its id here."""
        template = group.template
        image = template.images[int(group.version) - 1]
        version = template.add(image)
        template.absent = False
        self._scene.say(f"the owner of {group.name} points it at version {version}")
        group.point_at(version)
        self._scene.fleet.reconcile_soon(group)


def _own(scene: Scene) -> list[SimGroup]:
    """Return the groups that EKS does not manage."""
    groups = scene.fleet.groups.values()
    return [group for group in groups if scene.system.managed_updates.of_group(group.name) is None]
