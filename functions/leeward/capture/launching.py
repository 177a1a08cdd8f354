"""Launch template versions and instance types of a cluster that belong into a snapshot folder.

Decides from raw output alone; a group's possible launches follow from the same rules as for a live plan
(`node_template`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from typing import Any

from leeward.errors import InvalidInputError, LeewardError
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings, LaunchTemplateRef, among_configurations, among_versions
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.gathering import look_up
from leeward.policy.document import TemplatePolicy
from leeward.ports.raw import Raw

MOVING = ("$Default", "$Latest")  # always written, so that both can be resolved offline


def versions_used(groups: Iterable[Group], nodegroups: Iterable[Nodegroup]) -> dict[LaunchTemplateRef, tuple[str, ...]]:
    """Return the versions by template (its reference without a version): those that groups and their overrides launch,
    that members were launched from, that node groups were made with, and the two that move.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for ref in _references(groups, nodegroups):
        found.setdefault((ref.id, "" if ref.id else ref.name), set(MOVING)).add(ref.version)
    return {
        LaunchTemplateRef(id=template, name=name): tuple(sorted(versions))
        for (template, name), versions in sorted(found.items())
    }


def described(nodegroups: Iterable[Raw]) -> list[Nodegroup]:
    """Return the node groups whose answers can be used."""
    found: list[Nodegroup] = []
    for raw in nodegroups:
        with suppress(InvalidInputError):  # an unknown taint effect voids the answer, as everywhere
            found.append(Nodegroup.from_json(raw["nodegroup"]))
    return found


class RawLaunches:
    """`ports.compute.LaunchSources` and `KnownNodegroups` on raw output. `all_types` is called at most once, and only
    where requirements choose.
    """

    def __init__(
        self,
        versions: Sequence[Raw],
        configurations: Sequence[Raw],
        nodegroups: Iterable[Nodegroup],
        all_types: Callable[[], Sequence[Raw]],
        images: Callable[[], Iterable[Raw]] = tuple,
    ) -> None:
        self._versions, self._configurations = versions, configurations
        self._nodegroups = {(one.cluster, one.name): one for one in nodegroups}
        self._all_types, self._images = all_types, images

    def get(self, cluster: str, name: str, lasts: timedelta) -> Nodegroup | None:
        """Return the node group, or None where the call has failed."""
        del lasts
        return self._nodegroups.get((cluster, name))

    def settings(self, group: Group) -> LaunchSettings | None:
        """Return the settings of its launch template version or launch configuration."""
        if group.launch.template is not None:
            return among_versions(group.launch.template, self._versions)
        return among_configurations(group.launch.configuration or "", self._configurations)

    def instance_types(self, names: Iterable[str]) -> Mapping[str, InstanceType]:
        """Return the types that the Region has."""
        known = self.all_instance_types()
        return {name: known[name] for name in names if name in known}

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Return every type of the Region."""
        return self._all

    def image(self, name: str) -> Image | None:
        """Return the image, or None where the call has failed."""
        with suppress(LeewardError):
            return next((one for one in map(Image.from_json, self._images()) if one.id == name), None)
        return None

    @cached_property
    def _all(self) -> Mapping[str, InstanceType]:
        kinds = (InstanceType.from_json(raw) for raw in self._all_types())
        return {kind.name: kind for kind in kinds}


def types_used(
    cluster: str, groups: Iterable[Group], instances: Iterable[Raw], nodes: Iterable[Raw], launches: RawLaunches
) -> tuple[str, ...]:
    """Return the types that the groups may launch, that run, and that nodes name in their labels; sorted by name."""
    running = {one["InstanceId"]: str(one.get("InstanceType") or "") for one in instances}
    labels = (one["metadata"].get("labels") or {} for one in nodes)
    found = {*running.values(), *(str(node.get(well_known.INSTANCE_TYPE_LABEL) or "") for node in labels)}
    for group in groups:
        members = {running.get(one.id, "") for one in group.instances} | {*group.running_types}
        policy = TemplatePolicy()
        looked = look_up(group, cluster, policy, nodegroups=launches, launches=launches, running=members - {""})
        found |= {*members, *looked.choices.types}
    return tuple(sorted(found - {""}))


def _references(groups: Iterable[Group], nodegroups: Iterable[Nodegroup]) -> Iterator[LaunchTemplateRef]:
    for group in groups:
        references: list[Any] = [group.launch.template, *(one.template for one in group.launch.overrides)]
        yield from (ref for ref in (*references, *(one.template for one in group.instances)) if ref is not None)
    for one in nodegroups:
        if one.template is not None:
            yield LaunchTemplateRef(id=one.template[0], version=one.template[1] or "$Default")
