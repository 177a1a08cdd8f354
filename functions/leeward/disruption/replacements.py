"""Replacements of a run after they were requested: whether they have come up as planned, and those that the group's
desired size brings because LaunchInstances does not serve it.

A replacement that ends, does not join in time, or has another type, zone or capacity type causes its command to be
dropped. A raised size and the earlier members are in the record before the size is raised; members that come up
afterwards are the launches of the run. Raising twice to the same size is idempotent. The size is never lowered: a
launch that replaces no node is surplus, like any other, once its instance exists."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from leeward.disruption.command import Replacement
from leeward.disruption.lease import written
from leeward.disruption.record import DisruptionRecord, SurgeNode, command_of, replacement_key, replacement_of
from leeward.errors import LeewardError
from leeward.model.group import Group
from leeward.model.instance import ALIVE, Instance
from leeward.model.launch_refusal import EVENT, sentence
from leeward.model.lifecycle import IN_POOL, OVER, LifecycleRole, role_of
from leeward.model.node import Node
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Clusters
from leeward.termination.maximum_size import owners_maximum

LAUNCHES_WITHIN = timedelta(hours=2)  # for which a run stays open for an instance that the group has not launched
LEFT = OVER | IN_POOL | {LifecycleRole.DETACHING}
DESIRED_SIZE = "the desired size is raised instead"
SIZED_AGAIN = 3  # times at most that a size is decided in one step, each after others have set another
JOINS_WITHIN = timedelta(minutes=15)  # as EKS gives a new node


def can_grow(group: Group) -> bool:
    """Return whether the group's desired size may bring a replacement; EKS owns the sizes of a managed node group."""
    return group.nodegroup is None and "Launch" not in group.suspended


def await_growth(record: DisruptionRecord, key: str, group: Group, reason: str, ports: Ports) -> DisruptionRecord:
    """Record that the desired size, raised by one, brings the replacement. `raise_sizes` requests it."""
    name = group.name
    record = replace(
        record,
        orders={other: order for other, order in record.orders.items() if other != key},
        refusals={**record.refusals, name: reason[:300]},
        awaited={**record.awaited, key: name},
        before={name: ",".join(member.id for member in group.instances), **record.before},
    )
    return _sized(record, group, record.sizes.get(name, group.desired) + 1, ports)


def raise_sizes(record: DisruptionRecord, begun: DisruptionRecord, ports: Ports) -> DisruptionRecord:
    """Raise each group to the size in the record. `begun`: the record before this step. Growth that this step has
    decided counts from the size that it read: where others have set another since, it is decided again, because their
    instance would be taken for the launch and terminated with decrement. Idempotent: a repeated step leaves a group
    that has the size, or more, unchanged.
    """
    for name in sorted(set(record.outstanding().values())):
        grown = sum(group == name and key not in begun.awaited for key, group in record.awaited.items())
        for left in reversed(range(SIZED_AGAIN if grown else 1)):
            size = record.sizes[name]
            only_from = size - grown if left else None
            if ports.group_changes.raise_to(name, desired=size, maximum=size, only_from=only_from):
                break
            for group in ports.groups.describe([name]).values():
                record = _sized(record, group, group.desired + grown, ports)
    return record


def _sized(record: DisruptionRecord, group: Group, size: int, ports: Ports) -> DisruptionRecord:
    """Record the size before it is requested, and the owner's MaxSize where it is above that."""
    raised = dict(record.raised)
    if size > group.maximum:
        raised.setdefault(group.name, owners_maximum(group.name, ports.groups, ports.maxima))
    sized = replace(record, sizes={**record.sizes, group.name: size}, raised=raised)
    return written(sized, ports.disruptions)


def adopt(record: DisruptionRecord, ports: Ports) -> DisruptionRecord:
    """Return the record with new members as launches, the one that matches the plan first, and without growth that
    others have cancelled by a smaller size.
    """
    waiting = record.outstanding()
    groups = ports.groups.describe(sorted(set(waiting.values()))) if waiting else {}
    launched, awaited = dict(record.launched), dict(record.awaited)
    for name, members in {name: _members(group) for name, group in groups.items()}.items():
        keys = [key for key, group in waiting.items() if group == name]
        old = {*record.before[name].split(","), *record.launched}
        come = ports.instances.describe([member for member in members if member not in old])
        for key, new in _matched(keys, come.values(), _plans(record)):
            number, place = replacement_of(key)
            launched[new.id] = SurgeNode(
                command=number, replacement=place, group=name, zone=new.zone, subnet=new.subnet
            )
            keys.remove(key)
        if len(members) >= groups[name].desired < record.sizes[name] and len(come) < len(members):
            awaited = {key: group for key, group in awaited.items() if key not in keys}
    after = replace(record, launched=launched, awaited=awaited)
    cancelled = {command_of(key) for key in record.awaited.keys() - awaited.keys()}
    if cancelled:
        after = after.drop(dict.fromkeys(cancelled, "others have made the group smaller again"))
    return written(after, ports.disruptions) if after != record else record


