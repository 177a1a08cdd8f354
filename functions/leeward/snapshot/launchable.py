"""Nodes that a group would launch now, modelled so that pods that fit there fit on any node that comes up.

Decides how several instance types become one template; `leeward.node_template` decides which types those are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.instance import CapacityType
from leeward.model.launch import LaunchSettings
from leeward.model.node import Taint
from leeward.model.subnet import Subnet
from leeward.node_template.build import ExpectedNode
from leeward.node_template.choices import Choices
from leeward.scheduling.nodes import EBS_ZONE_LABEL, HOSTNAME_LABEL, NodeSpec, NodeTemplate, Offering

_BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
_OF_A_PLACE = frozenset(
    {well_known.ZONE_LABEL, EBS_ZONE_LABEL, HOSTNAME_LABEL, _BETA_ZONE}
)  # each offering has its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Launchable:
    """Launches of one group. `zones`: those with a subnet of the group; `subnets`: ids by zone; `capacity` None where
    the group mixes on-demand and spot; `expected`: the node of each type, by type.

    `template`: one node that stands for all types: the smallest allocatable of each resource, the labels that all of
    them have, every taint that any of them has; one offering per zone. `prices`: dollars an hour of the most expensive
    type by zone; a zone is absent where the price of a type is not known. `left`: MaxSize less desired, not below 0.
    `launches`: the launch settings by type, None where they cannot be read.
    """

    group: str
    types: tuple[str, ...]
    zones: tuple[str, ...]
    subnets: Mapping[str, tuple[str, ...]]
    capacity: CapacityType | None
    expected: Mapping[str, ExpectedNode]
    template: NodeTemplate
    prices: Mapping[str, float] = field(default_factory=dict)
    left: int = 0
    launches: Mapping[str, LaunchSettings | None] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def launch_of(self, instance_type: str) -> LaunchSettings | None:
        """Return the launch settings of the type; of one that the group does not launch (any more), those of the
        first.
        """
        first = next(iter(self.launches.values()), None)
        return self.launches.get(instance_type, first)

    @property
    def price(self) -> float | None:
        """Price of the most expensive type in the most expensive zone, None where any is not known."""
        known = [self.prices[zone] for zone in self.zones if zone in self.prices]
        return max(known) if known and len(known) == len(self.zones) else None


def launchable(
    group: Group,
    choices: Choices,
    expected: Iterable[ExpectedNode],
    subnets: Iterable[Subnet],
    prices: Prices,
    launches: Mapping[str, LaunchSettings | None] | None = None,
) -> Launchable:
    """Return the launchable of a group whose `choices` are known. `expected`: one for each of its types, in their
    order; `subnets`: at least the group's own.
    """
    nodes = dict(zip(choices.types, expected, strict=True))
    by_zone = _by_zone(group, subnets)
    zones = tuple(zone for zone in choices.zones or tuple(by_zone) if zone in by_zone)
    expensive = {
        zone: price for zone in zones if (price := most_expensive(choices.types, zone, choices.capacity, prices))
    }
    left = max(group.maximum - group.desired, 0)
    return Launchable(
        group=group.name,
        types=choices.types,
        zones=zones,
        subnets=by_zone,
        capacity=choices.capacity,
        expected=nodes,
        template=_template(group.name, tuple(nodes.values()), zones, by_zone, expensive, left),
        prices=expensive,
        left=left,
        launches=launches or {},
        warnings=tuple(dict.fromkeys(warning for node in nodes.values() for warning in node.warnings)),
    )


def most_expensive(types: Sequence[str], zone: str, capacity: CapacityType | None, prices: Prices) -> float | None:
    """Return the dollars an hour of the most expensive type in the zone, None where the price of one is not known.

    A group that mixes both capacity types may launch the more expensive one.
    """
    found: list[float] = []
    for name in types:
        price = price_of(name, zone, capacity, prices)
        if price is None:
            return None
        found.append(price)
    return max(found, default=None)


def price_of(instance_type: str, zone: str, capacity: CapacityType | None, prices: Prices) -> float | None:
    """Return the dollars an hour; None where it is not known."""
    on_demand, spot = prices.on_demand.get(instance_type), prices.spot.get(instance_type, {}).get(zone)
    if capacity is CapacityType.SPOT:
        return spot
    if capacity is CapacityType.ON_DEMAND:
        return on_demand
    return None if on_demand is None else max(on_demand, spot or 0.0)


def _by_zone(group: Group, subnets: Iterable[Subnet]) -> dict[str, tuple[str, ...]]:
    """Return the group's subnets by zone; a group without subnets of its own takes any of its zones."""
    found: dict[str, list[str]] = {}
    for subnet in sorted(subnets, key=lambda subnet: subnet.id):
        if subnet.id in group.subnets or (not group.subnets and subnet.zone in group.zones):
            found.setdefault(subnet.zone, []).append(subnet.id)
    return {zone: tuple(ids) for zone, ids in found.items()}


def _template(
    name: str,
    nodes: Sequence[ExpectedNode],
    zones: Sequence[str],
    subnets: Mapping[str, Sequence[str]],
    prices: Mapping[str, float],
    left: int,
) -> NodeTemplate:
    return NodeTemplate(
        name=name,
        node=smallest(name, nodes),
        offerings=tuple(
            Offering(zone=zone, price=prices.get(zone, 0.0), labels=_of_place(zone, subnets[zone])) for zone in zones
        ),
        most=left,
    )


def smallest(name: str, nodes: Sequence[ExpectedNode]) -> NodeSpec:
    """Return a node such that pods that fit there fit on each of the nodes, except pods that require a label to be
    absent or to have none of some values: see `accepted_everywhere`.
    """
    first = nodes[0] if nodes else None
    common = dict(first.labels) if first else {}
    room = dict(first.allocatable) if first else {}
    taints: dict[Taint, None] = {}
    for node in nodes:
        common = {key: value for key, value in common.items() if node.labels.get(key) == value}
        room = {key: min(value, node.allocatable[key]) for key, value in room.items() if key in node.allocatable}
        taints |= dict.fromkeys(node.taints)
    labels = {key: value for key, value in common.items() if key not in _OF_A_PLACE}
    return NodeSpec(name=name, labels=labels, allocatable=room, taints=tuple(taints))


def _of_place(zone: str, subnets: Sequence[str]) -> dict[str, str]:
    """Return the labels that a node of the zone certainly has: its subnet's only where there is no other."""
    subnet = (
        {well_known.SUBNET_LABEL: subnets[0], well_known.CAST_SUBNET_LABEL: subnets[0]} if len(subnets) == 1 else {}
    )
    return {_BETA_ZONE: zone, **subnet}
