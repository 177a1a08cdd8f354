"""Drift of a node against the requirements, labels, annotations and taints of its policy.

Decides for each difference whether a replacement fixes it. A replacement does so only if the node that the group would
launch now has the property."""

from collections.abc import Iterable, Iterator, Mapping

from leeward.drift.reasons import Field, Reason
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.node import Node, Taint
from leeward.node_template.build import ExpectedNode
from leeward.policy.document import DesiredTaint, NodePolicy
from leeward.policy.document import Requirement as PolicyRequirement
from leeward.scheduling.selectors import LabelRequirement, Operator
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable

CAPACITY_LABEL = "karpenter.sh/capacity-type"


def of_requirements(
    snapshot: ClusterSnapshot, node: Node, group: Group, policy: NodePolicy, launchable: Launchable | None
) -> Iterator[Reason]:
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


def of_desired(node: Node, policy: NodePolicy, expected: Iterable[ExpectedNode]) -> Iterator[Reason]:
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
        yield Reason(field=Field.TAINTS, have=have or "none", want=want, fixable=fixable)


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


def _of_label(key: str, labels: Mapping[str, str], want: str, *, fixable: bool) -> Reason:
    return Reason(field=Field.REQUIREMENTS, have=f"{key}={labels.get(key, '')}", want=f"{key} {want}", fixable=fixable)


def _wrong(wanted: Mapping[str, str], have: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in sorted(wanted.items()) if have.get(key) != value}


def _of_pairs(field: Field, wrong: Mapping[str, str], have: Mapping[str, str], *, fixable: bool) -> Reason:
    current = ", ".join(f"{key}={have[key]}" for key in wrong if key in have) or "none"
    want = ", ".join(f"{key}={value}" for key, value in wrong.items())
    return Reason(field=field, have=current, want=want, fixable=fixable)


def _lacking(wanted: Iterable[DesiredTaint], have: Iterable[Taint]) -> list[DesiredTaint]:
    present = {(taint.key, taint.effect, taint.value) for taint in have}
    return [taint for taint in wanted if (taint.key, taint.effect, taint.value) not in present]
