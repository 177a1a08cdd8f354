"""Nodes that a group would launch now, modelled so that pods that fit the model fit every node that is launched.

Decides how several instance types become one template and what the template costs; `leeward.node_template` decides
which types those are, and what the node of each looks like.

Launches of a group that cannot be read: its launch template version is gone, or the parameter of its image.

Decides what is said instead of a comparison: nothing is known to be in order or drifted then. A denied call of EC2 ends
the whole gathering with its own error; a denied or missing parameter leaves the name `resolve:ssm:…` as the image."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.instance import CapacityType
from leeward.model.launch import LaunchSettings, Override
from leeward.model.node import Taint
from leeward.model.subnet import Subnet
from leeward.node_template.build import ExpectedNode
from leeward.node_template.choices import Choices, as_launched
from leeward.node_template.observed import Observed
from leeward.node_template.provenance import Attribute, Provenance
from leeward.scheduling.nodes import EBS_ZONE_LABEL, HOSTNAME_LABEL, NodeSpec, NodeTemplate, TemplateOffering

_BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
_OFFERING_LABELS = frozenset(
    {well_known.ZONE_LABEL, well_known.ZONE_ID_LABEL, EBS_ZONE_LABEL, HOSTNAME_LABEL, _BETA_ZONE}
)  # set per offering
ALIAS = "resolve:ssm:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launchable:
    """Launches of one group."""

    group: str
    types: tuple[str, ...]  # instance types, in the group's order
    zones: tuple[str, ...]  # with a subnet of the group
    subnets: Mapping[str, tuple[str, ...]]  # ids by zone
    capacity: CapacityType | None  # None: the group mixes on-demand and spot
    expected: Mapping[str, ExpectedNode]  # by instance type
    # one node that stands for all types, with the smallest allocatable of each resource, the labels that all types
    # have (those in which they differ are variants) and every taint that any has; it has one offering per zone
    template: NodeTemplate
    # dollars an hour of the most expensive type, by zone; a zone with a type of unknown price is absent
    prices: Mapping[str, float] = field(default_factory=dict)
    left: int = 0  # MaxSize less desired size, at least 0
    # by type, None where they cannot be read
    launches: Mapping[str, LaunchSettings | None] = field(default_factory=dict)
    # what nodes of the type show, or showed before the group had none
    observed: Mapping[str, Observed] = field(default_factory=dict)
    own: Mapping[str, Override] = field(default_factory=dict)  # overrides with a launch of their own, by type
    warnings: tuple[str, ...] = ()

    def launch_of(self, instance_type: str) -> LaunchSettings | None:
        """Return the launch settings of the type, or of the group's first type if it does not launch this one (any
        more).
        """
        first = next(iter(self.launches.values()), None)
        return self.launches.get(instance_type, first)

    @property
    def certain(self) -> NodeTemplate:
        """The template as pods are planned onto it: a label that is only estimated is no reason why a pod may run
        there, and stays one why it may not. A node with it and one without are variants.
        """
        nodes = tuple(self.expected.values())
        if not any(node.estimated for node in nodes):
            return self.template
        both = tuple(one for node in nodes for one in (node, _without(node, node.estimated)))
        spec = smallest(self.group, both)
        node = replace(self.template.node, labels=spec.labels, variants=spec.variants)
        return replace(self.template, node=node)

    def labels_in(self, zone: str) -> list[dict[str, str]]:
        """Return the labels of a node of each type in the zone."""
        offered: Mapping[str, str] = next((one.labels for one in self.template.offerings if one.zone == zone), {})
        place = {**offered, well_known.ZONE_LABEL: zone, EBS_ZONE_LABEL: zone}
        return [{**_without(node, _OFFERING_LABELS).labels, **place} for node in self.expected.values()]

    @property
    def price(self) -> float | None:
        """Dollars an hour of the most expensive type in the most expensive zone; None: the price of any is unknown."""
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
    """Return the launches of a group. `expected`: one node for each type of `choices`, in their order. `subnets`: at
    least the group's own. Raises ValueError if types and nodes differ in number.
    """
    nodes = dict(zip(choices.types, expected, strict=True))
    subnets = tuple(subnets)
    by_zone = _by_zone(group, subnets)
    zones = tuple(zone for zone in choices.zones or tuple(by_zone) if zone in by_zone)
    expensive = {
        zone: price for zone in zones if (price := most_expensive(choices.types, zone, choices.capacity, prices))
    }
    left = max(group.maximum - group.desired, 0)

    def offering(zone: str) -> TemplateOffering:
        labels = {**_shared_in(zone, nodes.values()), **_zone_labels(zone, by_zone[zone], subnets)}
        return TemplateOffering(zone=zone, price=expensive.get(zone, 0.0), labels=labels)

    return Launchable(
        group=group.name,
        types=choices.types,
        zones=zones,
        subnets=by_zone,
        capacity=choices.capacity,
        expected=nodes,
        template=NodeTemplate(
            name=group.name,
            node=smallest(group.name, tuple(nodes.values())),
            offerings=tuple(offering(zone) for zone in zones),
            max_nodes=left,
        ),
        prices=expensive,
        left=left,
        launches=launches or {},
        own=choices.own,
        warnings=tuple(dict.fromkeys(warning for node in nodes.values() for warning in node.warnings)),
    )


def most_expensive(types: Sequence[str], zone: str, capacity: CapacityType | None, prices: Prices) -> float | None:
    """Return the dollars an hour of the most expensive type in the zone; None: no types, or one of unknown price.

    `capacity` None: the group may launch either capacity type, so the more expensive one counts.
    """
    known: list[float] = []
    for name in types:
        price = price_of(name, zone, capacity, prices)
        if price is None:
            return None
        known.append(price)
    return max(known, default=None)


def price_of(instance_type: str, zone: str, capacity: CapacityType | None, prices: Prices) -> float | None:
    """Return the dollars an hour of the type; None: unknown. `capacity` None: the more expensive capacity type."""
    on_demand, spot = prices.on_demand.get(instance_type), prices.spot.get(instance_type, {}).get(zone)
    if capacity is CapacityType.SPOT:
        return spot
    if capacity is CapacityType.ON_DEMAND:
        return on_demand
    return None if on_demand is None else max(on_demand, spot or 0.0)


def _by_zone(group: Group, subnets: Iterable[Subnet]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the group's subnets by zone; a group without subnets uses every subnet of its zones."""
    by_zone: dict[str, list[str]] = {}
    for subnet in sorted(subnets, key=lambda subnet: subnet.id):
        if subnet.id in group.subnets or (not group.subnets and subnet.zone in group.zones):
            by_zone.setdefault(subnet.zone, []).append(subnet.id)
    return {zone: tuple(ids) for zone, ids in by_zone.items()}


