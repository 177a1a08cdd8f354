"""Target of the nodes: the launch template version, made where it does not exist yet.

Decides what a request means and what a rollback returns to; `preflight/gather.py` the labels of the target's nodes.

Managed node groups: EKS launches from a copy of its own; the version of the group's own launch template, where it has
one, is on the nodes' labels. Source: EKS, "Managed node update behavior" (labels of the scale-up phase).

Changes by others, while an upgrade runs, of what its group launches: `$Latest` has moved, or an owner's tool points the
group at another version of its launch template, back at the old one most often. Every node that the upgrade replaced
would then come back from that version, old to the upgrade's target, and would be replaced again, without end. So
nothing new starts. The upgrade ends if the group is not pointed back soon; it does not point the group back by itself,
because the two would take turns. An abort takes back only what the upgrade has set."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from leeward.errors import InvalidInputError, ObjectGoneError, TerminalError
from leeward.model.group import Group
from leeward.model.launch import LaunchTemplateRef
from leeward.model.launch_refusal import is_denial, template_denied
from leeward.model.nodegroup import Nodegroup
from leeward.ports import Ports
from leeward.ports.autoscaling import GroupChanges, Groups
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances, LaunchSources, Templates
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Upgrades
from leeward.upgrade.members import UpgradeTarget, is_template
from leeward.upgrade.observation import Observation, described
from leeward.upgrade.record import UpgradeRecord, version_token
from leeward.upgrade.run import UpgradeNext, UpgradeRun, written
from leeward.upgrade.waits import LONGEST, UpgradeWait, again, track_wait

IMAGES = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{arch}/standard/recommended/image_id"
ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}  # Kubernetes' term -> the parameter's
ARCH_LABEL = "kubernetes.io/arch"
NAMED = {"x86_64": "amd64", "amd64": "amd64", "arm64": "arm64", "aarch64": "arm64"}  # in names -> Kubernetes' term
_ALIAS = re.compile(r"al2023@(\d+\.\d+)")
POINTED_BACK_WITHIN = timedelta(minutes=2)  # a description may be a moment old, and a mistake be undone
CUSTOM = "CUSTOM"  # AMI type: the image is the launch template's, its id stands for the release


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


def expected(record: UpgradeRecord, group: Group, templates: Templates) -> UpgradeTarget:
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


def points_at(group: Group, target: UpgradeTarget, templates: Templates) -> bool:
    """Return whether new instances come from the target already, be it by `$Latest`. Raises ObjectGoneError for a
    target that does not exist any more; a group whose own version is gone points elsewhere.
    """
    wanted = target.template
    return wanted is None or _existing(template_of(group), templates) == templates.numbered(wanted)


def is_gone(target: UpgradeTarget, templates: Templates) -> bool:
    """Return whether the target is a version, or of a template, that does not exist any more."""
    return target.template is not None and _existing(target.template, templates) is None


def _existing(template: LaunchTemplateRef, templates: Templates) -> LaunchTemplateRef | None:
    try:
        return templates.numbered(template)
    except ObjectGoneError:
        return None


def point_group(
    record: UpgradeRecord, group: Group, target: UpgradeTarget, group_changes: GroupChanges, templates: Templates
) -> str:
    """Point the group at the target where it is not yet. Return the sentence for the operator if Auto Scaling denies
    the function the use of the template, else an empty one.
    """
    if target.template is None or points_at(group, target, templates):
        return ""
    try:
        group_changes.point_at(group, target.template)
    except TerminalError as error:
        if not is_denial(str(error)):
            raise
        return template_denied(group.name, target.template.label, record.cluster, str(error))
    return ""


def _asked_version(record: UpgradeRecord, group: Group) -> LaunchTemplateRef:
    template = template_of(group)
    return replace(template, version=record.request.template_version or template.version)


def _target(group: Group, template: LaunchTemplateRef, templates: Templates) -> UpgradeTarget:
    overrides = {
        one.instance_type: templates.numbered(one.template)
        for one in group.launch.overrides
        if one.template and one.instance_type
    }
    by_requirements = tuple(
        templates.numbered(one.template) for one in group.launch.overrides if one.template and not one.instance_type
    )
    return UpgradeTarget(
        template=templates.numbered(template),
        overrides=overrides,
        by_requirements=by_requirements,
        nodegroup=group.nodegroup,
    )


def _previous(group: Group, target: UpgradeTarget, templates: Templates) -> UpgradeTarget | None:
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


def launched_instead(record: UpgradeRecord, group: Group, templates: Templates, *, resolve: bool = True) -> str:
    """Return what the group launches instead of the target at which the upgrade has pointed it, in a sentence; empty
    where it launches the target. `resolve`: whether `$Latest` and `$Default` are resolved, which is a call to EC2.
    """
    for wanted, launched in _launches(record, group) if record.pointed else ():
        if launched.version.isdecimal() or resolve:
            now = _numbered(launched, templates)
            if now is not None and not _is_same(now, wanted):
                return f"{record.group} launches {now.label} and not {wanted.label}, the launch template of the upgrade"
    return ""


def launched_since(record: UpgradeRecord, observation: Observation) -> bool:
    """Return whether an old member was launched since the sizes were measured: what the group launches may be old."""
    old = (observation.instances.get(one.instance.id) for one in observation.preflight.old)
    return any(one is not None and one.launched > record.measured for one in old)


def wait_or_fail(run: UpgradeRun, record: UpgradeRecord, instead: str, clock: Clock, upgrades: Upgrades) -> UpgradeRun:
    """Wait until the group is pointed back, or end. The next start without a target rolls to what the group launches
    then.
    """
    record, stalled = track_wait(record, UpgradeWait(what=instead, limit=POINTED_BACK_WITHIN), clock, upgrades)
    if not stalled:
        return again(run, UpgradeNext.WAIT, LONGEST, instead)
    version = record.target.template.version if record.target.template is not None else ""
    written(as_launched(record), upgrades)
    fix = (
        "others have changed it since the upgrade began: start it again to roll to what the group launches, or with "
        f"--launch-template-version {version}"
    )
    return replace(run, next=UpgradeNext.CREATION_FAILURE, why=f"{instead}: {fix}")


def as_launched(record: UpgradeRecord) -> UpgradeRecord:
    """Return the record with what the group launches as its target, which the next steps determine."""
    request = replace(record.request, image="", template_version="", kubernetes="", automatic="")
    return replace(record, request=request, prepared=False, pointed=False, checked=False, rolling_back=False)


def noted(record: UpgradeRecord, group: Group, templates: Templates) -> UpgradeRecord:
    """Return the record with the target among the versions at which the upgrade has pointed the group, and with the
    version that its owner had it launch. An automatic upgrade leaves that out: its parameter has the new image already.
    """
    target, template = record.target.template, group.launch.template
    if record.pointed or target is None or template is None:
        return record
    now = _numbered(template, templates)
    if now is not None and not _is_ours(now, record) and not record.request.automatic:
        record = replace(record, own=now)
    listed = any(_is_same(version, target) for version in record.pointed_at)
    return record if listed else replace(record, pointed_at=(*record.pointed_at, target))


def before_it(record: UpgradeRecord) -> UpgradeTarget | None:
    """Return what the group launches after an abort: what its owner had it launch, else the version before. An abort of
    a rollback returns to the version that was rolled back from.
    """
    if record.own is None or record.rolling_back:
        return record.previous
    return replace(record.previous or record.target, template=record.own)


def set_by_others(record: UpgradeRecord, group: Group, templates: Templates) -> LaunchTemplateRef | None:
    """Return the version that the group launches where it is none of this upgrade's; None where it is, or is gone."""
    template = group.launch.template
    now = _numbered(template, templates) if template is not None else None
    return None if now is None or _is_ours(now, record) else now


