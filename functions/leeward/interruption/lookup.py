"""Lookup of the objects that the messages of a batch are about: EC2 and groups once for the whole batch, policies,
hooks and nodes for the messages of one cluster. A lookup that fails affects only the messages that need it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from leeward.cluster.joins import nodes_by_instance
from leeward.errors import LeewardError
from leeward.interruption.recorded import TAKEN, Recorded, by_name_alone, recorded, worth_reading
from leeward.interruption.world import InstancePlace, MessageWorld
from leeward.isolation import Executor, attempt, in_turn, isolate_errors
from leeward.model.instance import cluster_of
from leeward.model.message import (
    WARM_POOL,
    CapacityBlockExpiration,
    ExecutionEnded,
    InterruptionMessage,
    NoOp,
    ScheduledChange,
    ZonalShiftNotice,
    hook_of,
)
from leeward.model.node import Node
from leeward.policy.document import NodePolicy
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances
from leeward.ports.kubernetes import Clusters, Kubernetes
from leeward.ports.records import Claims
from leeward.termination.requests import read_apart

READ_SINGLY = 3  # Nodes; more are listed
R = TypeVar("R")


@dataclass(slots=True)
class Lookup:
    """World of some messages; `errors` by the failed lookup: `instances`, `groups`, `cluster NAME`, `hooks GROUP`,
    `named CLUSTER` (hooks of removed policies), `member INSTANCE`.
    """

    world: MessageWorld = field(default_factory=MessageWorld)
    errors: dict[str, LeewardError] = field(default_factory=dict)
    unseen: dict[str, LeewardError] = field(default_factory=dict)  # clusters whose nodes are unknown
    recorded: Recorded = field(default_factory=Recorded)

    def error_for(self, message: InterruptionMessage) -> LeewardError | None:
        """Return why this message cannot be decided now, None if it can."""
        needed = (name for instance in message.instances for name in self._needed(message, instance))
        return next((self.errors[name] for name in needed if name in self.errors), None)

    def clusters_of(self, message: InterruptionMessage) -> frozenset[str]:
        """Return the clusters whose nodes the message is about, as far as tags show."""
        if not self._acts(message):
            return frozenset()
        places = (self.place(message, instance) for instance in message.instances)
        return frozenset(place.cluster for place in places if place.cluster)

    def _needed(self, message: InterruptionMessage, instance: str) -> Iterable[str]:
        if not self._acts(message):
            return
        if instance not in self.world.instances:
            yield "instances"
        place, hook = self.place(message, instance), hook_of(message)
        if place.group_name is not None:
            yield "groups"
        if place.cluster is not None:
            yield f"cluster {place.cluster}"
        if hook is not None and place.policy is not None:
            yield f"hooks {hook.group}"
        elif hook is not None and hook.launching:
            yield f"named {place.cluster}"
        yield f"member {instance}"

    def place(self, message: InterruptionMessage, instance: str) -> InstancePlace:
        """Return where the instance is; a lifecycle action names its group."""
        hook = hook_of(message)
        return self.world.locate(instance, hook.group if hook is not None else None)

    def _acts(self, message: InterruptionMessage) -> bool:
        return _about_nodes(message) and self.world.serves(message.account, message.region)


def _about_nodes(message: InterruptionMessage) -> bool:
    """Return whether the instances that it names are looked up to decide the actions on their nodes."""
    return not isinstance(message, ExecutionEnded | NoOp | ZonalShiftNotice)


def name_instances(
    parsed: Sequence[R], instances: Instances, *, confirmed: bool = True
) -> list[R | CapacityBlockExpiration]:
    """Return the messages in their order, warnings about Capacity Blocks with the instances that EC2 shows in them: two
    calls for all of them, none without one. `confirmed`: the end is EC2's own, and a reservation that is no active
    block names no instance: a message that AWS has not written drains nothing. Raises the errors of EC2.
    """
    wanted = {message.block.reservation for message in parsed if isinstance(message, CapacityBlockExpiration)}
    if not wanted:
        return list(parsed)
    ends: Mapping[str, datetime] = {}
    if confirmed:
        ends = instances.block_ends()
        wanted &= ends.keys()
    members = instances.in_reservations(sorted(wanted)) if wanted else {}
    return [
        _with_members(message, ends, members, confirmed=confirmed)
        if isinstance(message, CapacityBlockExpiration)
        else message
        for message in parsed
    ]


def named_or_failed(
    parsed: Sequence[InterruptionMessage | LeewardError], instances: Instances
) -> list[InterruptionMessage | LeewardError]:
    """Return the result of `name_instances`; where EC2 fails, its error in place of each message that needs the answer.
    Raises nothing: the other messages of the batch are handled.
    """
    named = attempt(lambda: name_instances(parsed, instances))
    if isinstance(named, LeewardError):
        return [named if isinstance(message, CapacityBlockExpiration) else message for message in parsed]
    return named


def _with_members(
    message: CapacityBlockExpiration, ends: Mapping[str, datetime], members: Mapping[str, str], *, confirmed: bool
) -> CapacityBlockExpiration:
    """Return the warning with the instances of its block, and with EC2's own end where EC2 lists the block."""
    found = ends.get(message.block.reservation)
    if confirmed and found is None:
        return replace(message, listed=False)
    block = replace(message.block, ends=found or message.block.ends)
    inside = tuple(sorted(name for name, reservation in members.items() if reservation == block.reservation))
    unread = "" if found else message.unread
    return replace(
        message,
        instances=inside,
        block=block,
        unread=unread,
        event_id=block.event_id,
        deadline=block.taken_at(),
    )