def _shared_in(zone: str, nodes: Iterable[ExpectedNode]) -> dict[str, str]:
    """Return the labels that nodes of every type are known to carry in the zone."""
    shared = [set({**node.zone_labels.get(zone, {}), **node.labels}.items()) for node in nodes]
    known = {key for node in nodes for key in node.zone_labels.get(zone, {})}
    return {key: value for key, value in sorted(set.intersection(*shared)) if key in known} if shared else {}


def _without(node: ExpectedNode, keys: Collection[str]) -> ExpectedNode:
    return replace(node, labels={key: value for key, value in node.labels.items() if key not in keys})


def smallest(name: str, nodes: Sequence[ExpectedNode]) -> NodeSpec:
    """Return a node such that a pod that fits it fits each of `nodes`: labels in which they differ are variants."""
    first = nodes[0] if nodes else None
    common = dict(first.labels) if first else {}
    allocatable = dict(first.allocatable) if first else {}
    taints: dict[Taint, None] = {}
    for node in nodes:
        common = {key: value for key, value in common.items() if node.labels.get(key) == value}
        allocatable = {
            key: min(value, node.allocatable[key]) for key, value in allocatable.items() if key in node.allocatable
        }
        taints |= dict.fromkeys(node.taints)
    labels = {key: value for key, value in common.items() if key not in _OFFERING_LABELS}
    differing = [
        {key: value for key, value in node.labels.items() if key not in common and key not in _OFFERING_LABELS}
        for node in nodes
    ]
    variants = tuple(dict.fromkeys(tuple(sorted(one.items())) for one in differing)) if any(differing) else ()
    return NodeSpec(
        name=name,
        labels=labels,
        allocatable=allocatable,
        taints=tuple(taints),
        variants=variants,
        open_labels=any(node.provenance.get(Attribute.LABELS) is Provenance.UNKNOWN for node in nodes),
    )


def _zone_labels(zone: str, ids: Sequence[str], subnets: Iterable[Subnet]) -> dict[str, str]:
    """Return the labels that every node of the zone has. `ids`: of the group's subnets there; the subnet's label only
    where it is a single one.
    """
    zone_id = next((subnet.zone_id for subnet in subnets if subnet.zone == zone and subnet.zone_id), "")
    labels = {_BETA_ZONE: zone, **({well_known.ZONE_ID_LABEL: zone_id} if zone_id else {})}
    if len(ids) != 1:
        return labels
    return {**labels, well_known.SUBNET_LABEL: ids[0], well_known.CAST_SUBNET_LABEL: ids[0]}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadLaunch:
    """Input of a launch that cannot be read. `fix`: the command that shows it, or the permission it takes."""

    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.why}: {self.fix}"


def unread_launch(group: Group, launchable: Launchable, instance_type: str = "") -> UnreadLaunch | None:
    """Return what cannot be read of the group's launches of the type, without a type of any; None where all is known.
    A type that the group does not launch (any more) is compared with its first one.
    """
    launches: Mapping[str, LaunchSettings | None] = launchable.launches
    if instance_type:
        first = next(iter(launches), "")
        launches = {name: launches[name] for name in (instance_type if instance_type in launches else first,) if name}
    found = (_unread(as_launched(group, launchable.own.get(name)), launch) for name, launch in launches.items())
    return next((one for one in found if one is not None), None)


def _unread(group: Group, launch: LaunchSettings | None) -> UnreadLaunch | None:
    if launch is None:
        return _gone(group)
    if not launch.image.startswith(ALIAS):
        return None
    name = launch.image.removeprefix(ALIAS)
    return UnreadLaunch(
        why=f"the image behind the SSM parameter {name} cannot be read",
        fix=f"aws ssm get-parameter --name {name} shows whether it exists; reading it takes ssm:GetParameters (setting "
        "imageParameters), of a snapshot folder --resolve-alias of describe-launch-template-versions",
    )


def _gone(group: Group) -> UnreadLaunch:
    template, configuration = group.launch.template, group.launch.configuration
    if template is None and configuration:
        fix = f"aws autoscaling describe-launch-configurations --launch-configuration-names {configuration} shows it"
        return UnreadLaunch(why=f"launch configuration {configuration} cannot be read, it may be deleted", fix=fix)
    if template is None:
        fix = f"aws autoscaling describe-auto-scaling-groups --auto-scaling-group-names {group.name} shows it"
        return UnreadLaunch(why="its launch template is not known", fix=fix)
    which = f"--launch-template-id {template.id}" if template.id else f"--launch-template-name {template.name}"
    return UnreadLaunch(
        why=f"launch template {template.label} cannot be read, it may be deleted",
        fix=f"aws ec2 describe-launch-template-versions {which} shows its versions; point the group at another",
    )
