"""Members of a group that are old and new: what the upgrade has still to replace.

Decides from the group's own record of what each instance was launched from and, where that is unknown, from the
labels that EKS puts on nodes of managed groups. A node that an earlier, failed upgrade finished is new and stays in
service (EKS, "Managed node update behavior", older revision, step 5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from leeward.model.group import Group, GroupInstance
from leeward.model.launch import LaunchTemplateRef
from leeward.model.lifecycle import ENDING, IN_POOL, LifecycleRole, role_of
from leeward.model.node import Node

NODEGROUP_LABEL = "eks.amazonaws.com/nodegroup"
IMAGE_LABEL = "eks.amazonaws.com/nodegroup-image"
TEMPLATE_LABEL = "eks.amazonaws.com/sourceLaunchTemplateId"
VERSION_LABEL = "eks.amazonaws.com/sourceLaunchTemplateVersion"
_LEAVING = ENDING | {LifecycleRole.ENDED, LifecycleRole.DETACHING}


class Age(StrEnum):
    """Age of a member relative to the target."""

    OLD = "old"
    NEW = "new"


def is_template(one: LaunchTemplateRef, other: LaunchTemplateRef) -> bool:
    """Return whether both are versions of one template. Ids decide where both have one: a name may have been used
    again.
    """
    return one.id == other.id if one.id and other.id else one.name == other.name


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeTarget:
    """The template from which members should have been launched."""

    template: LaunchTemplateRef | None = None  # the group's, its version a number; None or an empty version: unknown
    # of instance types whose override brings a template of its own
    overrides: Mapping[str, LaunchTemplateRef] = field(default_factory=dict)
    by_requirements: tuple[LaunchTemplateRef, ...] = ()  # of overrides that bring one and choose types by requirements
    nodegroup: str | None = None  # name of a managed group
    image: str = ""  # of a managed group, as its nodes' labels name it; empty: not known
    source: tuple[str, str] | None = None  # template and version of a managed group, as its nodes' labels name them
    # Kubernetes version and release of EKS' image to which a rollback asks EKS to return
    release: tuple[str, str] | None = None
    node_labels: Mapping[str, str] = field(default_factory=dict)  # of a self-managed group

    def of(self, instance_type: str, source: LaunchTemplateRef | None = None) -> LaunchTemplateRef | None:
        """Return the template from which the group would launch a member of the type now. `source`: the one that it was
        launched from, which tells whose requirements chose the type.
        """
        if instance_type in self.overrides or source is None:
            return self.overrides.get(instance_type, self.template)
        same = [one for one in self.by_requirements if is_template(one, source)]
        if self.template is not None and is_template(self.template, source):
            same.insert(0, self.template)
        return next((one for one in same if one.version == source.version), same[0] if same else self.template)

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels that a node of the target carries. EKS puts its own on managed ones: with a custom launch template the
        pair that names it instead of the image.
        """
        if self.nodegroup is None:
            return self.node_labels
        labels = {NODEGROUP_LABEL: self.nodegroup}
        if self.source is not None:
            return {**labels, TEMPLATE_LABEL: self.source[0], VERSION_LABEL: self.source[1]}
        return {**labels, IMAGE_LABEL: self.image} if self.image else labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An instance of the group that is not leaving it, its Node where it has joined, its age and the reason."""

    instance: GroupInstance
    node: Node | None
    age: Age
    why: str

    @property
    def name(self) -> str:
        """Name of the node, the instance's id while there is none."""
        return self.node.name if self.node is not None else self.instance.id

    @property
    def tainted(self) -> bool:
        """True while a termination of its node is under way, of whatever cause."""
        return self.node is not None and self.node.tainted


class Absence(StrEnum):
    """Reason why an instance of the group is no member of its upgrade."""

    STANDBY = "in Standby"
    WARM_POOL = "in the warm pool"
    ROOT_VOLUME = "replacing its root volume"
    UNKNOWN = "in a lifecycle state that this version does not know"
    PROTECTED = "protected from scale-in"


_ABSENT = {
    LifecycleRole.STANDBY: Absence.STANDBY,
    LifecycleRole.REPLACING_ROOT: Absence.ROOT_VOLUME,
    LifecycleRole.UNKNOWN: Absence.UNKNOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An instance that the upgrade neither replaces nor terminates."""

    instance: GroupInstance
    absence: Absence


def members(group: Group, nodes: Mapping[str, Node], target: UpgradeTarget) -> tuple[Member, ...]:
    """Return the instances that are not leaving and not left out, by name. `nodes` by instance id."""
    present = [
        member
        for member in _present(group, nodes, target)
        if _absence(member, by_eks=group.nodegroup is not None) is None
    ]
    return tuple(sorted(present, key=lambda member: member.name))


def left_out(group: Group, nodes: Mapping[str, Node], target: UpgradeTarget) -> tuple[LeftOut, ...]:
    """Return old instances that stay as they are, by id."""
    present = ((one, _absence(one, by_eks=group.nodegroup is not None)) for one in _present(group, nodes, target))
    absent = (
        LeftOut(instance=one.instance, absence=why) for one, why in present if why is not None and one.age is Age.OLD
    )
    return tuple(sorted(absent, key=lambda one: one.instance.id))


def _present(group: Group, nodes: Mapping[str, Node], target: UpgradeTarget) -> list[Member]:
    return [
        _member(instance, nodes.get(instance.id), target)
        for instance in group.instances
        if role_of(instance.lifecycle) not in _LEAVING
    ]


def _absence(member: Member, *, by_eks: bool) -> Absence | None:
    """Return why the upgrade leaves the member out: an operator has taken it out of service, or wants the group to keep
    it, or the group works on it and it returns to service. New instances may be protected by the group's default: they
    serve. EKS replaces protected instances of its node groups as any other.
    """
    role = role_of(member.instance.lifecycle)
    if role in IN_POOL:
        return Absence.WARM_POOL
    if role in _ABSENT:
        return _ABSENT[role]
    protected = member.instance.protected and member.age is Age.OLD and not by_eks
    return Absence.PROTECTED if protected else None


def _member(instance: GroupInstance, node: Node | None, target: UpgradeTarget) -> Member:
    wanted = target.of(instance.type, instance.template)
    known = _by_record(instance, wanted) or _by_labels(node, target)
    age, why = known or (Age.OLD, "nothing shows that it was launched from the target's version")
    return Member(instance=instance, node=node, age=age, why=why)


def _by_record(instance: GroupInstance, wanted: LaunchTemplateRef | None) -> tuple[Age, str] | None:
    """Return the age by the group's record, None where either side is not known."""
    have = instance.template
    if have is None or wanted is None or not wanted.version:
        return None
    age = Age.NEW if is_template(have, wanted) and have.version == wanted.version else Age.OLD
    return age, f"launched from {have.label}, the target is {wanted.label}"


def _by_labels(node: Node | None, target: UpgradeTarget) -> tuple[Age, str] | None:
    """Return the age by labels, only where both the node and the target name a source version or an image."""
    if node is None or target.nodegroup is None:
        return None
    for key in (VERSION_LABEL, IMAGE_LABEL):
        have, want = node.labels.get(key), target.labels.get(key)
        if have and want:
            same = have == want and (
                key == IMAGE_LABEL or node.labels.get(TEMPLATE_LABEL) == target.labels[TEMPLATE_LABEL]
            )
            return (Age.NEW if same else Age.OLD), f"{key} is {have}, the target has {want}"
    return None
