"""Inputs from which an upgrade is judged, offline: the snapshot with the group as it would be on the target.

Decides what the target is; `leeward.upgrade` decides what follows. A live scene gives the same `Preflight`."""

import argparse
from dataclasses import dataclass, replace

from leeward.adapters.folder.reader import Folder
from leeward.cli.cluster_scene import state_of
from leeward.cli.context import ClusterContext, context_of
from leeward.errors import InvalidInputError
from leeward.model.group import Group
from leeward.model.launch import LaunchSettings, LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.choices import architecture_of
from leeward.placement.cni import variables_of
from leeward.policy.document import ClusterPolicies, NodePolicy, Selector
from leeward.policy.selection import policy_for
from leeward.ports.compute import LaunchSources
from leeward.ports.kubernetes import Clusters, Kubernetes
from leeward.time_budget import TimeBudget
from leeward.upgrade.members import Target
from leeward.upgrade.preflight.model import Preflight, PreflightInputs, held_lone_pods
from leeward.upgrade.templates import architecture_named

VERSIONS = "launch-template-versions"
_ASKED = ("ami", "launch_template_version", "kubernetes_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assuming:
    """Clusters of a folder with other policies than those that stand in it."""

    clusters: Clusters
    assumed: ClusterPolicies

    def names(self) -> tuple[str, ...]:
        """Return the names of the clusters."""
        return self.clusters.names()

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the assumed policies."""
        del cluster
        return self.assumed

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return the cluster's API."""
        return self.clusters.kubernetes(cluster, within=within)


def offline_preflight(arguments: argparse.Namespace) -> Preflight:
    """Build the pre-flight inputs from --snapshot. Raises InvalidInputError naming file, path, found and expected."""
    at_most_one(arguments)
    warnings: list[str] = []
    context = context_of(arguments, "upgrade", warnings.append)
    ports, policies = context.ports, context.ports.clusters.policies(context.cluster)
    given = context.group(arguments.group)
    policy = policy_for(policies.policies, given.name, given.tags)
    chosen = policy or NodePolicy(name="(defaults)", selector=Selector(groups=(given.name,)))
    if policy is None:
        assumed = replace(policies, policies=(*policies.policies, chosen))
        ports = replace(ports, clusters=_Assuming(clusters=ports.clusters, assumed=assumed))
    group = _at_version(context, given, arguments.launch_template_version)
    world = state_of(context, ports, arguments.now, as_if=group)
    world = replace(world, warnings=(*warnings, *world.warnings))
    nodegroup = _nodegroup(context, group, chosen)
    beside = replace(
        _beside(arguments, context, nodegroup),
        cni={**variables_of(ports.clusters.kubernetes(context.cluster).aws_node() or {}), **chosen.cni},
        types=world.types,
        selected=policy is not None,
        surged=frozenset(pod.key for pod in held_lone_pods(world, group, chosen)),
    )
    wanted = _target(arguments, ports.launches, group, nodegroup)
    return Preflight.of(world, world.groups[group.name], chosen, wanted, beside)


def _beside(arguments: argparse.Namespace, context: ClusterContext, nodegroup: Nodegroup | None) -> PreflightInputs:
    """Return the inputs that follow from the arguments, the node group and the files of EKS alone."""
    folder = context.folder
    clusters = folder.elements("cluster") if folder is not None else ()
    return PreflightInputs(
        force=arguments.force,
        image=arguments.ami or "",
        image_by_eks=nodegroup is not None and nodegroup.template is None,
        version_requested=arguments.kubernetes_version is not None,
        version=arguments.kubernetes_version or (nodegroup.version if nodegroup else ""),
        control_plane=next((raw["cluster"].get("version", "") for raw in clusters), ""),
        architecture=architecture_named(arguments.ami or "") or architecture_of(nodegroup) or "",
        no_policies=folder is not None and not folder.has_policies,
        nodegroup=nodegroup,
    )


def at_most_one(arguments: argparse.Namespace) -> None:
    """Raise InvalidInputError for more than one target."""
    given = [f"--{name.replace('_', '-')}" for name in _ASKED if getattr(arguments, name) is not None]
    if len(given) > 1:
        raise InvalidInputError(f"upgrade: found {' and '.join(given)}, expected one of them at most")


def _at_version(context: ClusterContext, group: Group, version: str | None) -> Group:
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
    folder = context.folder
    if folder is not None and folder.has(VERSIONS) and context.ports.launches.settings(changed) is None:
        raise InvalidInputError(
            f"{folder.path(VERSIONS)}: LaunchTemplateVersions: found no version {version} of "
            f"{template.id or template.name}, expected one of {_versions(folder, template) or 'its versions'}"
        )
    return changed


def _versions(folder: Folder, template: LaunchTemplateRef) -> str:
    known = [
        one.get("VersionNumber", 0)
        for one in folder.elements(VERSIONS)
        if template.id == one.get("LaunchTemplateId")
        or (template.name and template.name == one.get("LaunchTemplateName"))
    ]
    return ", ".join(str(number) for number in sorted(known))


def _nodegroup(context: ClusterContext, group: Group, policy: NodePolicy) -> Nodegroup | None:
    if group.nodegroup is None:
        return None
    return context.ports.nodegroups.get(group.cluster or context.cluster, group.nodegroup, policy.template.ttl)


def _target(
    arguments: argparse.Namespace, launches: LaunchSources, group: Group, nodegroup: Nodegroup | None
) -> Target:
    """Return the target. An image or a Kubernetes version stands for a launch template version that is yet to be made,
    unless the present one has that image already: then an earlier run has made it.
    """
    template, launch = group.launch.template, launches.settings(group)
    made = arguments.kubernetes_version is None and (
        arguments.ami is None or (launch and launch.image == arguments.ami)
    )
    overrides = {
        one.instance_type: _resolved(launches, group, one.template)
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


def _resolved(launches: LaunchSources, group: Group, template: LaunchTemplateRef) -> LaunchTemplateRef:
    """Resolve the template of an override that brings its own."""
    launched = replace(group, launch=replace(group.launch, template=template))
    return _numbered(template, launches.settings(launched))


def _numbered(template: LaunchTemplateRef, launch: LaunchSettings | None) -> LaunchTemplateRef:
    """Return the template with its number instead of $Latest or $Default, empty where no source gives the number."""
    if launch is not None and launch.version:
        return replace(template, id=template.id or launch.template, version=str(launch.version))
    return template if template.version.isdigit() else replace(template, version="")