def look_up_instances(messages: Sequence[InterruptionMessage], ports: Ports) -> Lookup:
    """Look up enough to find the cluster of each message: the records of open terminations, and for the rest of the
    batch one DescribeInstances and one DescribeAutoScalingGroups.
    """
    lookup = Lookup(
        world=MessageWorld(clusters=ports.clusters.names(), queue_arns=ports.queue_arns, origins=ports.origins)
    )
    acting = [m for m in messages if _about_nodes(m) and lookup.world.serves(m.account, m.region)]
    if not acting:
        return lookup
    known = lookup.recorded = _recorded(acting, ports.claims, ports.clock)
    lookup.world = replace(lookup.world, instances=known.instances, tags=known.tags, open=frozenset(known.open))
    ids = sorted({instance for message in acting for instance in message.instances} - known.instances.keys())
    if ids:
        asked = attempt(lambda: ports.instances.describe(ids))
        if isinstance(asked, LeewardError):
            from leeward.interruption.listed import listed_by_groups  # late: EC2 answers nearly always

            lookup.errors["instances"] = asked
            listed = listed_by_groups(acting, ids, lookup.world.clusters, ports.groups)
            lookup.world = replace(lookup.world, instances={**known.instances, **listed})
        else:
            world = replace(lookup.world, instances={**known.instances, **asked}, confirmed=frozenset(ids))
            lookup.world = world
    named = set(_groups_needed(acting, lookup, ports.clusters))
    if named:
        with isolate_errors(partial(lookup.errors.__setitem__, "groups")):
            lookup.world = replace(lookup.world, groups=ports.groups.describe(sorted(named)))
    unread = frozenset(_group_names(acting, lookup)) - named
    lookup.world = replace(lookup.world, unread=unread, members=_members(acting, lookup, ports.groups))
    if any(isinstance(message, ScheduledChange) for message in acting):
        lookup.world = _with_events(lookup.world, ports.instances)
    return lookup


def _group_names(messages: Sequence[InterruptionMessage], lookup: Lookup) -> Iterator[str]:
    """Yield the groups in which the messages' instances are located."""
    places = (lookup.place(message, instance) for message in messages for instance in message.instances)
    yield from (place.group_name for place in places if place.group_name)


def _members(messages: Sequence[InterruptionMessage], lookup: Lookup, groups: Groups) -> Mapping[str, tuple[str, str]]:
    """Return how Auto Scaling lists the instances that return to a warm pool, where their group does not list them: it
    lists no instance of its pool. One call for each.
    """
    found: dict[str, tuple[str, str]] = {}
    for message in messages:
        hook = hook_of(message)
        if hook is None or hook.destination != WARM_POOL or hook.without_pods or "groups" in lookup.errors:
            continue
        place = lookup.place(message, hook.instance)
        if place.group is not None and place.lifecycle is None:
            with isolate_errors(partial(lookup.errors.__setitem__, f"member {hook.instance}")):
                member = groups.lifecycle_of(hook.instance)
                found |= {hook.instance: member} if member is not None else {}
    return found


def _with_events(world: MessageWorld, instances: Instances) -> MessageWorld:
    """Return the world with EC2's scheduled events: one call for all instances that have any. Without an answer the
    message is acted on, after some tries: a forged message cannot cause that, and AWS Health's may be lost.
    """
    events = attempt(instances.scheduled_events)
    if isinstance(events, LeewardError):
        return replace(world, unchecked=f"EC2 could not be asked whether it lists the event: {events}")
    return replace(world, scheduled=events)


def _recorded(messages: Sequence[InterruptionMessage], claims: Claims, clock: Clock) -> Recorded:
    """Read the records. If the table does not answer, AWS is asked instead."""
    names = worth_reading(messages)
    if not names:
        return Recorded()
    records = attempt(lambda: read_apart(names, claims).read)
    return Recorded() if isinstance(records, LeewardError) else recorded(messages, records, clock.now())


def _groups_needed(messages: Sequence[InterruptionMessage], lookup: Lookup, clusters: Clusters) -> Iterator[str]:
    """Yield the groups of these messages, except if EC2 takes the instance and the name alone selects a policy."""
    policies: dict[str, Sequence[NodePolicy] | None] = {}
    for message in messages:
        for name in set(message.instances) - lookup.recorded.grouped:
            instance = lookup.world.instances.get(name)
            if hook := hook_of(message):
                yield hook.group
            elif instance is not None and instance.group:
                cluster = cluster_of(instance.tags, lookup.world.clusters) if message.kind in TAKEN else None
                if cluster is not None and cluster not in policies:
                    policies[cluster] = _policies_of(cluster, clusters)
                known = policies[cluster] if cluster is not None else None
                if known is None or not by_name_alone(known, instance.group):
                    yield instance.group


