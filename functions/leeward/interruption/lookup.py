"""Looks up, once for a whole batch, what its messages are about. A lookup that fails fails only those who need it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leeward.errors import LeewardError
from leeward.interruption.world import World
from leeward.model.instance import cluster_of
from leeward.model.message import Message
from leeward.model.node import Node
from leeward.policy.document import ClusterPolicies
from leeward.ports import Ports


@dataclass(slots=True)
class Lookup:
    """The world of a batch; `errors` by what failed: `instances`, `groups`, `cluster NAME`, `hooks GROUP`."""

    world: World = field(default_factory=World)
    errors: dict[str, LeewardError] = field(default_factory=dict)
    unseen: dict[str, LeewardError] = field(default_factory=dict)  # clusters whose nodes are unknown

    def error_for(self, message: Message) -> LeewardError | None:
        """Why this message cannot be decided now, None when it can."""
        needed = (name for instance in message.instances for name in self._needed(message, instance))
        return next((self.errors[name] for name in needed if name in self.errors), None)

    def _needed(self, message: Message, instance: str) -> Iterable[str]:
        if not message.kind.about_nodes or not self.world.serves(message.account, message.region):
            return
        yield "instances"
        place = self.world.locate(instance, message.hook.group if message.hook else None)
        if place.group_name is not None:
            yield "groups"
        if place.cluster is not None:
            yield f"cluster {place.cluster}"
        if message.hook is not None and place.policy is not None:
            yield f"hooks {message.hook.group}"


def look_up(messages: Sequence[Message], ports: Ports) -> Lookup:
    """One DescribeInstances, one DescribeAutoScalingGroups, the hooks of each group whose hook waits, the policies and
    nodes of each cluster concerned: the number of calls grows with groups and clusters, not with messages.
    """
    found = Lookup(world=World(clusters=ports.clusters.names(), queue_arns=ports.queue_arns, origins=ports.origins))
    acting = [m for m in messages if m.kind.about_nodes and found.world.serves(m.account, m.region)]
    if not acting:
        return found
    _instances(found, acting, ports)
    _groups(found, acting, ports)
    _policies(found, ports)
    _hooks(found, acting, ports)
    _nodes(found, acting, ports)
    return found


def _instances(found: Lookup, messages: Sequence[Message], ports: Ports) -> None:
    ids = sorted({instance for message in messages for instance in message.instances})
    try:
        found.world = replace(found.world, instances=ports.instances.describe(ids))
    except LeewardError as error:
        found.errors["instances"] = error


def _groups(found: Lookup, messages: Sequence[Message], ports: Ports) -> None:
    named = {message.hook.group for message in messages if message.hook}
    named |= {instance.group for instance in found.world.instances.values() if instance.group}
    if not named:
        return
    try:
        found.world = replace(found.world, groups=ports.groups.describe(sorted(named)))
    except LeewardError as error:
        found.errors["groups"] = error


def _policies(found: Lookup, ports: Ports) -> None:
    world = found.world
    tags = [group.tags for group in world.groups.values()] + [i.tags for i in world.instances.values()]
    concerned = sorted({name for name in (cluster_of(each, world.clusters) for each in tags) if name})
    policies: dict[str, ClusterPolicies] = {}
    for cluster in concerned:
        try:
            policies[cluster] = ports.clusters.policies(cluster)
        except LeewardError as error:
            found.errors[f"cluster {cluster}"] = error
    found.world = replace(world, policies=policies)


def _hooks(found: Lookup, messages: Sequence[Message], ports: Ports) -> None:
    groups = {
        m.hook.group
        for m in messages
        if m.hook and found.world.locate(m.hook.instance, m.hook.group).policy is not None
    }
    hooks = {}
    for group in sorted(groups):
        try:
            hooks[group] = tuple(ports.groups.hooks(group))
        except LeewardError as error:
            found.errors[f"hooks {group}"] = error
    found.world = replace(found.world, hooks=hooks)


def _nodes(found: Lookup, messages: Sequence[Message], ports: Ports) -> None:
    """Only where an instance of a selected group is concerned. An API that does not answer fails nobody: the claim
    must not wait for it.
    """
    world = found.world
    places = [world.locate(i, m.hook.group if m.hook else None) for m in messages for i in m.instances]
    clusters = sorted({place.cluster for place in places if place.cluster and place.policy})
    nodes: dict[str, Node] = {}
    for cluster in clusters:
        try:
            nodes.update(_by_instance(ports.clusters.kubernetes(cluster).nodes()))
        except LeewardError as error:
            found.unseen[cluster] = error
    found.world = replace(world, nodes=nodes, unseen=frozenset(found.unseen))


def _by_instance(nodes: Iterable[Node]) -> Mapping[str, Node]:
    return {node.instance_id: node for node in nodes if node.instance_id}
