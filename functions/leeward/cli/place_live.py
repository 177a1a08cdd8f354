"""Inputs of a placement, live: the present groups, subnets and nodes, instance types and the CNI's settings as fn sync
has recorded them, else from AWS and the cluster.

Decides where each part comes from; `leeward.placement` decides what follows from them."""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leeward.errors import InvalidInputError, LeewardError
from leeward.model import well_known
from leeward.model.facts import ClusterFacts, FactKind
from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.subnet import Subnet
from leeward.model.times import format_instant
from leeward.placement.accounting import Accounting, Demand, accounting_of, demand_of
from leeward.placement.cni import CniSettings, variables_of
from leeward.placement.explain import ZoneFacts, zone_facts
from leeward.placement.restrictions import by_claim, of_claimed
from leeward.placement.scene import PlacementScene, closed_zones, cores_by_zone
from leeward.policy.document import NodePolicy
from leeward.policy.selection import policy_for
from leeward.ports import Ports

USED = (FactKind.TEMPLATES, FactKind.INSTANCE_TYPES, FactKind.CNI)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """One cluster now. `facts`: the facts that fn sync has recorded; `variables` None: there is no aws-node."""

    ports: Ports
    cluster: str
    facts: ClusterFacts
    nodes: tuple[Node, ...]
    variables: Mapping[str, str] | None

    @classmethod
    def of(cls, ports: Ports, cluster: str) -> "Live":
        """Read the cluster; without the table, or before fn sync has run, from AWS and the cluster alone."""
        try:
            facts = ClusterFacts.from_sheets(ports.catalog.read(cluster))
        except LeewardError:
            facts = ClusterFacts()
        kubernetes = ports.clusters.kubernetes(cluster)
        nodes, variables = tuple(kubernetes.nodes()), facts.cni
        if FactKind.CNI not in facts.synced:
            daemon_set = kubernetes.aws_node()
            variables = None if daemon_set is None else variables_of(daemon_set)
        return cls(ports=ports, cluster=cluster, facts=facts, nodes=nodes, variables=variables)

    def group(self, name: str) -> Group:
        """Return the group. Raises InvalidInputError when there is none."""
        found = self.ports.groups.describe([name]).get(name)
        if found is None:
            raise InvalidInputError(f"AutoScalingGroups: found no group {name!r}, expected one of the Region's groups")
        return found

    def types(self, names: Iterable[str]) -> tuple[InstanceType, ...]:
        """Return the types by name, unrecorded ones from EC2; one that EC2 does not know has no limits."""
        wanted = sorted(set(names))
        asked = [name for name in wanted if name not in self.facts.types]
        known = {**self.facts.types, **(self.ports.launches.instance_types(asked) if asked else {})}
        return tuple(known.get(name) or InstanceType(name=name, vcpus=0, memory_mib=0) for name in wanted)

    @property
    def type_cores(self) -> Mapping[str, int]:
        """Thousandths of a core by instance type, for nodes whose status does not report them."""
        return {name: kind.vcpus * 1000 for name, kind in self.facts.types.items()}

    def ages(self) -> dict[str, str]:
        """Return the time at which each used kind of facts was recorded, by kind."""
        return {kind.value: format_instant(self.facts.synced[kind]) for kind in USED if kind in self.facts.synced}

    def told(self, now: datetime) -> str:
        """Return `ages` as a sentence for people, which flags facts that are too old."""
        if not self.ages():
            return "fn sync has written nothing down yet: AWS and the cluster were asked"
        old = self.facts.stale(now, USED)
        parts = [
            f"{kind.value} {max(int((now - self.facts.synced[kind]).total_seconds() // 60), 0)} min ago"
            f"{' (old: is fn sync running?)' if kind in old else ''}"
            for kind in USED
            if kind in self.facts.synced
        ]
        return f"as fn sync saw them: {', '.join(parts)}; all else as it is now"


def open_live(arguments: argparse.Namespace, verb: str) -> Live:
    """Open the cluster that --cluster names. Raises InvalidInputError without one."""
    if arguments.cluster is None:
        raise InvalidInputError(
            f"{verb}: found neither --cluster nor --snapshot, expected --cluster NAME (live) or --snapshot DIR"
        )
    from leeward.adapters.wiring import command_line_ports  # late: offline needs no AWS library

    return Live.of(command_line_ports(arguments.cluster, arguments.region, arguments.account), arguments.cluster)


