"""Drift of a node against its policy (requirements, labels, annotations and taints), and of its instance against its
group's current launch template.

Decides for each difference whether a replacement fixes it. A replacement does so only if the node that the group would
launch now has the property.

A launch template is compared as Auto Scaling launches it: the group's propagated tags over the template's, the security
groups of the primary interface. Tags and security groups that other owners add to an instance are no drift. Whether a
launch fixes such a difference is judged by `evidence`."""

from collections.abc import Iterable, Iterator, Mapping

from leeward.drift.evidence import propagated_over
from leeward.drift.reasons import DriftReason, Field
from leeward.drift.template_hash import fields_of, read
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.launch import LaunchSettings
from leeward.model.node import Node, Taint
from leeward.node_template.build import ExpectedNode
from leeward.policy.document import DesiredTaint, NodePolicy
from leeward.policy.document import NodeRequirement as PolicyRequirement
from leeward.scheduling.selectors import LabelRequirement, Operator
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable

CAPACITY_LABEL = "karpenter.sh/capacity-type"
HIDDEN = (Field.STARTUP_TAINTS, Field.USER_DATA, Field.KUBELET, Field.BLOCK_DEVICES)
_WORDS = {True: "on", False: "off"}


def of_requirements(
    snapshot: ClusterSnapshot, node: Node, group: Group, policy: NodePolicy, launchable: Launchable | None
) -> Iterator[DriftReason]:
    """Yield the requirements that the node's labels do not meet.

    The group's own instance types, zones and capacity type are requirements as well. The capacity type counts only
    where the group does not mix types and keeps no on-demand base.
    """
    labels = known_labels(snapshot, node)
    for requirement in policy.requirements:
        if not _meets(requirement, labels):
            fixable = launchable is not None and _all_meet(requirement, launchable)
            yield _of_label(requirement.key, labels, _values(requirement), fixable=fixable)
    if launchable is None:
        return
    instance_type, zone = snapshot.type_of(node), snapshot.zone_of(node)
    if instance_type and launchable.types and instance_type not in launchable.types:
        yield _of_label(well_known.INSTANCE_TYPE_LABEL, labels, f"In [{', '.join(launchable.types)}]", fixable=True)
    if zone and group.zones and zone not in group.zones:
        yield _of_label(well_known.ZONE_LABEL, labels, f"In [{', '.join(group.zones)}]", fixable=True)
    capacity, wanted = snapshot.capacity_of(node), launchable.capacity
    if wanted is not None and capacity not in {None, wanted} and not group.on_demand_base:
        yield _of_label(CAPACITY_LABEL, labels, f"In [{wanted.value}]", fixable=True)


def known_labels(snapshot: ClusterSnapshot, node: Node) -> dict[str, str]:
    """Return the node's labels. Missing labels of the instance type, the zone and the capacity type (under Karpenter's
    key) are added from what EC2 reports.
    """
    capacity = snapshot.capacity_of(node)
    labels = {
        well_known.INSTANCE_TYPE_LABEL: snapshot.type_of(node),
        well_known.ZONE_LABEL: snapshot.zone_of(node),
        CAPACITY_LABEL: capacity.value if capacity else "",
    }
    return {**{key: value for key, value in labels.items() if value}, **node.labels}


def of_desired(node: Node, policy: NodePolicy, expected: Iterable[ExpectedNode]) -> Iterator[DriftReason]:
    """Yield the labels, annotations and taints of the policy that the node lacks or has with another value.

    `expected`: the node of each instance type that the group would launch now.
    """
    new_nodes = tuple(expected)
    wanted = policy.node
    wrong = _wrong(wanted.labels, node.labels)
    if wrong:
        fixable = bool(new_nodes) and all(not _wrong(wrong, new.labels) for new in new_nodes)
        yield _of_pairs(Field.LABELS, wrong, node.labels, fixable=fixable)
    wrong = _wrong(wanted.annotations, node.annotations)
    if wrong:  # fn sync and the minute reconciler write them: no launch gives them, and none is needed
        yield _of_pairs(Field.ANNOTATIONS, wrong, node.annotations, fixable=False)
    lacking = _lacking(wanted.taints, node.taints)
    if lacking:
        fixable = bool(new_nodes) and all(not _lacking(lacking, new.taints) for new in new_nodes)
        keys = {taint.key for taint in lacking}
        have = ", ".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints if taint.key in keys)
        want = ", ".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in lacking)
        yield DriftReason(field=Field.TAINTS, have=have or "none", want=want, fixable=fixable)


def lacks_of_new_nodes(policy: NodePolicy, launchable: Launchable | None) -> tuple[str, ...]:
    """Return what a node launched now would lack of what the policy asks, such as `label team=red`; empty where it
    would be in order, and where the group's launches are unknown.

    Independent of the existing node, whose labels and taints may have been fixed manually. Annotations are written onto
    every node (`sync.labels`).
    """
    if launchable is None:
        return ()
    new_nodes, wanted = launchable.expected.values(), policy.node
    labels = dict.fromkeys(item for new in new_nodes for item in _wrong(wanted.labels, new.labels).items())
    taints = dict.fromkeys(taint for new in new_nodes for taint in _lacking(wanted.taints, new.taints))
    unmet = [one for one in policy.requirements if not _all_meet(one, launchable)]
    return (
        *(f"label {key}={value}" for key, value in labels),
        *(f"taint {taint.key}={taint.value}:{taint.effect}" for taint in taints),
        *(f"requirement {one.key} {_values(one)}" for one in unmet),
    )


