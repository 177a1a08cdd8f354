"""Targets: groups that can launch replacements with known types, and their prices.

Source: Karpenter, pkg/controllers/disruption/consolidation.go. Its rule that the most expensive offering that may be
launched counts holds here for the whole group, because a replacement names a group and never a type.

The inputs of a command that launches nodes are what its target launches and what the pods that move ask for. A command
whose new node came up and did not serve its pods was planned on a wrong guess of that node. Planned again from the same
inputs it fails again, so it is not proposed until one of them changes (docs/designs/disruption.md, "What runs
remember")."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from hashlib import sha256
from typing import Any

from leeward.disruption.candidates import Candidate
from leeward.model.counts import count_of
from leeward.model.instance import CapacityType
from leeward.model.quantity import CPU, MEMORY
from leeward.model.times import format_instant
from leeward.placement.scene import closed_zones
from leeward.policy.document import NodePolicy
from leeward.policy.document import NodeRequirement as PolicyRequirement
from leeward.scheduling.nodes import NodeTemplate
from leeward.scheduling.selectors import LabelRequirement, Operator
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable

_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTarget:
    """One group as a target. `template` has the zones that may be used, `by_zone` one template for each of them: a
    world distinguishes templates by identity, so these are made once for a run.
    """

    launchable: Launchable
    template: NodeTemplate
    by_zone: Mapping[str, NodeTemplate]
    left: int

    @property
    def group(self) -> str:
        """Name of the group."""
        return self.launchable.group

    @property
    def cheapest(self) -> float:
        """Dollars an hour in its cheapest zone; 0 where prices are not known."""
        return min((one.price for one in self.template.offerings), default=0.0)

    def can_launch(self, removed: Iterable[Candidate]) -> bool:
        """Return whether the group can launch: at its MaxSize only for a node of its own, which leaves afterwards."""
        return self.left > 0 or any(candidate.group.name == self.group for candidate in removed)


def targets(snapshot: ClusterSnapshot, *, priced: bool) -> tuple[tuple[LaunchTarget, ...], Mapping[str, str]]:
    """Return the targets, the cheapest first, and why each other selected group is none. `priced`: only where prices
    are known and the group does not mix capacity types, as consolidation needs it.
    """
    usable: list[LaunchTarget] = []
    why: dict[str, str] = {}
    closed = closed_zones(snapshot.nodes)
    for name, launchable in sorted(snapshot.launchables.items()):
        policy = snapshot.policy_of(snapshot.groups.get(name))
        reason = _reason_unusable(snapshot, launchable, policy, priced=priced)
        if reason:
            why[name] = reason
        else:
            usable.append(target_of(launchable, closed, priced=priced))
    return tuple(sorted(usable, key=lambda target: (target.cheapest, target.group))), why


def _reason_unusable(
    snapshot: ClusterSnapshot, launchable: Launchable, policy: NodePolicy | None, *, priced: bool
) -> str:
    group = snapshot.groups[launchable.group]
    if group.name in snapshot.blocked_groups or not launchable.zones:
        return snapshot.blocked_groups.get(group.name, "no subnet of it is known")
    # EKS declares labels and taints of a managed group's nodes, whatever the template says
    unread = group.nodegroup is None and None in launchable.launches.values()
    if unread or not launchable.types or any(not _sized(launchable, name) for name in launchable.types):
        return "what it launches is not known"
    full = "it is at its MaxSize, which is EKS' own" if group.nodegroup and launchable.left == 0 else ""
    if "Launch" in group.suspended or full:
        return full or "its process Launch is suspended"
    unmet = _unmet(policy.requirements if policy else (), launchable)
    if unmet:
        return unmet
    if priced and launchable.capacity is None:
        return "it mixes on-demand and spot: which would be launched is unknown"
    return "a price of what it launches is not known" if priced and not launchable.prices else ""


def _sized(launchable: Launchable, instance_type: str) -> bool:
    room = launchable.expected[instance_type].allocatable
    return room.get(CPU, 0) > 0 and room.get(MEMORY, 0) > 0


def _unmet(requirements: Iterable[PolicyRequirement], launchable: Launchable) -> str:
    """Return the first requirement of the policy that a node of the group might not meet, or of whose values too few
    can come up (Karpenter's minValues: a choice has to be left).
    """
    nodes = [labels for zone in launchable.zones for labels in launchable.labels_in(zone)]
    for wanted in requirements:
        asked = LabelRequirement(key=wanted.key, operator=Operator(wanted.operator), values=wanted.values)
        if not all(asked.matches(labels) for labels in nodes):
            return f"it may launch what requirement {wanted.key} does not allow"
        choice = {labels[wanted.key] for labels in nodes if wanted.key in labels}
        if len(choice) < (wanted.min_values or 0):
            return f"it may launch fewer than minValues {wanted.min_values} of requirement {wanted.key}"
    return ""


def target_of(launchable: Launchable, closed: Collection[str], *, priced: bool) -> LaunchTarget:
    """Build the target without a bound of its own: `can_launch` limits the launches, per command. Among zones of one
    price the closed ones come last.
    """
    offerings = tuple(one for one in launchable.template.offerings if not priced or one.zone in launchable.prices)
    offerings = tuple(sorted(offerings, key=lambda one: one.zone in closed))
    template = replace(launchable.certain, offerings=offerings, max_nodes=None)
    by_zone = {one.zone: replace(template, offerings=(one,)) for one in offerings}
    return LaunchTarget(launchable=launchable, template=template, by_zone=by_zone, left=launchable.left)


def why_no_spot(candidate: Candidate, target: LaunchTarget) -> str:
    """Return why spot may not replace spot, empty where the rule allows it or does not apply. Spot to spot needs a
    choice of types, else the cheapest pool is chosen and soon interrupted (Karpenter's rule of 15 types).
    """
    rules = candidate.policy.disruption
    if not candidate.capacity is target.launchable.capacity is CapacityType.SPOT:
        return ""
    if not rules.spot_to_spot:
        return "spotToSpot is off: can't replace a spot node with a spot node"
    types = len(target.launchable.types)
    if types < rules.spot_to_spot_minimum_types:
        return (
            f"spotToSpot needs {count_of(rules.spot_to_spot_minimum_types, 'instance type')}, "
            f"{target.group} launches {types}"
        )
    return ""


def launch_inputs(snapshot: ClusterSnapshot, nodes: Sequence[Candidate], group: str) -> str:
    """Return the digest: the launch settings, labels, taints and capacity of every type that the group may launch, and
    the needs of every pod that moves. Names and labels of pods, zones and prices are left out, as they come and go.
    """
    launchable = snapshot.launchables[group]
    launches = {
        name: (one.template, one.version, one.image, one.user_data) if one is not None else None
        for name, one in launchable.launches.items()
    }
    new = {name: (one.labels, one.taints, one.allocatable) for name, one in launchable.expected.items()}
    pods = sorted(_canonical((pod.identity.namespace, pod.needs)) for node in nodes for pod in node.pods)
    return sha256(_canonical((group, launches, new, pods)).encode()).hexdigest()[:_DIGITS]


def why_failed_before(snapshot: ClusterSnapshot, nodes: Sequence[Candidate], group: str) -> str:
    """Return why the group is not proposed as the target for these nodes; empty where nothing is remembered of it."""
    if not snapshot.failed_commands:
        return ""
    failed = snapshot.failed_commands.get(launch_inputs(snapshot, nodes, group))
    if failed is None:
        return ""
    return (
        f"a new node of {group} is not tried again: run {failed.run} launched it at {format_instant(failed.at)} and "
        f"dropped the command ({failed.why}), and neither the pods nor what {group} launches have changed"
    )


def _canonical(value: Any) -> str:
    """Return a text that is the same in every process: sets and maps in order."""
    if isinstance(value, Enum):
        return repr(value.value)
    if is_dataclass(value):
        return _canonical([getattr(value, one.name) for one in fields(value) if one.compare])
    if isinstance(value, Mapping):
        return _canonical(sorted((str(key), _canonical(inner)) for key, inner in value.items()))
    if isinstance(value, Set):
        return _canonical(sorted(map(_canonical, value)))
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_canonical, value))}]"
    return repr(value)
