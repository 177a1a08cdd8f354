"""Looks up what the messages of a batch are about: EC2 and groups once for the whole batch, policies, hooks and nodes
for the messages of one cluster. A lookup that fails fails only those who need it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from leeward.errors import LeewardError
from leeward.interruption.world import World
from leeward.isolation import Executor, attempt, in_turn, isolate_errors
from leeward.model.message import Message
from leeward.model.node import Node
from leeward.ports import Ports

R = TypeVar("R")


@dataclass(slots=True)
class Lookup:
    """The world of some messages; `errors` by what failed: `instances`, `groups`, `cluster NAME`, `hooks GROUP`."""

    world: World = field(default_factory=World)
    errors: dict[str, LeewardError] = field(default_factory=dict)
    unseen: dict[str, LeewardError] = field(default_factory=dict)  # clusters whose nodes are unknown

    def error_for(self, message: Message) -> LeewardError | None:
        """Why this message cannot be decided now, None when it can."""
        needed = (name for instance in message.instances for name in self._needed(message, instance))
        return next((self.errors[name] for name in needed if name in self.errors), None)

    def clusters_of(self, message: Message) -> frozenset[str]:
        """The clusters whose nodes the message is about, as far as tags tell."""
        if not self._acts(message):
            return frozenset()
        group = message.hook.group if message.hook else None
        places = (self.world.locate(instance, group) for instance in message.instances)
        return frozenset(place.cluster for place in places if place.cluster)

    def _needed(self, message: Message, instance: str) -> Iterable[str]:
        if not self._acts(message):
            return
        yield "instances"
        place = self.world.locate(instance, message.hook.group if message.hook else None)
        if place.group_name is not None:
            yield "groups"
        if place.cluster is not None:
            yield f"cluster {place.cluster}"
        if message.hook is not None and place.policy is not None:
            yield f"hooks {message.hook.group}"

    def _acts(self, message: Message) -> bool:
        return message.kind.about_nodes and self.world.serves(message.account, message.region)


def look_up_instances(messages: Sequence[Message], ports: Ports) -> Lookup:
    """One DescribeInstances and one DescribeAutoScalingGroups for the whole batch: enough to tell whose each message
    is.
    """
    found = Lookup(world=World(clusters=ports.clusters.names(), queue_arns=ports.queue_arns, origins=ports.origins))
    acting = [m for m in messages if m.kind.about_nodes and found.world.serves(m.account, m.region)]
    if not acting:
        return found
    ids = sorted({instance for message in acting for instance in message.instances})
    with isolate_errors(partial(found.errors.__setitem__, "instances")):
        found.world = replace(found.world, instances=ports.instances.describe(ids))
    named = {message.hook.group for message in acting if message.hook}
    named |= {instance.group for instance in found.world.instances.values() if instance.group}
    if named:
        with isolate_errors(partial(found.errors.__setitem__, "groups")):
            found.world = replace(found.world, groups=ports.groups.describe(sorted(named)))
    return found


def look_up(messages: Sequence[Message], ports: Ports) -> Lookup:
    """Everything about some messages at once: how the command line asks."""
    batch = look_up_instances(messages, ports)
    clusters = frozenset(name for message in messages for name in batch.clusters_of(message))
    return look_up_clusters(batch, clusters, messages, ports, in_turn)


def look_up_clusters(
    batch: Lookup, clusters: frozenset[str], messages: Sequence[Message], ports: Ports, each: Executor
) -> Lookup:
    """The policies, hooks and nodes behind messages that are about these clusters: the number of calls grows with
    groups and clusters, not with messages.
    """
    found = Lookup(world=batch.world, errors=dict(batch.errors))
    if clusters:
        _policies(found, sorted(clusters), ports, each)
        _hooks(found, messages, ports, each)
        _nodes(found, messages, ports, each)
    return found


def _policies(found: Lookup, clusters: Sequence[str], ports: Ports, each: Executor) -> None:
    answers = _ask(clusters, ports.clusters.policies, each)
    found.errors |= {f"cluster {name}": one for name, one in answers.items() if isinstance(one, LeewardError)}
    policies = {name: one for name, one in answers.items() if not isinstance(one, LeewardError)}
    found.world = replace(found.world, policies=policies)


def _hooks(found: Lookup, messages: Sequence[Message], ports: Ports, each: Executor) -> None:
    groups = {
        m.hook.group
        for m in messages
        if m.hook and found.world.locate(m.hook.instance, m.hook.group).policy is not None
    }
    answers = _ask(sorted(groups), ports.groups.hooks, each)
    found.errors |= {f"hooks {name}": one for name, one in answers.items() if isinstance(one, LeewardError)}
    hooks = {name: tuple(one) for name, one in answers.items() if not isinstance(one, LeewardError)}
    found.world = replace(found.world, hooks=hooks)


def _nodes(found: Lookup, messages: Sequence[Message], ports: Ports, each: Executor) -> None:
    """Only where an instance of a selected group is concerned. An API that does not answer fails no message: the claim
    must not wait for it.
    """
    world = found.world
    places = [world.locate(i, m.hook.group if m.hook else None) for m in messages for i in m.instances]
    clusters = sorted({place.cluster for place in places if place.cluster and place.policy})
    answers = _ask(clusters, lambda name: _by_instance(ports.clusters.kubernetes(name).nodes()), each)
    nodes: dict[str, Node] = {}
    for cluster, one in answers.items():
        if isinstance(one, LeewardError):
            found.unseen[cluster] = one
        else:
            nodes.update(one)
    found.world = replace(world, nodes=nodes, unseen=frozenset(found.unseen))


def _ask(names: Sequence[str], question: Callable[[str], R], each: Executor) -> dict[str, R | LeewardError]:
    """The answer for each name, or what went wrong."""
    if not names:
        return {}
    return dict(zip(names, each(lambda name: attempt(partial(question, name)), names, len(names)), strict=True))


def _by_instance(nodes: Iterable[Node]) -> Mapping[str, Node]:
    return {node.instance_id: node for node in nodes if node.instance_id}
