"""Drift of a node against the requirements, labels, annotations and taints of its policy.

Whether a new node would match is decided on the node that the group would launch: a property that no launch adds cannot
be fixed by launching."""

from collections.abc import Iterable, Iterator, Mapping

from leeward.drift.reasons import Field, Reason
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.instance import CapacityType
from leeward.model.node import Node, Taint
from leeward.node_template.build import ExpectedNode
from leeward.policy.document import DesiredTaint, NodePolicy
from leeward.policy.document import Requirement as PolicyRequirement
from leeward.scheduling.selectors import Operator, Requirement
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable

CAPACITY_LABEL = "karpenter.sh/capacity-type"


def of_requirements(
    snapshot: ClusterSnapshot, node: Node, group: Group, policy: NodePolicy, launchable: Launchable | None
) -> Iterator[Reason]:
    """Yield the differences in dynamic fields: a node drifts only where it is incompatible. The launches that the group
    allows are a requirement as well: its instance types, its zones, and its capacity type (where it does not mix and
    keeps no on-demand base).
    """
    labels = known_labels(snapshot, node)
    for asked in policy.requirements:
        if not _meets(asked, labels):
            mends = launchable is not None and _all_meet(asked, launchable)
            yield _of_label(asked.key, labels, _values(asked), mends=mends)
    if launchable is None:
        return
    kind, zone = snapshot.type_of(node), snapshot.zone_of(node)
    if kind and launchable.types and kind not in launchable.types:
        yield _of_label(well_known.INSTANCE_TYPE_LABEL, labels, f"In [{', '.join(launchable.types)}]", mends=True)
    if zone and group.zones and zone not in group.zones:
        yield _of_label(well_known.ZONE_LABEL, labels, f"In [{', '.join(group.zones)}]", mends=True)
    capacity, wanted = snapshot.capacity_of(node), launchable.capacity
    if wanted is not None and capacity not in {None, wanted} and not group.on_demand_base:
        yield _of_label(CAPACITY_LABEL, labels, f"In [{wanted.value}]", mends=True)


def known_labels(snapshot: ClusterSnapshot, node: Node) -> dict[str, str]:
    """Return the node's labels, and those that EC2 reports where the node lacks them, under Karpenter's key for the
    capacity type.
    """
    capacity = snapshot.capacity_of(node)
    labels = {
        well_known.INSTANCE_TYPE_LABEL: snapshot.type_of(node),
        well_known.ZONE_LABEL: snapshot.zone_of(node),
        CAPACITY_LABEL: capacity.value if capacity else "",
    }
    return {**{key: value for key, value in labels.items() if value}, **node.labels}


def of_desired(node: Node, policy: NodePolicy, expected: Iterable[ExpectedNode]) -> Iterator[Reason]:
    """Yield the differences in static fields: labels, annotations and taints that the policy names, one to one."""
    coming = tuple(expected)
    wanted = policy.node
    wrong = _wrong(wanted.labels, node.labels)
    if wrong:
        mends = bool(coming) and all(not _wrong(wrong, one.labels) for one in coming)
        yield _of_pairs(Field.LABELS, wrong, node.labels, mends=mends)
    wrong = _wrong(wanted.annotations, node.annotations)
    if wrong:  # no setting of a launch template puts annotations on a node
        yield _of_pairs(Field.ANNOTATIONS, wrong, node.annotations, mends=False)
    lacking = _lacking(wanted.taints, node.taints)
    if lacking:
        mends = bool(coming) and all(not _lacking(lacking, one.taints) for one in coming)
        have = ", ".join(f"{t.key}={t.value}:{t.effect}" for t in node.taints if t.key in {one.key for one in lacking})
        want = ", ".join(f"{one.key}={one.value}:{one.effect}" for one in lacking)
        yield Reason(field=Field.TAINTS, have=have or "none", want=want, mends=mends)


def would_drift(policy: NodePolicy, launchable: Launchable | None) -> bool:
    """Return whether a node launched now would lack something of the policy, also where the existing node has it: it
    may have been fixed manually.
    """
    if launchable is None:
        return False
    coming, wanted = launchable.expected.values(), policy.node
    return (
        bool(wanted.annotations)
        or any(_wrong(wanted.labels, one.labels) or _lacking(wanted.taints, one.taints) for one in coming)
        or not all(_all_meet(asked, launchable) for asked in policy.requirements)
    )


def registers(policy: NodePolicy, expected: Iterable[ExpectedNode]) -> bool:
    """Return whether nodes launched now come with all startup taints of the policy."""
    coming = tuple(expected)
    return bool(coming) and all(not _lacking(policy.node.startup_taints, one.taints) for one in coming)


def _meets(asked: PolicyRequirement, labels: Mapping[str, str]) -> bool:
    return Requirement(key=asked.key, operator=Operator(asked.operator), values=asked.values).matches(labels)


def _all_meet(asked: PolicyRequirement, launchable: Launchable) -> bool:
    """Return whether every type in every zone meets the requirement: it is unknown which will come up."""
    capacity = launchable.capacity or CapacityType.ON_DEMAND
    paid = {CAPACITY_LABEL: capacity.value} if launchable.capacity else {}
    nodes = launchable.expected.values()
    return bool(nodes) and all(
        _meets(asked, {**paid, **one.labels, well_known.ZONE_LABEL: zone}) for one in nodes for zone in launchable.zones
    )


def _values(asked: PolicyRequirement) -> str:
    return f"{asked.operator} [{', '.join(asked.values)}]" if asked.values else asked.operator


def _of_label(key: str, labels: Mapping[str, str], want: str, *, mends: bool) -> Reason:
    return Reason(field=Field.REQUIREMENTS, have=f"{key}={labels.get(key, '')}", want=f"{key} {want}", mends=mends)


def _wrong(wanted: Mapping[str, str], have: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in sorted(wanted.items()) if have.get(key) != value}


def _of_pairs(field: Field, wrong: Mapping[str, str], have: Mapping[str, str], *, mends: bool) -> Reason:
    found = ", ".join(f"{key}={have[key]}" for key in wrong if key in have) or "none"
    return Reason(field=field, have=found, want=", ".join(f"{k}={v}" for k, v in wrong.items()), mends=mends)


def _lacking(wanted: Iterable[DesiredTaint], have: Iterable[Taint]) -> list[DesiredTaint]:
    there = {(taint.key, taint.effect, taint.value) for taint in have}
    return [one for one in wanted if (one.key, one.effect, one.value) not in there]
