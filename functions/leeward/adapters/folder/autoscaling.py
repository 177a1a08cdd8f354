"""Auto Scaling groups and EC2 instances of a snapshot folder.

Decides how groups and instances are joined where one of the two files does not name the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from leeward.adapters.folder.reader import Folder, Refusing
from leeward.model.group import Group, LifecycleHook
from leeward.model.instance import Instance
from leeward.model.instance_status import Impairment
from leeward.model.subnet import Subnet
from leeward.model.well_known import GROUP_TAG


class FolderGroups(Refusing):
    """Reads of `ports.autoscaling.Groups`; writes raise NotInSnapshotError. Reads raise InvalidInputError."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def describe(self, names: Iterable[str]) -> Mapping[str, Group]:
        """Return the groups of these names that the folder describes."""
        return {name: self._groups[name] for name in names if name in self._groups}

    def of_clusters(self, clusters: Iterable[str]) -> Sequence[Group]:
        """Return every group that the folder describes: the folder is of one cluster, and its policies select."""
        del clusters
        return tuple(self._groups.values())

    def lifecycle_of(self, instance: str) -> tuple[str, str] | None:
        """Return (group, lifecycle state), None when no group lists the instance."""
        listed = ((group.name, group.lifecycle_of(instance)) for group in self._groups.values())
        return next(((name, state) for name, state in listed if state is not None), None)

    def hooks(self, group: str) -> Sequence[LifecycleHook]:
        """Return all hooks of the group."""
        return [hook for hook in self._hooks if hook.group == group]

    @cached_property
    def _hooks(self) -> tuple[LifecycleHook, ...]:
        return tuple(map(LifecycleHook.from_json, self._folder.elements("lifecycle-hooks")))

    @cached_property
    def _groups(self) -> Mapping[str, Group]:
        groups = map(Group.from_json, self._folder.elements("auto-scaling-groups"))
        return {group.name: self._placed(group) for group in groups}

    def _placed(self, group: Group) -> Group:
        """Return the group; one without zones gets those of its subnets, one without subnets those of its zones."""
        if group.zones and group.subnets:
            return group
        subnets = {one.id: one for one in map(Subnet.from_json, self._folder.elements("subnets"))}
        if group.subnets:
            zones = dict.fromkeys(subnets[name].zone for name in group.subnets if name in subnets)
            return replace(group, zones=tuple(zones))
        return replace(group, subnets=tuple(name for name, one in subnets.items() if one.zone in group.zones))


class FolderInstances(Refusing):
    """`ports.compute.Instances` of a folder. Raises InvalidInputError."""

    def __init__(self, folder: Folder, groups: FolderGroups) -> None:
        self._folder, self._groups = folder, groups

    def describe(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """Return the instances by id; an unknown one is absent. One that a group lists is tagged with that group."""
        return {name: self._instances[name] for name in ids if name in self._instances}

    def in_reservations(self, reservations: Iterable[str]) -> Mapping[str, str]:
        """Return the instances that instances.json shows in these capacity reservations."""
        wanted = frozenset(reservations)
        found = {
            str(raw.get("InstanceId")): str(raw.get("CapacityReservationId") or "")
            for raw in self._folder.each("instances")
        }
        return {name: reservation for name, reservation in found.items() if reservation in wanted}

    def impaired(self, *, recent: bool = False) -> Mapping[str, Impairment]:  # noqa: ARG002  the folder is one moment
        """Return the instances whose status checks fail, by id."""
        found = map(Impairment.from_json, self._folder.elements("instance-status"))
        return {one.instance: one for one in found if one is not None}

    @cached_property
    def _instances(self) -> Mapping[str, Instance]:
        listing = {member.id: group.name for group in self._groups.of_clusters(()) for member in group.instances}
        found = {}
        for instance in map(Instance.from_json, self._folder.each("instances")):
            group = listing.get(instance.id)
            tagged = replace(instance, tags={**instance.tags, GROUP_TAG: group}) if group else instance
            found[instance.id] = tagged
        return found
