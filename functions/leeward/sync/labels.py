"""Labels and annotations on nodes of selected groups: the subnet's labels, so that pods can select a subnet
(docs/features.md, S4), and the annotations of the policy, which no launch template can give (K14).

Decides which nodes lack some. An existing label is never overwritten, because another autoscaler may have set it; an
annotation with another value is, because the policy says what the node should carry."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial

from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.policy.document import ClusterPolicies
from leeward.ports.compute import Instances
from leeward.ports.kubernetes import Clusters

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
    clusters: Clusters,
    instances: Instances,
    report_error: Callable[[str, LeewardError], object],
) -> list[str]:
    """Label the nodes that lack a label with the subnet of their instance, and return their names. Idempotent.

    EC2 is not called while every node has its labels. `report_error` is called with the name of each node that could
    not be labelled and the error; the other nodes are labelled.
    """
    lacking = unlabelled(groups, nodes)
    described = instances.describe(node.instance_id for node in lacking) if lacking else {}
    labelled: list[str] = []
    for node in lacking:
        instance = described.get(node.instance_id)
        if instance is None or not instance.subnet:
            continue
        with isolate_errors(partial(report_error, node.name)), suppress(ObjectGoneError):
            clusters.kubernetes(cluster).label(node, dict.fromkeys(LABELS, instance.subnet))
            labelled.append(node.name)
    return labelled


def annotate_nodes(
    cluster: str,
    groups: Iterable[Group],
    nodes: Iterable[Node],
    policies: ClusterPolicies,
    clusters: Clusters,
    report_error: Callable[[str, LeewardError], object],
) -> list[str]:
    """Write the annotations that the nodes lack by the policy of their group, and return the names of these nodes.
    Idempotent. Other nodes are written where one cannot be. An annotation that the policy no longer has stays.
    """
    annotated: list[str] = []
    wanted = _annotations_by_member(groups, policies)
    for node in nodes:
        own = wanted.get(node.instance_id, {})
        lacking = {key: value for key, value in own.items() if node.annotations.get(key) != value}
        if lacking and not node.deleting:
            with isolate_errors(partial(report_error, node.name)), suppress(ObjectGoneError):
                clusters.kubernetes(cluster).annotate(node, lacking)
                annotated.append(node.name)
    return annotated


def _annotations_by_member(groups: Iterable[Group], policies: ClusterPolicies) -> dict[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {}
    for group in groups:
        policy = policies.policy_of(group)
        if policy is not None and policy.node.annotations:
            found |= dict.fromkeys((member.id for member in group.instances), policy.node.annotations)
    return found
