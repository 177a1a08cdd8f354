"""Sources of the parts of a template: the group's launch template, DescribeNodegroup, instance types.

Decides in which order they are read; `build.py` decides what follows from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.build import Sources
from leeward.node_template.choices import Choices, as_launched, choices, narrowed
from leeward.node_template.pods import Networking
from leeward.policy.document import TemplatePolicy
from leeward.ports.compute import LaunchSources
from leeward.ports.eks import KnownNodegroups


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """AWS data of a group: its node group, its launch template, and the choices that both leave."""

    group: Group
    nodegroup: Nodegroup | None
    launch: LaunchSettings | None
    choices: Choices


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
    template. All types of the Region are only read where requirements choose. `running`: types of the group's members.
    Raises LeewardError when the launch template cannot be read.
    """
    nodegroup = None
    if group.nodegroup is not None:
        nodegroup = nodegroups.get(group.cluster or cluster, group.nodegroup, policy.ttl)
    launch = launches.settings(group)
    by_needs = any(one.requirements for one in group.launch.overrides) or bool(launch and launch.requirements)
    known = launches.all_instance_types() if by_needs else {}
    found = choices(group, launch, nodegroup, known=known, running=running)
    return Looked(group=group, nodegroup=nodegroup, launch=launch, choices=found)


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
    launched = as_launched(looked.group, found.types[0]) if found.types else looked.group
    launch = looked.launch if launched is looked.group else launches.settings(launched)
    return _joined(looked, found, launch, launches.instance_types(found.types), variables)


def sources_by_type(looked: Looked, launches: LaunchSources, variables: Mapping[str, Any]) -> dict[str, Sources]:
    """Return the sources for every type that the group may launch, each with the launch template that its override
    names: no template is read twice. Raises LeewardError.
    """
    types = launches.instance_types(looked.choices.types)
    read: dict[object, LaunchSettings | None] = {looked.group.launch.template: looked.launch}
    found: dict[str, Sources] = {}
    for name in looked.choices.types:
        launched = as_launched(looked.group, name)
        if launched.launch.template not in read:
            read[launched.launch.template] = launches.settings(launched)
        launch = read[launched.launch.template]
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
        types=types,
        networking=Networking.from_variables(variables),
    )
