"""Subnet labels on nodes of selected groups, so that pods can select a subnet (docs/features.md, S4).

Decides which nodes lack a label; an existing label is never overwritten, because another autoscaler may have set it."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.ports import Ports

LABELS = (well_known.SUBNET_LABEL, well_known.CAST_SUBNET_LABEL)


def unlabelled(groups: Iterable[Group], nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes of the groups that lack one of `LABELS` and are not being deleted."""
    members = {member.id for group in groups for member in group.instances}
    return tuple(
        node
        for node in nodes
        if node.instance_id in members and not node.deleting and any(label not in node.labels for label in LABELS)
    )


def label_nodes(
    cluster: str,
    groups: Iterable[Group],
    nodes: Iterable[Node],
    ports: Ports,
    report_error: Callable[[str, LeewardError], object],
) -> list[str]:
    """Label the nodes that lack a label with the subnet of their instance, and return their names. Idempotent.

    EC2 is not called while every node has its labels. `report_error` is called with the name of each node that could
    not be labelled and the error; the other nodes are labelled.
    """
    lacking = unlabelled(groups, nodes)
    instances = ports.instances.describe(node.instance_id for node in lacking) if lacking else {}
    labelled: list[str] = []
    for node in lacking:
        instance = instances.get(node.instance_id)
        if instance is None or not instance.subnet:
            continue
        with isolate_errors(partial(report_error, node.name)), suppress(ObjectGoneError):
            ports.clusters.kubernetes(cluster).label(node, dict.fromkeys(LABELS, instance.subnet))
            labelled.append(node.name)
    return labelled
