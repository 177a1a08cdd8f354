"""Inputs of a placement: the present groups, subnets and nodes; instance types and the CNI's settings as function sync
has recorded them, else from AWS and the cluster.

Decides where each part comes from; `leeward.placement` decides what follows from them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leeward.cli.context import ClusterContext
from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.model.facts import ClusterFacts, FactKind
from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.subnet import Subnet
from leeward.model.times import format_instant
from leeward.placement.accounting import CNI_ROLE_TAG, Accounting, Demand, accounting_of, demand_of
from leeward.placement.cni import CniSettings, variables_of
from leeward.placement.explain import ZoneFacts, zone_facts
from leeward.placement.restrictions import by_claim, not_in_zones, of_claimed
from leeward.placement.scene import PlacementScene, closed_zones, cores_by_zone
from leeward.policy.document import NodePolicy

USED = (FactKind.TEMPLATES, FactKind.INSTANCE_TYPES, FactKind.CNI)
SUBNETS = "subnets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """One cluster now. `facts`: as function sync has recorded them; `variables` None: there is no aws-node;
    `type_cores`: thousandths of a core by instance type, for nodes whose status does not report them.
    """

    context: ClusterContext
    facts: ClusterFacts
    nodes: tuple[Node, ...]
    variables: Mapping[str, str] | None
    type_cores: Mapping[str, int]

    @classmethod
    def of(cls, context: ClusterContext) -> "Inputs":
        """Read the cluster; without the table, or before function sync has run, from AWS and the cluster alone."""
        facts = context.facts()
        kubernetes = context.ports.clusters.kubernetes(context.cluster)
        nodes, variables = tuple(kubernetes.nodes()), facts.cni
        if FactKind.CNI not in facts.synced:
            daemon_set = kubernetes.aws_node()
            variables = None if daemon_set is None else variables_of(daemon_set)
        silent = {node.labels.get(well_known.INSTANCE_TYPE_LABEL, "") for node in nodes if not node.cpu} - {""}
        cores = {kind.name: kind.vcpus * 1000 for kind in _types(context, facts, silent)}
        return cls(context=context, facts=facts, nodes=nodes, variables=variables, type_cores=cores)

    def types(self, names: Iterable[str]) -> tuple[InstanceType, ...]:
        """Return the types by name, unrecorded ones from EC2; one that EC2 does not know has no limits."""
        return _types(self.context, self.facts, names)

    def ages(self) -> dict[str, dict[str, str]]:
        """Return `facts`, the time at which each used kind was recorded, as printed; nothing of a folder, whose time is
        not known.
        """
        if self.context.folder is not None:
            return {}
        return {"facts": {kind.value: format_instant(self.facts.synced[kind]) for kind in self._used()}}

    def describe_ages(self, now: datetime) -> tuple[str, ...]:
        """Return `ages` as a sentence for people, which flags facts that are too old."""
        if self.context.folder is not None:
            return ()
        if not self._used():
            return ("fn sync has recorded nothing yet: this is read from AWS and the cluster",)
        old = self.facts.stale(now, USED)
        parts = [
            f"{kind.value} {max(int((now - self.facts.synced[kind]).total_seconds() // 60), 0)} min ago"
            f"{' (old: is fn sync running?)' if kind in old else ''}"
            for kind in self._used()
        ]
        return (f"as fn sync recorded them: {', '.join(parts)}; all else as it is now",)

    def _used(self) -> list[FactKind]:
        return [kind for kind in USED if kind in self.facts.synced]


def placement_of_group(inputs: Inputs, name: str, pods: int, zones: Sequence[str] = ()) -> PlacementScene:
    """Build the scene for nodes of the group with `pods` pods that need an address, limited to `zones` if there are
    any. Raises InvalidInputError for an unknown group, or a folder without its subnets.
    """
    ports, group = inputs.context.ports, inputs.context.group(name)
    subnets = tuple(ports.network.subnets(group.subnets).values())
    if not subnets:
        wanted = ", ".join(group.subnets) or f"a subnet in {', '.join(group.zones) or 'one of its zones'}"
        _check_subnets(inputs.context, f"none of group {name}'s", wanted)
    asked = tuple(sorted(set(zones))) or tuple(sorted({subnet.zone for subnet in subnets}))
    subnets = tuple(subnet for subnet in subnets if subnet.zone in asked)
    policy = ports.clusters.policies(inputs.context.cluster).policy_of(group)
    demand = _demand(inputs, subnets, _types_of(inputs, group), pods, () if policy is None else (policy,))
    allocated = cores_by_zone(inputs.nodes, inputs.type_cores)
    return PlacementScene(
        subnets=subnets,
        demand=demand,
        cores={zone: amount for zone, amount in allocated.items() if zone in asked},
        asked_zones=asked,
        restrictions=not_in_zones(inputs.facts.shifts),
        closed=closed_zones(inputs.nodes),
    )


def placement_of_cluster(inputs: Inputs, instance_type: str | None, pods: int | None) -> PlacementScene:
    """Build the scene for one more node of the cluster, in the subnets of the groups that policies select, else in all
    of the cluster's. Defaults: the commonest type and the pods of its busiest such node. Raises InvalidInputError for a
    folder without subnets.
    """
    context, ports = inputs.context, inputs.context.ports
    policies = ports.clusters.policies(context.cluster)
    groups = ports.groups.of_clusters([context.cluster])
    selected = [group for group in groups if policies.policy_of(group)]
    ids = sorted({name for group in selected for name in group.subnets})
    subnets = ports.network.subnets(ids) or ports.network.subnets(_all_subnets(context, groups))
    if not subnets:
        _check_subnets(context, "no subnet", "")
    kind = instance_type or _commonest(inputs.nodes)
    expected = pods
    if expected is None:
        expected = _busiest(inputs.nodes, ports.clusters.kubernetes(context.cluster).pods(), kind)
    demand = _demand(inputs, tuple(subnets.values()), inputs.types([kind] if kind else []), expected, policies.policies)
    cores, closed = cores_by_zone(inputs.nodes, inputs.type_cores), closed_zones(inputs.nodes)
    return PlacementScene(
        subnets=tuple(subnets.values()),
        demand=demand,
        cores=cores,
        restrictions=not_in_zones(inputs.facts.shifts),
        closed=closed,
    )


def facts_by_zone(inputs: Inputs, scene: PlacementScene) -> dict[str, ZoneFacts]:
    """Return what each zone of the scene holds, without finished pods."""
    kubernetes = inputs.context.ports.clusters.kubernetes(inputs.context.cluster)
    pods = [pod for pod in kubernetes.pods() if pod.claims and not pod.finished]
    volumes = by_claim(kubernetes.volumes() if pods else ())
    return zone_facts(scene.zones, inputs.nodes, {pod.key: of_claimed(pod, volumes) for pod in pods}, inputs.type_cores)


def _check_subnets(context: ClusterContext, found: str, wanted: str) -> None:
    """Refuse a folder without the subnets: nothing could be placed, without a reason."""
    folder = context.folder
    if folder is not None:
        if not folder.elements(SUBNETS):
            found = "no subnet" if folder.has(SUBNETS) else "no such file"
            wanted = "the output of: aws ec2 describe-subnets"
        raise InvalidInputError(f"{folder.path(SUBNETS)}: Subnets: found {found}, expected {wanted}")


def _all_subnets(context: ClusterContext, groups: Iterable[Group]) -> list[str]:
    """Return the ids of the subnets that the cluster may use: of a folder all, live those of the cluster's groups."""
    if context.folder is not None:
        return [raw["SubnetId"] for raw in context.folder.elements(SUBNETS)]
    return sorted({name for group in groups for name in group.subnets})


