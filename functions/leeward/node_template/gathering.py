"""Sources of the parts of a template: the group's launch template, DescribeNodegroup, instance types.

Decides in which order they are read; `build.py` decides what follows from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.build import Sources
from leeward.node_template.choices import (
    Choices,
    LaunchImages,
    architecture_of,
    as_launched,
    by_requirements,
    choices,
    narrowed,
    with_image,
)
from leeward.node_template.resources import Networking
from leeward.node_template.user_data import kubelet_settings
from leeward.policy.document import TemplatePolicy
from leeward.ports.compute import LaunchSources
from leeward.ports.eks import KnownNodegroups


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """AWS data of a group: its node group, its launch template, its images (by id) where neither of them tells what
    they run on, and the choices that all leave.
    """

    group: Group
    nodegroup: Nodegroup | None
    launch: LaunchSettings | None
    choices: Choices
    images: Mapping[str, Image] = field(default_factory=dict)


def look_up(
    group: Group,
    cluster: str,
    policy: TemplatePolicy,
    *,
    nodegroups: KnownNodegroups,
    launches: LaunchSources,
    running: Iterable[str] = (),
) -> Looked:
    """Look up a group: one DescribeNodegroup for a managed group (kept for `policy.ttl`) and one read of the launch
    template. All types of the Region are only read where requirements choose, and the image only where it decides: a
    type that is named has one architecture, and most user data tell the operating system. `running`: types of the
    group's members. Raises LeewardError when the launch template or the image cannot be read.
    """
    nodegroup = None
    if group.nodegroup is not None:
        nodegroup = nodegroups.get(group.cluster or cluster, group.nodegroup, policy.ttl)
    launch = launches.settings(group)
    by_needs = by_requirements(group, launch)
    known = launches.all_instance_types() if by_needs else {}
    images: dict[str, Image] = {}
    if launch is not None and _image_decides(launch, nodegroup, by_needs=by_needs):
        _read_image(launch, launches, images)
    built: dict[int, str] = {}
    for place, override in enumerate(group.launch.overrides):
        if override.requirements is not None and (override.template or override.image):
            own = with_image(launches.settings(as_launched(group, override)), override)
            built[place] = _read_image(own, launches, images)
    image = images.get(launch.image) if launch is not None else None
    read = LaunchImages(own=image, built=built)
    found = choices(group, launch, nodegroup, known=known, running=running, images=read)
    return Looked(group=group, nodegroup=nodegroup, launch=launch, choices=found, images=images)


def _read_image(launch: LaunchSettings | None, launches: LaunchSources, images: dict[str, Image]) -> str:
    """Read the image into `images`; return its architecture, empty where it is not known."""
    if launch is None or not launch.image.startswith("ami-"):
        return ""
    image = images.get(launch.image) or launches.image(launch.image)
    if image is None:
        return ""
    images[launch.image] = image
    return image.architecture


def _image_decides(launch: LaunchSettings, nodegroup: Nodegroup | None, *, by_needs: bool) -> bool:
    """Return whether neither EKS nor user data and named types tell architecture and operating system."""
    return architecture_of(nodegroup) is None and (by_needs or kubelet_settings(launch.user_data).family is None)


def sources_of(
    looked: Looked,
    launches: LaunchSources,
    variables: Mapping[str, Any],
    *,
    zone: str | None = None,
    instance_type: str | None = None,
) -> Sources:
    """Return the sources of a template, with the requested zone and type in front. `variables`: the environment of
    aws-node. Raises LeewardError.
    """
    found = narrowed(looked.choices, zone=zone, instance_type=instance_type)
    own = found.own.get(found.types[0]) if found.types else None
    launched = as_launched(looked.group, own)
    launch = looked.launch if launched is looked.group else launches.settings(launched)
    return _joined(looked, found, with_image(launch, own), launches.instance_types(found.types), variables)


def sources_by_type(looked: Looked, launches: LaunchSources, variables: Mapping[str, Any]) -> dict[str, Sources]:
    """Return the sources for every type that the group may launch, each with the launch template that its override
    names: no template is read twice. Raises LeewardError.
    """
    types = launches.instance_types(looked.choices.types)
    read: dict[object, LaunchSettings | None] = {looked.group.launch.template: looked.launch}
    found: dict[str, Sources] = {}
    for name in looked.choices.types:
        own = looked.choices.own.get(name)
        launched = as_launched(looked.group, own)
        if launched.launch.template not in read:
            read[launched.launch.template] = launches.settings(launched)
        launch = with_image(read[launched.launch.template], own)
        found[name] = _joined(looked, narrowed(looked.choices, instance_type=name), launch, types, variables)
    return found


def _joined(
    looked: Looked,
    found: Choices,
    launch: LaunchSettings | None,
    types: Mapping[str, InstanceType],
    variables: Mapping[str, Any],
) -> Sources:
    return Sources(
        group=looked.group,
        choices=found,
        launch=launch,
        nodegroup=looked.nodegroup,
        image=looked.images.get(launch.image) if launch is not None else None,
        types=types,
        networking=Networking.from_variables(variables),
    )