def announce(record: DisruptionRecord, before: DisruptionRecord, clock: Clock, clusters: Clusters) -> str:
    """Return the notice of groups refused since `before`, and write it as an Event of each node that waits for one."""
    notices = {
        name: sentence(name, reason, DESIRED_SIZE)
        for name, reason in record.refusals.items()
        if name not in before.refusals
    }
    kubernetes = clusters.kubernetes(record.cluster)
    for key, name in record.outstanding().items():
        for node_name in record.commands[command_of(key)].nodes if name in notices else ():
            try:
                node = kubernetes.node(node_name)
                if node is not None:
                    kubernetes.event(node, reason=EVENT, message=notices[name][:1000], warning=True, now=clock.now())
            except LeewardError:
                break
    return "; ".join(notices.values())


def _members(group: Group) -> list[str]:
    return [member.id for member in group.instances if role_of(member.lifecycle) not in LEFT]


def _plans(record: DisruptionRecord) -> Mapping[str, Replacement]:
    return {
        replacement_key(number, place): planned
        for number, command in enumerate(record.commands)
        for place, planned in enumerate(command.replacements)
    }


def _matched(
    keys: Iterable[str], come: Iterable[Instance], plans: Mapping[str, Replacement]
) -> list[tuple[str, Instance]]:
    """Match each new instance with a replacement that it satisfies, else with any: there it drops the command."""
    left, matched = list(keys), []
    for instance in sorted((one for one in come if not one.ended), key=lambda one: one.id):
        if not left:
            break
        key = next((key for key in left if not why_unlike(instance, plans[key])), left[0])
        left.remove(key)
        matched.append((key, instance))
    return matched


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """State of the replacements. `wrong`: new instance -> why it does not match; `missing`: new instance -> why not
    yet.
    """

    wrong: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def unfit(self, wanted: Mapping[str, Replacement], instances: Mapping[str, Instance]) -> dict[str, str]:
        """Return the wrong instances that run where they were planned: the next launch would be as wrong. Those that
        EC2 has taken, or that the group's own choice put into another zone, may be right the next time.
        """
        there = {name for name in self.wrong if name in instances and instances[name].state in ALIVE}
        zones = {name: wanted[name].zones for name in there}
        return {name: self.wrong[name] for name in there if not zones[name] or instances[name].zone in zones[name]}


def readiness(
    wanted: Mapping[str, Replacement],
    instances: Mapping[str, Instance],
    nodes: Iterable[Node],
    *,
    since: datetime,
    now: datetime,
) -> Readiness:
    """Return the state of the replacements. `wanted`: new instance -> its planned replacement; `since`: when the run
    began, used where EC2 does not know the instance yet.
    """
    joined = {node.instance_id: node for node in nodes}
    wrong: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, planned in wanted.items():
        instance, node = instances.get(name), joined.get(name)
        why = why_unlike(instance, planned) if instance is not None else ""
        lacking = "" if node is not None and node.ready else _lacking(name, instance, node)
        launched = instance.launched if instance is not None else since
        if not why and lacking and now - launched > JOINS_WITHIN:
            why = f"{lacking} after {int((now - launched).total_seconds())} s"
        if why:
            wrong[name] = why
        elif lacking or instance is None:
            missing[name] = lacking or f"EC2 does not know {name} yet"
    return Readiness(wrong=wrong, missing=missing)


def why_unlike(instance: Instance, planned: Replacement) -> str:
    """Return why the instance does not match the plan, empty where it does."""
    if instance.state not in ALIVE:
        return f"{instance.id} was launched and is {instance.state}"
    if planned.types and instance.type not in planned.types:
        return f"{instance.id} is of type {instance.type}, planned were {', '.join(planned.types)}"
    if planned.zones and instance.zone not in planned.zones:
        return f"{instance.id} is in {instance.zone}, planned was {', '.join(planned.zones)}"
    if planned.capacity is not None and instance.capacity_type is not planned.capacity:
        return f"{instance.id} is {instance.capacity_type.value}, planned was {planned.capacity.value}"
    return ""


def _lacking(name: str, instance: Instance | None, node: Node | None) -> str:
    if node is not None:
        return f"node {node.name} is not Ready"
    return f"{name} is {instance.state if instance is not None else 'not known yet'} and has not joined"
