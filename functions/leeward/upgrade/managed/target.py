"""Target of a managed node group and what it was before, in the terms of the labels that EKS puts on its nodes.

EKS launches from a copy of its own; the version of the group's own launch template, where it has one, is on the
nodes' labels. Source: EKS, "Managed node update behavior" (labels of the scale-up phase)."""

from dataclasses import replace

from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.ports import Ports
from leeward.ports.compute import LaunchSources, Templates
from leeward.upgrade.members import Target
from leeward.upgrade.record import UpgradeRecord, version_token
from leeward.upgrade.templates import image_asked

CUSTOM = "CUSTOM"  # AMI type: the image is the launch template's, its id stands for the release


def wanted(record: UpgradeRecord, nodegroup: Nodegroup | None, templates: Templates) -> Target:
    """Return the target before anything is made. Without a version of its own template EKS chooses the image, which is
    not known yet. Raises ObjectGoneError for a version that does not exist.
    """
    target, version = Target(nodegroup=record.target.nodegroup), record.request.template_version
    if nodegroup is None or nodegroup.template is None or not version:
        return target
    return replace(target, source=_numbered(nodegroup.template[0], version, templates))


def made(record: UpgradeRecord, nodegroup: Nodegroup, ports: Ports) -> Target:
    """Return the target with a version of the group's own launch template made for the image that is asked for, once:
    its token follows from the start. A rollback keeps the release that it returns to.
    """
    if record.rolling_back and record.target.release is not None:
        return record.target
    if not record.request.image or nodegroup.template is None:
        return wanted(record, nodegroup, ports.templates)
    template, image = LaunchTemplateRef(id=nodegroup.template[0], version=nodegroup.template[1]), record.request.image
    if not image.startswith("ami-"):
        image = image_asked(record, ports)
    new = ports.templates.version_for(template, image, token=version_token(record, image))
    return Target(nodegroup=record.target.nodegroup, source=(new.id or template.id, new.version))


def before(nodegroup: Nodegroup, target: Target, templates: Templates) -> Target | None:
    """Return the target of a rollback: another version of the group's own template, else the Kubernetes version and
    release of EKS' image that the group has now. EKS decides whether it takes a group back to an earlier one.
    """
    if nodegroup.template is not None and target.source is not None:
        source = _numbered(*nodegroup.template, templates)
        if source != target.source:
            return Target(nodegroup=target.nodegroup, source=source)
    if not nodegroup.release or nodegroup.ami_type == CUSTOM:
        return None
    return Target(nodegroup=target.nodegroup, release=(nodegroup.version, nodegroup.release))


def seen(target: Target, group: Group, launches: LaunchSources, templates: Templates, *, ended: bool) -> Target:
    """Return the target with the version of EKS' copy that the group launches now, once members are of another (or the
    update has ended): then EKS has set it up. Its image is the one with which nodes are labelled where EKS chooses it.
    """
    template = group.launch.template
    if template is not None and not template.version.isdigit():
        template = templates.numbered(template)
    versions = {member.template.version for member in group.instances if member.template is not None}
    if template is None or not (ended or versions - {template.version}) or target.template == template:
        return target
    launched = launches.settings(group) if target.source is None else None
    return replace(target, template=template, image=launched.image if launched is not None else target.image)


def _numbered(template: str, version: str, templates: Templates) -> tuple[str, str]:
    if version.isdigit():
        return template, version
    return template, templates.numbered(LaunchTemplateRef(id=template, version=version)).version