def _policies_of(cluster: str, clusters: Clusters) -> Sequence[NodePolicy] | None:
    """Return the policies, or None if they cannot be read: a later lookup reports the error."""
    answer = attempt(lambda: clusters.policies(cluster))
    return None if isinstance(answer, LeewardError) else answer.policies


def look_up(messages: Sequence[InterruptionMessage], ports: Ports) -> Lookup:
    """Look up everything about some messages at once, for the command line."""
    batch = look_up_instances(messages, ports)
    clusters = frozenset(name for message in messages for name in batch.clusters_of(message))
    return look_up_clusters(batch, clusters, messages, ports, in_turn)


def look_up_clusters(
    batch: Lookup, clusters: frozenset[str], messages: Sequence[InterruptionMessage], ports: Ports, each: Executor
) -> Lookup:
    """Look up the policies, hooks and nodes behind messages that are about these clusters: the number of calls grows
    with groups and clusters, not with messages.
    """
    lookup = Lookup(world=batch.world, errors=dict(batch.errors), recorded=batch.recorded)
    if clusters:
        _policies(lookup, sorted(clusters), ports, each)
        _hooks(lookup, messages, ports, each)
        _nodes(lookup, messages, ports, each)
    return lookup


def _policies(lookup: Lookup, clusters: Sequence[str], ports: Ports, each: Executor) -> None:
    answers = _ask(clusters, ports.clusters.policies, each)
    lookup.errors |= {f"cluster {name}": one for name, one in answers.items() if isinstance(one, LeewardError)}
    policies = {name: one for name, one in answers.items() if not isinstance(one, LeewardError)}
    lookup.world = replace(lookup.world, policies=policies)


def _hooks(lookup: Lookup, messages: Sequence[InterruptionMessage], ports: Ports, each: Executor) -> None:
    actions = [action for message in messages if (action := hook_of(message)) is not None]
    groups = {action.group for action in actions if lookup.world.locate(action.instance, action.group).policy}
    known = {name: hooks for name, hooks in lookup.recorded.hooks.items() if name not in lookup.world.groups}
    answers = _ask(sorted(groups - known.keys()), ports.groups.hooks, each)
    lookup.errors |= {f"hooks {name}": one for name, one in answers.items() if isinstance(one, LeewardError)}
    hooks = {name: tuple(one) for name, one in answers.items() if not isinstance(one, LeewardError)}
    left = [lookup.world.locate(action.instance, action.group) for action in actions if action.launching]
    clusters = {place.cluster for place in left if place.cluster and place.policies and not place.policy}
    named = _ask(sorted(clusters), ports.catalog.named_hooks, each)
    lookup.errors |= {f"named {name}": one for name, one in named.items() if isinstance(one, LeewardError)}
    until_lately = {
        (group, hook)
        for one in named.values()
        if not isinstance(one, LeewardError)
        for group, remembered in one.items()
        for hook in remembered.names
    }
    lookup.world = replace(lookup.world, hooks={**known, **hooks}, named=frozenset(until_lately))


def _nodes(lookup: Lookup, messages: Sequence[InterruptionMessage], ports: Ports, each: Executor) -> None:
    """Read the nodes only if a message is about an instance of a selected group. An API that does not answer fails no
    message: the claim must not wait for it.
    """
    places = [lookup.place(message, instance) for message in messages for instance in message.instances]
    wanted: dict[str, set[str]] = {}
    for place in places:
        if place.cluster and (place.policy or place.open):
            wanted.setdefault(place.cluster, set()).add(place.id)
    clusters = sorted(wanted)
    answers = _ask(clusters, lambda name: _nodes_of(wanted[name], lookup, ports.clusters.kubernetes(name)), each)
    nodes: dict[str, Node] = {}
    for cluster, one in answers.items():
        if isinstance(one, LeewardError):
            lookup.unseen[cluster] = one
        else:
            nodes.update(one)
    lookup.world = replace(lookup.world, nodes=nodes, unseen=frozenset(lookup.unseen))


def _nodes_of(instances: Collection[str], lookup: Lookup, kubernetes: Kubernetes) -> Mapping[str, Node]:
    """Return the Nodes, by instance. A few with recorded Nodes are read by name, else all of the cluster are listed."""
    known = lookup.recorded.nodes
    if len(instances) > READ_SINGLY or not known.keys() >= set(instances):
        return nodes_by_instance(kubernetes.nodes(), lookup.world.instances)
    nodes = (kubernetes.node(known[instance]) for instance in sorted(instances))
    return nodes_by_instance(node for node in nodes if node is not None and node.instance_id in instances)


def _ask(names: Sequence[str], question: Callable[[str], R], each: Executor) -> dict[str, R | LeewardError]:
    """Return the answer for each name, or its error."""
    if not names:
        return {}
    return dict(zip(names, each(lambda name: attempt(partial(question, name)), names, len(names)), strict=True))
