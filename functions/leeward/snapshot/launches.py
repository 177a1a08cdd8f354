"""Launches of each selected group at present, from the ports that know launch templates and node groups.

Decides which facts of a cluster are joined; `leeward.node_template` looks groups up and builds nodes.

Number of volumes that a node that does not exist yet will be able to attach.

The limits of nodes of the same type are used first (their CSINodes); for a type that no node has, a conservative
estimate of the EBS driver's value. Source: aws-ebs-csi-driver, pkg/driver/node.go (getVolumesLimit); EC2 user guide,
"Amazon EBS volume limits"."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings, LaunchSource
from leeward.model.node import Node
from leeward.model.planning_memory import RememberedNode
from leeward.model.subnet import Subnet
from leeward.node_template.build import expected_node
from leeward.node_template.gathering import Looked, look_up, sources_by_type
from leeward.node_template.observed import ReadyNode, key_of, observed, recalled
from leeward.policy.document import NodePolicy
from leeward.ports.compute import LaunchSources
from leeward.ports.eks import KnownNodegroups
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.volumes import EBS_DRIVER
from leeward.snapshot.launchable import Launchable, launchable

SeenLimits = Mapping[str, Mapping[str, int]]  # type -> CSI driver -> volumes
NITRO, XEN = 28, 39  # attachments of an instance, volumes and on Nitro network interfaces and local disks together


def seen_limits(nodes: Iterable[NodeSpec]) -> SeenLimits:
    """Return the lowest limits that any node of each type reports, by driver."""
    limits: dict[str, dict[str, int]] = {}
    for node in nodes:
        kind = node.labels.get(well_known.INSTANCE_TYPE_LABEL)
        if kind is not None:
            of_type = limits.setdefault(kind, {})
            for driver, count in node.attach_limits.items():
                of_type[driver] = min(count, of_type.get(driver, count))
    return limits


def with_volume_limits(launchable: Launchable, types: Mapping[str, InstanceType], seen: SeenLimits) -> Launchable:
    """Return the launchable with the lowest limits of its types, so that pods that fit there fit on each of them."""
    limits: dict[str, int] = {}
    for name in launchable.types:
        for driver, count in _of_type(name, types.get(name), seen).items():
            limits[driver] = min(count, limits.get(driver, count))
    node = replace(launchable.template.node, attach_limits=limits)
    return replace(launchable, template=replace(launchable.template, node=node))


def _of_type(name: str, kind: InstanceType | None, seen: SeenLimits) -> Mapping[str, int]:
    """Return the limits of a type. An unknown type has only those that its nodes report: its capacity is not known
    either, and no pod is assumed to fit.
    """
    reported = seen.get(name, {})
    if EBS_DRIVER in reported or kind is None:
        return reported
    return {**reported, EBS_DRIVER: estimated_limit(kind)}


def estimated_limit(kind: InstanceType) -> int:
    """Return the limit calculated as if every network interface that the type can have were attached, and one disk were
    the root; at least 1. Types with a limit of their own for volumes are held to the shared one as well: EC2 does not
    report here which they are.
    """
    most = NITRO if kind.nitro else XEN
    if kind.max_volumes is not None:
        most = min(most, kind.max_volumes)
    shared = kind.max_enis + bool(kind.local_storage_gb) if kind.nitro else 0
    return max(most - shared - 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """Facts that launches of a cluster's groups depend on. `variables`: the VPC CNI's settings before a policy's own;
    `attach_limits`: those of the existing nodes; `ready`: Ready nodes by group; `seen`: what earlier ones showed, where
    the group has none now.
    """

    cluster: str
    nodegroups: KnownNodegroups
    sources: LaunchSources
    subnets: Mapping[str, Subnet]
    prices: Prices
    variables: Mapping[str, str]
    attach_limits: SeenLimits = field(default_factory=dict)
    ready: Mapping[str, Sequence[ReadyNode]] = field(default_factory=dict)
    seen: Mapping[str, RememberedNode] = field(default_factory=dict)


def looked_up(group: Group, policy: NodePolicy, facts: LaunchFacts, running: Iterable[str]) -> Looked:
    """Return the data that AWS has about the group. `running`: its members' types, where no other source has them.
    Raises LeewardError.
    """
    return look_up(
        group,
        facts.cluster,
        policy.template,
        nodegroups=facts.nodegroups,
        launches=facts.sources,
        running=running,
    )


def launchable_of(looked: Looked, policy: NodePolicy, facts: LaunchFacts) -> Launchable:
    """Build one node for each of the types, and the template that stands for all of them. Raises LeewardError."""
    sources = sources_by_type(looked, facts.sources, {**facts.variables, **policy.cni})
    startup = [taint.key for taint in policy.node.startup_taints]
    group = looked.group.name
    ready = facts.ready.get(group, ())
    shown = {
        name: observed(ready, name, one.launch, startup) or recalled(facts.seen.get(key_of(group, name)), one.launch)
        for name, one in sources.items()
    }
    expected = [
        expected_node(replace(one, observed=shown[name]), policy.template.precedence) for name, one in sources.items()
    ]
    launches = {name: one.launch for name, one in sources.items()}
    found = launchable(looked.group, looked.choices, expected, facts.subnets.values(), facts.prices, launches)
    found = replace(found, observed={name: one for name, one in shown.items() if one is not None})
    return with_volume_limits(found, facts.sources.instance_types(found.types), facts.attach_limits)


def ready_nodes(
    group: Group,
    nodes: Iterable[tuple[Node, NodeSpec]],
    instances: Mapping[str, Instance],
    settings: Mapping[str, LaunchSettings],
) -> list[ReadyNode]:
    """Return the group's Ready nodes. `settings`: the result of `launched_from`."""
    members = {member.id: member for member in group.instances}
    found = []
    for node, spec in nodes:
        member, instance = members.get(node.instance_id), instances.get(node.instance_id)
        if member is not None and node.ready and not spec.closed:
            found.append(
                ReadyNode(
                    node=node,
                    type=instance.type if instance else member.type,
                    zone=member.zone,
                    allocatable=spec.allocatable,
                    launch=settings.get(member.id),
                )
            )
    return found


def launched_from(
    groups: Iterable[Group], sources: LaunchSources, looked: Iterable[Looked] = ()
) -> dict[str, LaunchSettings]:
    """Return the launch settings of each member by instance id, where its launch template version can be read. Each
    version is read once, and not again where a group of `looked` launches from it.
    """
    known = {one.group.launch.template: one.launch for one in looked if one.group.launch.template is not None}
    found: dict[str, LaunchSettings] = {}
    for group in groups:
        for member in group.instances:
            if member.template is None:
                continue
            if member.template not in known:
                source = LaunchSource(template=member.template)
                known[member.template] = sources.settings(replace(group, launch=source))
            settings = known[member.template]
            if settings is not None:
                found[member.id] = settings
    return found
