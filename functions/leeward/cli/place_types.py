"""Instance types that a group may launch, offline: from its overrides, its launch template or configuration, else from
its instances."""

from collections.abc import Iterable, Mapping
from typing import Any

from leeward.adapters.folder.snapshot import Snapshot
from leeward.model.group import Group


def group_types(snapshot: Snapshot, group: Group) -> tuple[str, ...]:
    """Return the types sorted by name. Overrides by requirements name no type, so the types of the group's instances
    stand for them. Empty when no source names a type.
    """
    raw = next(one for one in snapshot.raw("auto-scaling-groups") if one["AutoScalingGroupName"] == group.name)
    mixed = _mapping(_mapping(raw.get("MixedInstancesPolicy")).get("LaunchTemplate"))
    overrides = [_mapping(one) for one in mixed.get("Overrides") or ()]
    found = _texts(one.get("InstanceType") for one in overrides)
    if not found and not any("InstanceRequirements" in one for one in overrides):
        template = _mapping(mixed.get("LaunchTemplateSpecification") or raw.get("LaunchTemplate"))
        found = _texts([_template_type(snapshot, template), _configuration_type(snapshot, raw)])
    return tuple(sorted(found or _running(snapshot, group, raw)))


def _template_type(snapshot: Snapshot, template: Mapping[str, Any]) -> Any:
    versions = [
        one
        for one in snapshot.raw("launch-template-versions")
        if any(
            template.get(key) and one.get(key) == template[key] for key in ("LaunchTemplateId", "LaunchTemplateName")
        )
    ]
    wanted = str(template.get("Version") or "$Default")
    if wanted == "$Latest":
        versions = sorted(versions, key=lambda one: int(one.get("VersionNumber", 0)))[-1:]
    elif wanted == "$Default":
        versions = [one for one in versions if one.get("DefaultVersion")] or versions[:1]
    else:
        versions = [one for one in versions if str(one.get("VersionNumber")) == wanted]
    return _mapping(versions[0].get("LaunchTemplateData")).get("InstanceType") if versions else None


def _configuration_type(snapshot: Snapshot, raw: Mapping[str, Any]) -> Any:
    name = raw.get("LaunchConfigurationName")
    known = snapshot.raw("launch-configurations") if name else ()
    return next((one.get("InstanceType") for one in known if one.get("LaunchConfigurationName") == name), None)


def _running(snapshot: Snapshot, group: Group, raw: Mapping[str, Any]) -> set[str]:
    members = [snapshot.instances[one.id].type for one in group.instances if one.id in snapshot.instances]
    return _texts([*members, *(_mapping(one).get("InstanceType") for one in raw.get("Instances") or ())])


def _texts(values: Iterable[Any]) -> set[str]:
    return {value for value in values if isinstance(value, str) and value}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