def registers(policy: NodePolicy, expected: Iterable[ExpectedNode]) -> bool:
    """Return whether every node launched now has all startup taints of the policy; False for no nodes."""
    new_nodes = tuple(expected)
    return bool(new_nodes) and all(not _lacking(policy.node.startup_taints, new.taints) for new in new_nodes)


def _meets(wanted: PolicyRequirement, labels: Mapping[str, str]) -> bool:
    return LabelRequirement(key=wanted.key, operator=Operator(wanted.operator), values=wanted.values).matches(labels)


def _all_meet(wanted: PolicyRequirement, launchable: Launchable) -> bool:
    """Return whether every type in every zone meets the requirement: the group may launch any of them."""
    capacity = {CAPACITY_LABEL: launchable.capacity.value} if launchable.capacity else {}
    return bool(launchable.expected) and all(
        _meets(wanted, {**capacity, **labels}) for zone in launchable.zones for labels in launchable.labels_in(zone)
    )


def _values(wanted: PolicyRequirement) -> str:
    return f"{wanted.operator} [{', '.join(wanted.values)}]" if wanted.values else wanted.operator


def _of_label(key: str, labels: Mapping[str, str], want: str, *, fixable: bool) -> DriftReason:
    return DriftReason(
        field=Field.REQUIREMENTS, have=f"{key}={labels.get(key, '')}", want=f"{key} {want}", fixable=fixable
    )


def _wrong(wanted: Mapping[str, str], have: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in sorted(wanted.items()) if have.get(key) != value}


def _of_pairs(field: Field, wrong: Mapping[str, str], have: Mapping[str, str], *, fixable: bool) -> DriftReason:
    current = ", ".join(f"{key}={have[key]}" for key in wrong if key in have) or "none"
    want = ", ".join(f"{key}={value}" for key, value in wrong.items())
    return DriftReason(field=field, have=current, want=want, fixable=fixable)


def _lacking(wanted: Iterable[DesiredTaint], have: Iterable[Taint]) -> list[DesiredTaint]:
    present = {(taint.key, taint.effect, taint.value) for taint in have}
    return [taint for taint in wanted if (taint.key, taint.effect, taint.value) not in present]


def of_instance(
    instance: Instance, group: Group, launch: LaunchSettings | None, then: LaunchSettings | None = None
) -> Iterator[DriftReason]:
    """Yield the differences that the instance itself shows, one for each tag and metadata option. Fields that the
    template leaves open, or that EC2 does not report, are no drift. `then`: the version that launched the instance.
    """
    if group.subnets and instance.subnet and instance.subnet not in group.subnets:
        yield DriftReason(field=Field.SUBNETS, have=instance.subnet, want=", ".join(sorted(group.subnets)))
    if launch is None:
        return
    if launch.image.startswith("ami-") and instance.image and instance.image != launch.image:
        yield DriftReason(field=Field.AMI, have=instance.image, want=launch.image)
    have, want = instance.look, launch.look
    if have.security_groups is not None and want.security_groups is not None:
        declared = (then.look.security_groups if then is not None else None) or ()
        added = set(have.security_groups) - {*want.security_groups, *declared}  # by another owner
        if set(have.security_groups) - added != set(want.security_groups):
            yield _reason(Field.SECURITY_GROUPS, ", ".join(have.security_groups), ", ".join(want.security_groups))
    if want.profile is not None and have.profile != want.profile:
        yield _reason(Field.INSTANCE_PROFILE, have.profile or "none", want.profile)
    yield from _parts(Field.TAGS, have.tags, {**(want.tags or {}), **propagated_over(group, want.tags or {})})
    yield from _parts(Field.METADATA_OPTIONS, have.metadata, want.metadata)
    if have.monitoring is not None and want.monitoring is not None and have.monitoring != want.monitoring:
        yield _reason(Field.DETAILED_MONITORING, _WORDS[have.monitoring], _WORDS[want.monitoring])


def of_hidden(
    node: Node, policy: NodePolicy, now: LaunchSettings | None, then: LaunchSettings | None, *, registers: bool
) -> Iterator[DriftReason]:
    """Yield the differences that no instance shows: each field as it was recorded on the node, else as in the launch
    template version of the node. Where neither is known nothing has drifted. `registers`: nodes launched now come with
    the startup taints.
    """
    wanted = fields_of(now, policy)
    remembered = {**(fields_of(then, policy) if then is not None else {}), **(read(node.annotations) or {})}
    for field in HIDDEN:
        have, want = remembered.get(field), wanted.get(field)
        if have is not None and want is not None and have != want:
            fixable = registers if field is Field.STARTUP_TAINTS else True
            yield DriftReason(field=field, have=f"hash {have}", want=f"hash {want}", fixable=fixable)


def _parts(field: Field, have: Mapping[str, str] | None, want: Mapping[str, str] | None) -> Iterator[DriftReason]:
    """Yield the differences in the keys that the template names: other owners add tags of their own to instances."""
    if have is None or want is None:
        return
    for key, value in sorted(want.items()):
        if have.get(key) != value and not key.startswith("aws:"):
            yield _reason(field, f"{key}={have[key]}" if key in have else "none", f"{key}={value}")


def _reason(field: Field, have: str, want: str) -> DriftReason:
    return DriftReason(field=field, have=have, want=want)
