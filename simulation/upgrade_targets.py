"""Targets that an operator may name for an upgrade: by the group's own kind, and with what the account has."""

from typing import Any

from simulation.aws.compute import SimGroup
from simulation.aws.templates import ALIAS, SimTemplate
from simulation.image_aliases import NEXT, PUBLIC, VERSION
from simulation.scene import Scene

NEWER = "1.34"  # Kubernetes version, for node groups whose image EKS chooses
VERSIONS = 4  # of a template, at the most


def asked_target(scene: Scene, group: SimGroup, pick: int) -> dict[str, Any]:
    """Return the part of an execution's input that names the target: empty for an upgrade that continues what an
    earlier one has left, or takes EKS' newest image.
    """
    nodegroup = scene.system.managed_updates.of_group(group.name)
    if nodegroup is not None and nodegroup.template is None:
        return {"kubernetesVersion": NEWER} if pick >> 4 & 1 else {}
    if pick >> 4 & 1:
        return _image(scene, nodegroup is None, pick)
    if pick >> 5 & 1:
        _add_version(own_template(scene, group), group)
        return {"launchTemplateVersion": "$Latest"}
    return {}


def own_template(scene: Scene, group: SimGroup) -> SimTemplate:
    """Return the template that the group's owner writes: of a managed node group the one of which EKS has a copy."""
    nodegroup = scene.system.managed_updates.of_group(group.name)
    if nodegroup is None or nodegroup.template is None:
        return group.template
    return scene.system.templates.template(nodegroup.template[0])


def _image(scene: Scene, may_be_parameter: bool, pick: int) -> dict[str, Any]:
    """Name an image by its id, or in an account with EKS' public parameters also by one of them."""
    if may_be_parameter and PUBLIC["amd64"] in scene.system.templates.parameters and pick >> 10 & 1:
        return {"kubernetesVersion": VERSION} if pick >> 11 & 1 else {"ami": PUBLIC["amd64"]}
    return {"ami": f"ami-{pick % 4 + 2:017d}"}


def _add_version(template: SimTemplate, group: SimGroup) -> None:
    """Add a version, behind another alias where the first one is behind one."""
    if len(template.images) < VERSIONS:
        aliased = template.images[0].startswith(ALIAS)
        fixed = f"ami-{len(template.images) + 1:017d}"
        template.add(ALIAS + NEXT.format(group=group.name) if aliased else fixed)
