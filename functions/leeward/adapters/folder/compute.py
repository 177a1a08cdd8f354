"""Subnets, prices, launch templates and instance types of a snapshot folder.

The network limits of types that a folder does not describe are in a table (`network_limits.json`: interfaces of the
default network card, addresses of each, vCPUs), the answer of DescribeInstanceTypes at the time it was made; a newer
type has to come with a snapshot.

Auto Scaling groups and EC2 instances of a snapshot folder.

Decides how groups and instances are joined where one of the two files does not name the other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path

from leeward.adapters.folder.reader import Folder, Refusing
from leeward.errors import NotInSnapshotError
from leeward.model.group import Group, LifecycleHook
from leeward.model.image import Image
from leeward.model.instance import Instance
from leeward.model.instance_status import Impairment
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings, LaunchTemplateRef, among_configurations, among_versions
from leeward.model.subnet import Subnet
from leeward.model.well_known import GROUP_TAG

_TABLE = Path(__file__).with_name("network_limits.json")


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


class FolderNetwork:
    """`ports.compute.Network` of a folder. Raises InvalidInputError."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def subnets(self, ids: Iterable[str]) -> Mapping[str, Subnet]:
        """Return the subnets by id; an unknown one is absent."""
        return {name: self._subnets[name] for name in ids if name in self._subnets}

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Mapping[str, Subnet]:
        """Return the VPCs' subnets that carry a tag with the key, by id; one without a VPC counts as of any."""
        known = {*vpcs, ""}
        return {name: one for name, one in self._subnets.items() if one.vpc in known and key in one.tags}

    @cached_property
    def _subnets(self) -> Mapping[str, Subnet]:
        return {subnet.id: subnet for subnet in map(Subnet.from_json, self._folder.elements("subnets"))}


class FolderPriceList:
    """`ports.compute.PriceList` of a folder: of several documents the later wins. Raises InvalidInputError."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def on_demand(self, types: Iterable[str]) -> Mapping[str, float]:
        """Return the prices by type; those without a price are absent."""
        wanted, found = set(types), dict[str, float]()
        for document in self._folder.elements("prices"):
            found |= {name: price for name, price in (document.get("on-demand") or {}).items() if name in wanted}
        return found

    def spot(self, types: Iterable[str], zones: Iterable[str], now: datetime) -> Mapping[str, Mapping[str, float]]:
        """Return the prices by type and zone, of all zones."""
        del zones, now
        wanted, found = set(types), dict[str, dict[str, float]]()
        for document in self._folder.elements("prices"):
            for name, by_zone in (document.get("spot") or {}).items():
                if name in wanted:
                    found.setdefault(name, {}).update(by_zone)
        return found


class FolderLaunchSources:
    """`ports.compute.LaunchSources` of a folder; types that its file lacks come from the built-in table of interfaces
    and cores, without memory. Raises InvalidInputError.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def settings(self, group: Group) -> LaunchSettings | None:
        """Return the group's launch settings, or None when the files do not hold them."""
        wanted = group.launch.template
        if wanted is not None:
            return among_versions(wanted, self._folder.elements("launch-template-versions"))
        return among_configurations(group.launch.configuration or "", self._folder.elements("launch-configurations"))

    def instance_types(self, names: Iterable[str]) -> Mapping[str, InstanceType]:
        """Return the types of the file, and those of `names` that the built-in table has."""
        types = self.all_instance_types()
        others = {name: built_in(name) for name in names if name not in types}
        # the table has neither memory nor architecture: nothing may be read out of their defaults
        return {**types, **{name: replace(kind, architectures=()) for name, kind in others.items() if kind}}

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Return the types of instance-types.json."""
        return self._types

    def image(self, name: str) -> Image | None:
        """Return the image of images.json; None where it lacks it."""
        return next((one for one in map(Image.from_json, self._folder.elements("images")) if one.id == name), None)

    @cached_property
    def _types(self) -> Mapping[str, InstanceType]:
        return {one.name: one for one in map(InstanceType.from_json, self._folder.elements("instance-types"))}


class FolderTemplates(Refusing):
    """Reads of `ports.compute.Templates`; writes raise NotInSnapshotError. Raises InvalidInputError."""

    reason = "it can only be read"

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def numbered(self, template: LaunchTemplateRef) -> LaunchTemplateRef:
        """Return the reference with its number and id; with an empty version where the file does not say what
        `$Latest` or `$Default` means.
        """
        launch = among_versions(template, self._folder.elements("launch-template-versions"))
        if launch is not None and launch.version:
            return replace(template, id=template.id or launch.template, version=str(launch.version))
        return template if template.version.isdigit() else replace(template, version="")

    def image_behind(self, parameter: str) -> str:
        """Raise NotInSnapshotError: no file has SSM parameters."""
        raise NotInSnapshotError(f"a folder has no SSM parameters: whether there is {parameter} was not looked up")


@cache
def _table() -> dict[str, tuple[int, int, int]]:
    return {name: tuple(row) for name, row in json.loads(_TABLE.read_text(encoding="utf-8")).items()}


def built_in(name: str) -> InstanceType | None:
    """Return the type from the table, without memory; None when the table lacks it."""
    row = _table().get(name)
    if row is None:
        return None
    enis, addresses, vcpus = row
    return InstanceType(name=name, vcpus=vcpus, memory_mib=0, max_enis=enis, ips_per_eni=addresses)