def is_version(now: LaunchTemplateRef, target: UpgradeTarget | None) -> bool:
    """Return whether the version is the target's own."""
    return target is not None and target.template is not None and _is_same(now, target.template)


def _is_ours(now: LaunchTemplateRef, record: UpgradeRecord) -> bool:
    versions = (record.target.template, *record.pointed_at)
    return any(version is not None and _is_same(now, version) for version in versions)


def _launches(record: UpgradeRecord, group: Group) -> Iterator[tuple[LaunchTemplateRef, LaunchTemplateRef]]:
    """Yield the target and what the group launches: of its own template, and of types with a template of their own."""
    target, template = record.target, group.launch.template
    if target.template is None or template is None:
        return
    yield target.template, template
    own = {one.instance_type: one.template for one in group.launch.overrides if one.template and one.instance_type}
    for name in sorted({*own, *target.overrides}):
        if wanted := target.of(name):
            yield wanted, own.get(name, template)
    chosen = [one.template for one in group.launch.overrides if one.template and not one.instance_type]
    for wanted in target.by_requirements:
        yield from ((wanted, now) for now in chosen if is_template(now, wanted))


def _numbered(template: LaunchTemplateRef, templates: Templates) -> LaunchTemplateRef | None:
    """Return the template with its version as a number, None where it is gone: launches fail and name it."""
    if template.version.isdecimal():
        return template
    try:
        return templates.numbered(template)
    except ObjectGoneError:
        return None


