"""Reads of one cluster: EKS' description, its API server, its policies and records, and its groups."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TypeVar

from leeward.doctor import expected
from leeward.doctor.checks.templates import template_ids
from leeward.doctor.entries import entries_of
from leeward.doctor.facts import Disruption, InspectedCluster, Served, Upgrade
from leeward.doctor.reading import Read, UnreadFact, read, read_each
from leeward.model.facts import KEPT_BY_SYNC, FactKind
from leeward.model.group import Group
from leeward.model.instance import cluster_of
from leeward.model.node import Node
from leeward.model.node_owners import FOREIGN_TAINTS
from leeward.policy.document import ClusterPolicies
from leeward.ports import Ports
from leeward.ports.doctor import DeploymentReader, Rbac
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Catalog, Disruptions
from leeward.upgrade.run import is_held

NO_ROLE = UnreadFact(
    permission="lambda:GetFunction", reason="the role that enters the cluster is not known: no function could be read"
)
T = TypeVar("T")


def inspect_cluster(
    name: str,
    served: Served | None,
    deployment: DeploymentReader,
    ports: Ports,
    groups: Read[tuple[Group, ...]],
    queue_arns: frozenset[str],
) -> InspectedCluster:
    """Read one cluster. `deployment`: the reader of its account and Region; `groups`: every one there, of which those
    with the cluster's tags are read.
    """
    entries = {key: _entry(name, entry.role, deployment) for key, entry in entries_of(served).items()}
    rbac, version = _api(name, deployment)
    asked = _ClusterReader(version)
    policies = read("ssm:GetParametersByPath", lambda: ports.clusters.policies(name))
    nodes = asked("list nodes", lambda: tuple(ports.clusters.kubernetes(name).nodes()))
    known = () if isinstance(groups, UnreadFact) else groups
    tagged = [group for group in known if cluster_of(group.tags, [name])]
    selected = [group for group in tagged if _selects(policies, group)]
    return InspectedCluster(
        name=name,
        served=served,
        described=read("eks:DescribeCluster", lambda: deployment.cluster(name)),
        entries=entries,
        aws_auth=asked("get configmaps", rbac.aws_auth) if None in entries.values() else None,
        version=version,
        roles=asked.each("get clusterroles", rbac.cluster_role),
        bindings=asked.each("get clusterrolebindings", rbac.binding),
        groups=groups,
        members=nodes if isinstance(nodes, UnreadFact) else frozenset(node.instance_id for node in nodes) - {""},
        foreign={} if isinstance(nodes, UnreadFact) else _foreign(nodes, ports.deployment),
        tainted=() if isinstance(nodes, UnreadFact) else tuple(filter(_tainted_by_controllers, nodes)),
        policies=policies,
        hooks=_by_group(tagged, "autoscaling:DescribeLifecycleHooks", lambda group: tuple(ports.groups.hooks(group))),
        refreshes=_by_group(selected, "autoscaling:DescribeInstanceRefreshes", ports.service_limits.refreshes),
        upgrades=_by_group(
            selected, "dynamodb:GetItem and states:DescribeExecution", lambda group: _upgrade(group, ports)
        ),
        disruption=read(
            "dynamodb:GetItem and states:DescribeExecution",
            lambda: _disruption(name, ports.disruptions, ports.disruption_executions),
        ),
        synced=read("dynamodb:BatchGetItem", lambda: _synced(name, ports.catalog)),
        named_hooks=read("dynamodb:GetItem", lambda: ports.catalog.named_hooks(name)),
        zones=read("dynamodb:GetItem", lambda: ports.catalog.zone_record(name)),
        template_tags=read(
            "ec2:DescribeTags",
            lambda: deployment.tags(one for group in selected for one in template_ids(group)),
        ),
        queue_arns=queue_arns or ports.queue_arns,
    )


class _ClusterReader:
    """Reader of the cluster, unless it has not answered already: each try would wait for its time-out again."""

    def __init__(self, version: Read[str]) -> None:
        self._silent = version if isinstance(version, UnreadFact) else None

    def __call__(self, permission: str, look: Callable[[], T]) -> Read[T]:
        if self._silent is not None:
            return self._silent
        return read(f"{permission} in the cluster", look)

    def each(self, permission: str, look: Callable[[str], T]) -> dict[str, Read[T]]:
        """Read all ClusterRoles, or their bindings."""
        return {name: self(permission, partial(look, name)) for name in expected.KUBERNETES_GROUPS}


def _entry(name: str, arn: str, deployment: DeploymentReader) -> Read[tuple[str, ...] | None]:
    if not arn:
        return NO_ROLE

    def look() -> tuple[str, ...] | None:
        found = deployment.entry(name, arn)
        return None if found is None else tuple(found)

    return read("eks:DescribeAccessEntry", look)


def _api(name: str, deployment: DeploymentReader) -> tuple[Rbac, Read[str]]:
    rbac = deployment.rbac(name)
    return rbac, read("an access entry of your own (aws eks create-access-entry)", rbac.version)


def _selects(policies: Read[ClusterPolicies], group: Group) -> bool:
    if isinstance(policies, UnreadFact):
        return False
    return policies.policy_of(group) is not None


def _foreign(nodes: Iterable[Node], deployment: str) -> Mapping[str, str]:
    return {node.name: node.disrupted_by or "" for node in nodes if node.is_foreign(deployment)}


def _tainted_by_controllers(node: Node) -> bool:
    return any(taint.key in FOREIGN_TAINTS for taint in node.taints)


def _by_group(groups: list[Group], permission: str, look: Callable[[str], T]) -> dict[str, Read[T]]:
    return read_each((group.name for group in groups), permission, look)


def _upgrade(group: str, ports: Ports) -> Upgrade | None:
    record = ports.upgrades.read(group)
    if record is None:
        return None
    runs = is_held(record, ports.upgrade_executions, ports.managed_upgrade_executions)
    return Upgrade(record=record, runs=runs)


def _disruption(name: str, disruptions: Disruptions, disruption_executions: NamedExecutions) -> Disruption | None:
    record = disruptions.read(name)
    if record is None:
        return None
    runs = record.open and bool(record.execution) and disruption_executions.running(record.execution)
    return Disruption(record=record, runs=runs)


def _synced(name: str, catalog: Catalog) -> Mapping[FactKind, datetime]:
    return {kind: sheet.synced for kind, sheet in catalog.read(name).items() if kind in KEPT_BY_SYNC}
