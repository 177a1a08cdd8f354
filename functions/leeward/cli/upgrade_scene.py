"""Inputs from which an upgrade is judged, offline: the snapshot with the group as it would be on the target.

Decides what the target is; `leeward.upgrade` decides what follows. A live scene gives the same `Preflight`."""

import argparse
from dataclasses import replace

from leeward.adapters.folder.network_limits import types_named
from leeward.adapters.folder.snapshot import Snapshot
from leeward.cli.cluster_scene import offline_cluster
from leeward.cli.place_scene import cni_variables, known_group, read_snapshot
from leeward.cli.template_scene import SnapshotLaunchSources
from leeward.errors import InvalidInputError
from leeward.model.group import Group
from leeward.model.launch import LaunchSettings, LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.choices import architecture_of
from leeward.policy.document import ClusterPolicies, ClusterSettings, NodePolicy, Selector
from leeward.upgrade.members import Target
from leeward.upgrade.preflight import Beside, Preflight, held_lone_pods
from leeward.upgrade.templates import architecture_named

_ASKED = ("ami", "launch_template_version", "kubernetes_version")


def offline_preflight(arguments: argparse.Namespace) -> Preflight:
    """Build the pre-flight inputs from --snapshot. Raises InvalidInputError naming file, path, found and expected."""
    at_most_one(arguments)
    snapshot = read_snapshot(arguments, "upgrade")
    given = known_group(snapshot, arguments.group)
    policy = snapshot.policy_of(given.name)
    chosen = policy or NodePolicy(name="(defaults)", selector=Selector(groups=(given.name,)))
    group = _at_version(snapshot, given, arguments.launch_template_version)
    policies = snapshot.policies or ClusterPolicies(settings=ClusterSettings(name=arguments.cluster or ""))
    if policy is None:
        policies = replace(policies, policies=(*policies.policies, chosen))
    changed = replace(snapshot, groups={**snapshot.groups, group.name: group}, policies=policies)
    world = offline_cluster(changed, arguments.cluster or "", arguments.now)
    launch = SnapshotLaunchSources(snapshot).settings(group)
    nodegroup = _nodegroup(snapshot, group)
    launchable = world.launchables.get(group.name)
    beside = Beside(
        force=arguments.force,
        image=arguments.ami or "",
        image_by_eks=nodegroup is not None and nodegroup.template is None,
        asked_version=arguments.kubernetes_version is not None,
        version=arguments.kubernetes_version or (nodegroup.version if nodegroup else ""),
        control_plane=next((raw["cluster"].get("version", "") for raw in snapshot.raw("cluster")), ""),
        architecture=architecture_named(arguments.ami or "") or architecture_of(nodegroup) or "",
        cni=cni_variables(snapshot, (chosen,)),
        types={kind.name: kind for kind in types_named(launchable.types if launchable else (), snapshot)},
        selected=policy is not None,
        no_policies=snapshot.policies is None,
        nodegroup=nodegroup,
        surged=frozenset(pod.key for pod in held_lone_pods(world, group, chosen)),
    )
    target = _target(arguments, snapshot, group, launch, nodegroup)
    return Preflight.of(world, world.groups[group.name], chosen, target, beside)


def at_most_one(arguments: argparse.Namespace) -> None:
    """Raise InvalidInputError for more than one target."""
    given = [f"--{name.replace('_', '-')}" for name in _ASKED if getattr(arguments, name) is not None]
    if len(given) > 1:
        raise InvalidInputError(f"upgrade: found {' and '.join(given)}, expected one of them at most")


def _at_version(snapshot: Snapshot, group: Group, version: str | None) -> Group:
    """Return the group as it would be with that version of its launch template."""
    if version is None:
        return group
    template = group.launch.template
    if template is None:
        raise InvalidInputError(
            f"upgrade: found --launch-template-version {version}, expected a group with a launch template: "
            f"{group.name} has none"
        )
    changed = replace(group, launch=replace(group.launch, template=replace(template, version=version)))
    if snapshot.has("launch-template-versions") and SnapshotLaunchSources(snapshot).settings(changed) is None:
        file = snapshot.directory / "launch-template-versions.json"
        raise InvalidInputError(
            f"{file}: LaunchTemplateVersions: found no version {version} of {template.id or template.name}, "
            f"expected one of {_versions(snapshot, template) or 'its versions'}"
        )
    return changed


def _versions(snapshot: Snapshot, template: LaunchTemplateRef) -> str:
    known = [
        one.get("VersionNumber", 0)
        for one in snapshot.raw("launch-template-versions")
        if template.id == one.get("LaunchTemplateId")
        or (template.name and template.name == one.get("LaunchTemplateName"))
    ]
    return ", ".join(str(number) for number in sorted(known))


def _nodegroup(snapshot: Snapshot, group: Group) -> Nodegroup | None:
    raw = (one["nodegroup"] for one in snapshot.raw("nodegroups"))
    found = (one for one in raw if group.nodegroup is not None and one["nodegroupName"] == group.nodegroup)
    try:
        return next((Nodegroup.from_json(one) for one in found), None)
    except InvalidInputError:  # an unknown taint effect voids the answer, as in `leeward template`
        return None


def _target(
    arguments: argparse.Namespace,
    snapshot: Snapshot,
    group: Group,
    launch: LaunchSettings | None,
    nodegroup: Nodegroup | None,
) -> Target:
    """Return the target. An image or a Kubernetes version stands for a launch template version that is yet to be made,
    unless the present one has that image already: then an earlier run has made it.
    """
    template = group.launch.template
    made = arguments.kubernetes_version is None and (
        arguments.ami is None or (launch and launch.image == arguments.ami)
    )
    overrides = {
        one.instance_type: _resolved(snapshot, group, one.template)
        for one in group.launch.overrides
        if one.template is not None and one.instance_type
    }
    return Target(
        template=_numbered(template, launch) if template and made else None,
        overrides=overrides if made else {},
        nodegroup=group.nodegroup,
        image=launch.image if made and launch else "",
        source=nodegroup.template if made and nodegroup else None,
    )


def _resolved(snapshot: Snapshot, group: Group, template: LaunchTemplateRef) -> LaunchTemplateRef:
    """Resolve the template of an override that brings its own."""
    launched = replace(group, launch=replace(group.launch, template=template))
    return _numbered(template, SnapshotLaunchSources(snapshot).settings(launched))


def _numbered(template: LaunchTemplateRef, launch: LaunchSettings | None) -> LaunchTemplateRef:
    """Return the template with its number instead of $Latest or $Default, empty where no source gives the number."""
    if launch is not None and launch.version:
        return replace(template, id=template.id or launch.template, version=str(launch.version))
    return template if template.version.isdigit() else replace(template, version="")
