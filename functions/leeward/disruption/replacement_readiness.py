"""Readiness of a run's replacements: whether they have come up as planned, checked before anything is drained.

Decides from the state that EC2 and the cluster report. A replacement that ends, does not join in time, or has another
type, zone or capacity type causes its command to be dropped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from leeward.disruption.command import Replacement
from leeward.model.instance import ALIVE, Instance
from leeward.model.node import Node

JOINS_WITHIN = timedelta(minutes=15)  # as EKS gives a new node


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """State of the replacements. `wrong`: new instance -> why it does not match; `missing`: new instance -> why not
    yet.
    """

    wrong: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def arrival(
    wanted: Mapping[str, Replacement],
    instances: Mapping[str, Instance],
    nodes: Iterable[Node],
    *,
    since: datetime,
    now: datetime,
) -> Arrival:
    """Return the state of the replacements. `wanted`: new instance -> its planned replacement; `since`: when the run
    began, used where EC2 does not know the instance yet.
    """
    joined = {node.instance_id: node for node in nodes}
    wrong: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, planned in wanted.items():
        instance, node = instances.get(name), joined.get(name)
        why = unlike(instance, planned) if instance is not None else ""
        lacking = "" if node is not None and node.ready else _lacking(name, instance, node)
        launched = instance.launched if instance is not None else since
        if not why and lacking and now - launched > JOINS_WITHIN:
            why = f"{lacking} after {int((now - launched).total_seconds())} s"
        if why:
            wrong[name] = why
        elif lacking or instance is None:
            missing[name] = lacking or f"EC2 does not know {name} yet"
    return Arrival(wrong=wrong, missing=missing)


def unlike(instance: Instance, planned: Replacement) -> str:
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
