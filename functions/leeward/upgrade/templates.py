"""Target of the nodes: the launch template version, made where it does not exist yet.

Decides what a request means and what a rollback returns to; `expected_labels.py` the labels of the target's nodes."""

import re
from collections import Counter
from dataclasses import replace

from leeward.errors import InvalidInputError, ObjectGoneError, TerminalError
from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef
from leeward.model.launch_refusal import is_denial, template_denied
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.compute import Instances, Templates
from leeward.ports.kubernetes import Clusters
from leeward.upgrade.members import Target
from leeward.upgrade.observation import described
from leeward.upgrade.record import UpgradeRecord, version_token

IMAGES = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{arch}/standard/recommended/image_id"
ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}  # Kubernetes' term -> the parameter's
ARCH_LABEL = "kubernetes.io/arch"
NAMED = {"x86_64": "amd64", "amd64": "amd64", "arm64": "arm64", "aarch64": "arm64"}  # in names -> Kubernetes' term
_ALIAS = re.compile(r"al2023@(\d+\.\d+)")


def architecture_named(image: str) -> str:
    """Return the architecture that an alias or SSM parameter names, in Kubernetes' term; empty for others, and for an
    image's id.
    """
    words = re.split(r"[/._@]|-(?=arm64|amd64|x86|aarch64)", image.replace("x86_64", "amd64"))
    return next((NAMED[word] for word in words if word in NAMED), "")


def template_of(group: Group) -> LaunchTemplateRef:
    """Return the template that the group launches from. Raises InvalidInputError for a launch configuration."""
    if group.launch.template is None:
        raise InvalidInputError(f"group {group.name}: found no launch template, expected one: configurations have none")
    return group.launch.template


def expected(record: UpgradeRecord, group: Group, templates: Templates) -> Target:
    """Return the target before anything is made: without a template where a version has yet to be made."""
    if record.prepared or record.request.image or record.request.kubernetes or record.request.automatic:
        return record.target
    return _target(group, _asked_version(record, group), templates)


def prepared(record: UpgradeRecord, group: Group, ports: Ports) -> UpgradeRecord:
    """Return the record with its target, and with what a rollback returns to. A version that has to be made is made
    once: its token follows from the start.
    """
    if record.prepared:
        return record
    template = _asked_version(record, group)
    image = image_asked(record, ports)
    if record.request.automatic:
        return _behind_a_parameter(record, group, ports)
    if image:
        if not ports.templates.image_exists(image):
            raise InvalidInputError(f"ami: found {image}, which EC2 does not know or which is not available")
        token = version_token(record, image)
        template = ports.templates.version_for(ports.templates.numbered(template), image, token=token)
    target = _target(group, template, ports.templates)
    return replace(
        record, target=target, previous=record.previous or _previous(group, target, ports.templates), prepared=True
    )


def _behind_a_parameter(record: UpgradeRecord, group: Group, ports: Ports) -> UpgradeRecord:
    """Return the record of an automatic upgrade with its target: a version like the group's, of whose parameter EC2 has
    a newer image now. A rollback cannot return to the version before, which has that image as well: it returns to a
    version with the image that most nodes have.

    Raises InvalidInputError if the parameter names another image than the one for which the upgrade was started: that
    one has not been there for `update.auto.after`.
    """
    launch, wanted = ports.launches.settings(group), record.request.automatic
    if launch is None or not launch.alias:
        raise InvalidInputError(f"group {group.name}: found an image that is no SSM parameter, expected resolve:ssm:…")
    if launch.image != wanted:
        raise InvalidInputError(
            f"{launch.alias}: found {launch.image}, expected {wanted}, for which the upgrade was started: it has moved "
            "again, and an upgrade to the newer image starts after update.auto.after"
        )
    source = ports.templates.numbered(template_of(group))
    previous, token = record.previous, version_token(record, wanted)
    old = _common_image(group, wanted, ports.instances)
    if previous is None and old:
        before = ports.templates.version_for(source, old, token=f"{token}-before")
        previous = replace(_target(group, before, ports.templates), template=before)
    template = ports.templates.version_for(source, launch.alias, token=token, again=True)
    target = _target(group, template, ports.templates)
    return replace(record, target=target, previous=previous, prepared=True)


def _common_image(group: Group, wanted: str, instances: Instances) -> str:
    """Return the image of most members that have another one than the wanted; empty where none is known."""
    known = instances.describe([member.id for member in group.instances])
    images = Counter(one.image for one in known.values() if one.image and one.image != wanted)
    return next((image for image, _ in images.most_common(1)), "")


