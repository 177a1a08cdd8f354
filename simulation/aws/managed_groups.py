"""Managed node groups made of a fleet's groups: EKS' tags, EKS' labels on their nodes, and EKS that rolls them."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from leeward.model import well_known
from leeward.model.nodegroup import Nodegroup
from local.cluster.model import Cluster
from simulation.aws.compute import SimGroup, SimInstance
from simulation.aws.eks_roll import EksRoll
from simulation.aws.fleet import SimFleet
from simulation.aws.managed import Ended, SimManagedUpdates, SimUpdate
from simulation.aws.templates import SimTemplate, SimTemplates
from simulation.timeline import Timeline


class ManagedGroups:
    """Groups of the fleet that EKS manages; call `manage` before the world runs. `copies`: by group, the user's
    template version behind each version of EKS' copy; `unlabelled`: groups whose custom user data keeps EKS' labels
    from their new nodes.
    """

    def __init__(
        self,
        cluster_name: str,
        cluster: Cluster,
        fleet: SimFleet,
        updates: SimManagedUpdates,
        templates: SimTemplates,
        timeline: Timeline,
        random: Random,
        answers: Callable[[], bool] = lambda: True,
    ) -> None:
        self._answers = answers
        self._name, self._cluster, self._fleet, self._updates = cluster_name, cluster, fleet, updates
        self._templates, self._timeline, self._random = templates, timeline, random
        self.copies: dict[str, dict[str, str]] = {}
        self.unlabelled: set[str] = set()
        self._own: dict[str, SimTemplate] = {}
        self._sizes: dict[str, tuple[int, int]] = {}  # before an update that has failed, which left larger ones
        updates.roll = self._roll

    def manage(self, group: SimGroup, nodegroup: str, own: SimTemplate | None = None, **more: Any) -> None:
        """Turn the group into a managed node group. `own`: the user's launch template, of whose version 1 EKS' copy was
        made; `more`: fields of `Nodegroup`.
        """
        group.tags = {**group.tags, well_known.EKS_CLUSTER_TAGS[0]: self._name, well_known.NODEGROUP_TAG: nodegroup}
        template = None
        if own is not None:
            self._own[group.name], template = own, (own.id, "1")
            self._templates.know(own)
        self.copies[group.name] = {"1": "1"}
        self._updates.know(self._name, nodegroup, groups=(group.name,), template=template, **more)

    def labels(self, member: SimInstance) -> Mapping[str, str]:
        """Return the labels with which the member's node registers."""
        if member.group not in self.copies or (member.version != "1" and member.group in self.unlabelled):
            return {}
        image = self._fleet.groups[member.group].template.image(member.version)
        return self._updates.labels_of(member.group, image, self.copies[member.group][member.version])

    def _roll(self, update: SimUpdate, nodegroup: Nodegroup, ended: Ended) -> bool:
        """Copy the version that is asked for, or take EKS' newest image, and begin the update; False for an unmanaged
        group.
        """
        name = next(iter(nodegroup.groups), "")
        if name not in self.copies:
            return False
        group, own = self._fleet.groups[name], self._own.get(name)
        _, asked, force = update.asked
        source = asked or (nodegroup.template[1] if nodegroup.template else "1")
        newest = f"ami-eks-{update.asked[0] or 'latest'}-{len(self.copies[name])}"
        image = own.image(source) if own is not None else newest
        version = group.version
        if group.template.image(version) != image or self.copies[name][version] != source:
            version = group.template.add(image)
            self.copies[name][version] = source
            if own is not None and source in own.bad:
                group.template.bad.add(version)
        size = self._size(group)

        def over(errors: tuple[str, ...]) -> None:
            if errors:
                self._sizes[name] = size
            ended(errors)

        EksRoll(
            fleet=self._fleet,
            cluster=self._cluster,
            timeline=self._timeline,
            group=group,
            size=size,
            at_once=nodegroup.max_unavailable or 1,
            force=force,
            random=self._random,
            ended=over,
            answers=self._answers,
        ).begin(version)
        return True

    def _size(self, group: SimGroup) -> tuple[int, int]:
        """Return the desired and maximum size to which an update returns: those of now, or what they were before an
        earlier one that has failed raised them.
        """
        desired, maximum = self._sizes.pop(group.name, (group.desired, group.maximum))
        return min(group.desired, desired), min(group.maximum, maximum)
