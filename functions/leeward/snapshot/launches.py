"""What each selected group would launch now, from the ports that know launch templates and node groups.

Decides which facts of a group are joined; the node is put together in `leeward.node_template`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.launch import LaunchSettings, LaunchSource, LaunchTemplateRef
from leeward.model.nodegroup import Nodegroup
from leeward.model.subnet import Subnet
from leeward.node_template.build import ExpectedNode, Sources, expected_node
from leeward.node_template.choices import Choices, as_launched, choices, narrowed
from leeward.node_template.pods import Networking
from leeward.policy.document import NodePolicy
from leeward.ports_facts import KnownNodegroups, LaunchSources
from leeward.snapshot.launchable import Launchable, launchable


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """What launches of a cluster's groups depend on. `variables`: the VPC CNI's settings before a policy's own."""

    cluster: str
    nodegroups: KnownNodegroups
    sources: LaunchSources
    subnets: Mapping[str, Subnet]
    prices: Prices
    variables: Mapping[str, str]


def launch_choices(group: Group, policy: NodePolicy, facts: LaunchFacts, running: Iterable[str]) -> Choices:
    """Types, zones and way of paying of the group. `running`: what its members are, where nothing else tells."""
    launch = facts.sources.settings(group)
    nodegroup = _nodegroup(group, policy, facts)
    by_needs = any(one.requirements for one in group.launch.overrides) or bool(launch and launch.requirements)
    known = facts.sources.all_instance_types() if by_needs else {}
    return choices(group, launch, nodegroup, known=known, running=running)


def launchable_of(group: Group, policy: NodePolicy, found: Choices, facts: LaunchFacts) -> Launchable:
    """One node for each of the types that were found, and what stands for all of them."""
    launches = _launches(group, found, facts)
    expected = _expected(group, policy, found, facts, launches)
    return launchable(group, found, expected, facts.subnets.values(), facts.prices, launches)


def launched_from(groups: Iterable[Group], facts: LaunchFacts) -> dict[str, LaunchSettings]:
    """What each member was launched from, by instance id, where its launch template version can still be read."""
    known: dict[LaunchTemplateRef, LaunchSettings | None] = {}
    found: dict[str, LaunchSettings] = {}
    for group in groups:
        for member in group.instances:
            if member.template is None:
                continue
            if member.template not in known:
                source = LaunchSource(template=member.template)
                known[member.template] = facts.sources.settings(replace(group, launch=source))
            settings = known[member.template]
            if settings is not None:
                found[member.id] = settings
    return found


def _launches(group: Group, found: Choices, facts: LaunchFacts) -> dict[str, LaunchSettings | None]:
    """Each type with the launch template that its override names."""
    known: dict[object, LaunchSettings | None] = {}
    launches: dict[str, LaunchSettings | None] = {}
    for name in found.types:
        launched = as_launched(group, name)
        key = launched.launch.template or launched.launch.configuration
        if key not in known:
            known[key] = facts.sources.settings(launched)
        launches[name] = known[key]
    return launches


def _nodegroup(group: Group, policy: NodePolicy, facts: LaunchFacts) -> Nodegroup | None:
    if group.nodegroup is None:
        return None
    return facts.nodegroups.get(group.cluster or facts.cluster, group.nodegroup, policy.template.ttl)


def _expected(
    group: Group,
    policy: NodePolicy,
    found: Choices,
    facts: LaunchFacts,
    launches: Mapping[str, LaunchSettings | None],
) -> Iterator[ExpectedNode]:
    nodegroup, types = _nodegroup(group, policy, facts), facts.sources.instance_types(found.types)
    networking = Networking.from_variables({**facts.variables, **policy.cni})
    for name in found.types:
        sources = Sources(
            group=group,
            choices=narrowed(found, instance_type=name),
            launch=launches[name],
            nodegroup=nodegroup,
            types=types,
            networking=networking,
        )
        yield expected_node(sources, policy.template.precedence)