def _types_of(inputs: Inputs, group: Group) -> tuple[InstanceType, ...]:
    """Return the types that the group may launch: as function sync has recorded them, of its overrides, of its launch
    template, else those that it runs. Requirements name no type: the types of its instances stand for them.
    """
    ports, template = inputs.context.ports, inputs.facts.templates.get(group.name)
    names = (template.types if template else ()) or group.override_types
    if not names and not any(one.requirements is not None for one in group.launch.overrides):
        settings = ports.launches.settings(group)
        names = (settings.instance_type,) if settings is not None and settings.instance_type else ()
    if not names:
        members = ports.instances.describe([one.id for one in group.instances]).values()
        names = (*group.running_types, *(member.type for member in members))
    return inputs.types({*names} - {""})


def _types(context: ClusterContext, facts: ClusterFacts, names: Iterable[str]) -> tuple[InstanceType, ...]:
    wanted = sorted(set(names))
    asked = [name for name in wanted if name not in facts.types]
    known = {**facts.types, **(context.ports.launches.instance_types(asked) if asked else {})}
    return tuple(known.get(name) or InstanceType(name=name, vcpus=0, memory_mib=0) for name in wanted)


def _demand(
    inputs: Inputs, subnets: Sequence[Subnet], types: Sequence[InstanceType], pods: int, policies: Iterable[NodePolicy]
) -> Demand:
    overrides: dict[str, Any] = {}
    for policy in policies:
        overrides = {**policy.cni, **overrides}
    settings = CniSettings.from_variables({**(inputs.variables or {}), **overrides})
    known = (*_discovered(inputs, subnets), *subnets)
    accounting = accounting_of(settings, inputs.context.cluster, known, subnets)
    if inputs.variables is None:
        accounting = Accounting(on=False, why="kube-system/aws-node is not there")
    return demand_of(accounting, settings, types, pods)


def _discovered(inputs: Inputs, subnets: Sequence[Subnet]) -> Iterable[Subnet]:
    """Return the subnets that the CNI's discovery may use beside the groups' own."""
    if FactKind.SUBNETS in inputs.facts.synced:
        return inputs.facts.subnets
    vpcs = sorted({subnet.vpc for subnet in subnets} - {""})
    return inputs.context.ports.network.subnets_tagged(vpcs, CNI_ROLE_TAG).values()


def _commonest(nodes: Iterable[Node]) -> str | None:
    known = Counter(node.labels.get(well_known.INSTANCE_TYPE_LABEL, "") for node in nodes)
    known.pop("", None)
    return min(known, key=lambda name: (-known[name], name), default=None)


def _busiest(nodes: Iterable[Node], pods: Iterable[Pod], instance_type: str | None) -> int:
    """Return the number of pods with an address of their own on the node of the type that has most."""
    names = {node.name for node in nodes if node.labels.get(well_known.INSTANCE_TYPE_LABEL) == instance_type}
    held = Counter(pod.node for pod in pods if pod.node in names and not pod.finished and not pod.host_network)
    return max(held.values(), default=0)