def live_group_scene(live: Live, name: str, pods: int, zones: Sequence[str]) -> PlacementScene:
    """Build the scene for nodes of the group with `pods` pods with an address. Raises InvalidInputError without it."""
    group = live.group(name)
    subnets = tuple(live.ports.network.subnets(group.subnets).values())
    asked = tuple(sorted(set(zones))) or tuple(sorted({subnet.zone for subnet in subnets}))
    subnets = tuple(subnet for subnet in subnets if subnet.zone in asked)
    policies = live.ports.clusters.policies(live.cluster).policies
    policy = policy_for(policies, group.name, group.tags)
    template = live.facts.templates.get(name)
    types = live.types((template.types if template else ()) or group.override_types or group.running_types)
    demand = _demand(live, subnets, types, pods, () if policy is None else (policy,))
    allocated = cores_by_zone(live.nodes, live.type_cores)
    cores = {zone: amount for zone, amount in allocated.items() if zone in asked}
    closed = closed_zones(live.nodes)
    return PlacementScene(subnets=subnets, demand=demand, cores=cores, asked_zones=asked, closed=closed)


def live_cluster_scene(live: Live, instance_type: str | None, pods: int | None) -> PlacementScene:
    """Build the scene for one more node of the cluster, in the subnets of the groups that policies select. Defaults:
    the commonest type and the pods of its busiest such node.
    """
    policies = live.ports.clusters.policies(live.cluster).policies
    groups = live.ports.groups.of_clusters([live.cluster])
    selected = [group for group in groups if policy_for(policies, group.name, group.tags)] or groups
    ids = sorted({name for group in selected for name in group.subnets})
    subnets = tuple(live.ports.network.subnets(ids).values())
    kind = instance_type or _commonest(live.nodes)
    expected = pods
    if expected is None:
        all_pods = live.ports.clusters.kubernetes(live.cluster).pods()
        expected = _busiest(live.nodes, all_pods, kind)
    demand = _demand(live, subnets, live.types([kind] if kind else []), expected, policies)
    cores, closed = cores_by_zone(live.nodes, live.type_cores), closed_zones(live.nodes)
    return PlacementScene(subnets=subnets, demand=demand, cores=cores, closed=closed)


def live_zone_facts(live: Live, scene: PlacementScene) -> dict[str, ZoneFacts]:
    """Return what each zone of the scene holds, without finished pods."""
    kubernetes = live.ports.clusters.kubernetes(live.cluster)
    pods = [pod for pod in kubernetes.pods() if pod.claims and not pod.finished]
    volumes = by_claim(kubernetes.volumes() if pods else ())
    return zone_facts(scene.zones, live.nodes, [of_claimed(pod, volumes) for pod in pods], live.type_cores)


def _demand(
    live: Live, subnets: Sequence[Subnet], types: Sequence[InstanceType], pods: int, policies: Iterable[NodePolicy]
) -> Demand:
    overrides: dict[str, Any] = {}
    for policy in policies:
        overrides = {**policy.cni, **overrides}
    settings = CniSettings.from_variables({**(live.variables or {}), **overrides})
    accounting = accounting_of(settings, (*live.facts.subnets, *subnets), subnets)
    if live.variables is None:
        accounting = Accounting(on=False, why="kube-system/aws-node is not there")
    return demand_of(accounting, settings, types, pods)


def _commonest(nodes: Iterable[Node]) -> str | None:
    known = Counter(node.labels.get(well_known.INSTANCE_TYPE_LABEL, "") for node in nodes)
    known.pop("", None)
    return min(known, key=lambda name: (-known[name], name), default=None)


def _busiest(nodes: Iterable[Node], pods: Iterable[Pod], instance_type: str | None) -> int:
    """Return the number of pods with an address of their own on the node of the type that has most."""
    names = {node.name for node in nodes if node.labels.get(well_known.INSTANCE_TYPE_LABEL) == instance_type}
    held = Counter(pod.node for pod in pods if pod.node in names and not pod.finished and not pod.host_network)
    return max(held.values(), default=0)
