"""Launches of each selected group at present, from the ports that know launch templates and node groups.

Decides which facts of a cluster are joined; `leeward.node_template` looks groups up and builds nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.launch import LaunchSettings, LaunchSource
from leeward.model.node import Node
from leeward.model.planning_memory import SeenNode
from leeward.model.subnet import Subnet
from leeward.node_template.build import expected_node
from leeward.node_template.gathering import Looked, look_up, sources_by_type
from leeward.node_template.observed import ReadyNode, observed
from leeward.node_template.remembered import key_of, recalled
from leeward.policy.document import NodePolicy
from leeward.ports.compute import LaunchSources
from leeward.ports.eks import KnownNodegroups
from leeward.scheduling.nodes import NodeSpec
from leeward.snapshot.launchable import Launchable, launchable
from leeward.snapshot.volume_limits import SeenLimits, with_volume_limits


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
    seen: Mapping[str, SeenNode] = field(default_factory=dict)


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