def _is_same(now: LaunchTemplateRef, wanted: LaunchTemplateRef) -> bool:
    return is_template(now, wanted) and now.version == wanted.version


def managed_target(record: UpgradeRecord, nodegroup: Nodegroup | None, templates: Templates) -> UpgradeTarget:
    """Return the target before anything is made. Without a version of its own template EKS chooses the image, which is
    not known yet. Raises ObjectGoneError for a version that does not exist.
    """
    target, version = UpgradeTarget(nodegroup=record.target.nodegroup), record.request.template_version
    if nodegroup is None or nodegroup.template is None or not version:
        return target
    return replace(target, source=_numbered_source(nodegroup.template[0], version, templates))


def prepared_managed_target(record: UpgradeRecord, nodegroup: Nodegroup, ports: Ports) -> UpgradeTarget:
    """Return the target with a version of the group's own launch template made for the image that is asked for, once:
    its token follows from the start. A rollback keeps the release that it returns to.
    """
    if record.rolling_back and record.target.release is not None:
        return record.target
    if not record.request.image or nodegroup.template is None:
        return managed_target(record, nodegroup, ports.templates)
    template, image = LaunchTemplateRef(id=nodegroup.template[0], version=nodegroup.template[1]), record.request.image
    if not image.startswith("ami-"):
        image = image_asked(record, ports)
    new = ports.templates.version_for(template, image, token=version_token(record, image))
    return UpgradeTarget(nodegroup=record.target.nodegroup, source=(new.id or template.id, new.version))


def managed_target_before(nodegroup: Nodegroup, target: UpgradeTarget, templates: Templates) -> UpgradeTarget | None:
    """Return the target of a rollback: another version of the group's own template, else the Kubernetes version and
    release of EKS' image that the group has now. EKS decides whether it takes a group back to an earlier one.
    """
    if nodegroup.template is not None and target.source is not None:
        source = _numbered_source(*nodegroup.template, templates)
        if source != target.source:
            return UpgradeTarget(nodegroup=target.nodegroup, source=source)
    if not nodegroup.release or nodegroup.ami_type == CUSTOM:
        return None
    return UpgradeTarget(nodegroup=target.nodegroup, release=(nodegroup.version, nodegroup.release))


def observed_managed_target(
    target: UpgradeTarget, group: Group, launches: LaunchSources, templates: Templates, *, ended: bool
) -> UpgradeTarget:
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


def _numbered_source(template: str, version: str, templates: Templates) -> tuple[str, str]:
    if version.isdigit():
        return template, version
    return template, templates.numbered(LaunchTemplateRef(id=template, version=version)).version