def points_at(group: Group, target: Target, templates: Templates) -> bool:
    """Return whether new instances come from the target already, be it by `$Latest`. Raises ObjectGoneError for a
    target that does not exist any more; a group whose own version is gone points elsewhere.
    """
    wanted = target.template
    return wanted is None or _existing(template_of(group), templates) == templates.numbered(wanted)


def is_gone(target: Target, templates: Templates) -> bool:
    """Return whether the target is a version, or of a template, that does not exist any more."""
    return target.template is not None and _existing(target.template, templates) is None


def _existing(template: LaunchTemplateRef, templates: Templates) -> LaunchTemplateRef | None:
    try:
        return templates.numbered(template)
    except ObjectGoneError:
        return None


def point_group(record: UpgradeRecord, group: Group, target: Target, ports: Ports) -> str:
    """Point the group at the target where it is not yet. Return the sentence for the operator if Auto Scaling denies
    the function the use of the template, else an empty one.
    """
    if target.template is None or points_at(group, target, ports.templates):
        return ""
    try:
        ports.group_changes.point_at(group, target.template)
    except TerminalError as error:
        if not is_denial(str(error)):
            raise
        return template_denied(group.name, target.template.label, record.cluster, str(error))
    return ""


def _asked_version(record: UpgradeRecord, group: Group) -> LaunchTemplateRef:
    template = template_of(group)
    return replace(template, version=record.request.template_version or template.version)


def _target(group: Group, template: LaunchTemplateRef, templates: Templates) -> Target:
    overrides = {
        one.instance_type: templates.numbered(one.template)
        for one in group.launch.overrides
        if one.template and one.instance_type
    }
    by_requirements = tuple(
        templates.numbered(one.template) for one in group.launch.overrides if one.template and not one.instance_type
    )
    return Target(
        template=templates.numbered(template),
        overrides=overrides,
        by_requirements=by_requirements,
        nodegroup=group.nodegroup,
    )


def _previous(group: Group, target: Target, templates: Templates) -> Target | None:
    """Return what most of the old nodes were launched from; without any the group's template as it stood."""
    came = [(one.template, one.type) for one in group.instances if one.template is not None]
    old = [template for template, kind in came if template != target.of(kind, template)]
    own = [one for one in old if target.template is not None and one.id == target.template.id]
    common = Counter(own).most_common(1)
    before = common[0][0] if common else templates.numbered(template_of(group))
    return None if before == target.template else replace(target, template=before)


def image_asked(record: UpgradeRecord, ports: Ports) -> str:
    """Return the id of the image that was asked for by id, parameter or alias, or by a Kubernetes version; empty where
    none was. Raises InvalidInputError that names the SSM parameter where there is none.
    """
    parameter = _parameter(record, ports)
    if not parameter:
        return record.request.image
    try:
        return ports.templates.image_behind(parameter)
    except ObjectGoneError as error:
        asked = record.request.image or f"Kubernetes {record.request.kubernetes}"
        raise InvalidInputError(
            f"{asked}: found no SSM parameter {parameter}, expected an image that there is: aws ssm "
            f"get-parameters-by-path --recursive --path {IMAGES.partition('/{')[0]} --query 'Parameters[].Name' "
            "lists those of EKS"
        ) from error


def _parameter(record: UpgradeRecord, ports: Ports) -> str:
    """Return the SSM parameter that holds the image's id; empty where the image is named by its id, and without one."""
    image = record.request.image
    alias = _ALIAS.fullmatch(image)
    if image and not (alias or image.startswith(("ami-", "/"))):
        raise InvalidInputError(f"ami: found {image!r}, expected an AMI id, an SSM parameter or al2023@VERSION")
    version = alias[1] if alias else record.request.kubernetes
    if version:
        return IMAGES.format(version=version, arch=_architecture(record, ports.clusters, ports.groups))
    return image if image.startswith("/") else ""


def _architecture(record: UpgradeRecord, clusters: Clusters, groups: Groups) -> str:
    """Return the architecture of the group's nodes, where they have one, those from a launch template of an override
    apart: these keep their image. Raises InvalidInputError for more than one.
    """
    group = described(record.group, groups)
    apart = {one.template.id for one in group.launch.overrides if one.template is not None} - {template_of(group).id}
    members = {one.id for one in group.instances if one.template is None or one.template.id not in apart}
    nodes = clusters.kubernetes(record.cluster).nodes()
    architectures = {node.labels.get(ARCH_LABEL, "amd64") for node in nodes if node.instance_id in members}
    if len(architectures) > 1:
        raise InvalidInputError(
            f"group {group.name}: found nodes of {', '.join(sorted(architectures))}, expected one: name --ami"
        )
    return ARCHITECTURES.get(next(iter(architectures), "amd64"), "x86_64")
