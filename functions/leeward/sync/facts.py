"""Facts kept about a cluster: subnets, instance types, prices, contents of nodes, settings of the CNI.

Decides what is in use and when it is read again; the ports provide it. Each kind is gathered separately: a kind that
fails leaves the earlier facts, which age and show their age to every reader."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from leeward.errors import LeewardError
from leeward.isolation import isolate_errors
from leeward.model import well_known
from leeward.model.capacity_block import CapacityBlock
from leeward.model.facts import (
    ClusterFacts,
    FactKind,
    GroupTemplate,
    NamedHooks,
    Prices,
    Sheet,
    blocks_content,
    cni_content,
    named_hooks_content,
    node_repair_content,
    nodes_content,
    prices_content,
    subnets_content,
    types_content,
)
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.model.nodegroup import NodeRepair
from leeward.placement.accounting import CNI_ROLE_TAG
from leeward.placement.cni import variables_of
from leeward.placement.scene import closed_zones, cores_by_zone, zone_of
from leeward.policy.document import ClusterPolicies
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances, LaunchSources, Network, PriceList
from leeward.ports.eks import KnownNodegroups
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Catalog

PRICES_EVERY = timedelta(minutes=60)
HOOKS_REMEMBERED = timedelta(hours=48)  # after the policy that named them: the longest wait of a hook


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """Objects that the cluster's groups and nodes use."""

    cluster: str
    policies: ClusterPolicies
    groups: tuple[Group, ...]
    nodes: tuple[Node, ...] | None  # None: the API server did not answer
    # expected launches of the selected groups, as last gathered
    templates: Mapping[str, GroupTemplate] = field(default_factory=dict)

    @property
    def subnets(self) -> tuple[str, ...]:
        """Subnets of the groups, by id."""
        return tuple(sorted({name for group in self.groups for name in group.subnets}))

    @property
    def types(self) -> tuple[str, ...]:
        """Instance types that groups may launch or that run, by name."""
        labels = (node.labels.get(well_known.INSTANCE_TYPE_LABEL, "") for node in self.nodes or ())
        named = {name for group in self.groups for name in (*group.override_types, *group.running_types)}
        launched = (name for template in self.templates.values() for name in template.types)
        return tuple(sorted(named.union(labels, launched) - {""}))

    @property
    def zones(self) -> tuple[str, ...]:
        """Zones of groups and nodes, by name."""
        of_nodes = {zone_of(node) for node in self.nodes or ()}
        return tuple(sorted({zone for group in self.groups for zone in group.zones} | of_nodes - {""}))


Gather = Callable[[InUse, ClusterFacts, Ports], Mapping[str, Any]]  # the objects in use, and the earlier facts


@dataclass(slots=True)
class Kept:
    """Result for one cluster: the kinds written, a sentence for each failure, and the kinds that are out of date: older
    than their readers accept, or written with a part that could not be renewed.
    """

    kinds: list[FactKind] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    out_of_date: list[FactKind] = field(default_factory=list)


def keep_facts(used: InUse, ports: Ports) -> Kept:
    """Gather the facts and write them to the table."""
    kept = Kept()
    failures, partly = kept.failures, set[FactKind]()
    before = _before(used.cluster, ports.catalog, failures)
    for kind in _due(used, before, ports.clock.now()):
        with isolate_errors(partial(note_error, failures, f"{used.cluster}: {kind.value}")):
            content = GATHER[kind](used, before or ClusterFacts(), ports)
            sheet = Sheet(synced=ports.clock.now(), content=content)
            failed = content.get("failed", {})
            failures += [f"{used.cluster}: {kind.value}: {sentence}" for sentence in failed.values()]
            used = _with_templates(used, kind, sheet)
            ports.catalog.keep(used.cluster, kind, sheet)
            kept.kinds.append(kind)
            partly |= {kind} if failed else set()
    old = {*before.stale(ports.clock.now())} - {*kept.kinds} if before is not None else set()
    kept.out_of_date += sorted(old | partly)
    return kept


def note_error(failures: list[str], what: str, error: LeewardError) -> None:
    """Add a sentence about the error."""
    failures.append(f"{what}: {error}")


def _before(cluster: str, catalog: Catalog, failures: list[str]) -> ClusterFacts | None:
    with isolate_errors(partial(note_error, failures, cluster)):
        return ClusterFacts.from_sheets(catalog.read(cluster))
    return None


def _due(used: InUse, before: ClusterFacts | None, now: datetime) -> Iterable[FactKind]:
    """Return the kinds to gather: prices once an hour; kinds that need the cluster's API only if it has answered; kinds
    that add to earlier facts only if those could be read.
    """
    waiting = {FactKind.NODES, FactKind.CNI} if used.nodes is None else set()
    if before is None:
        waiting |= {FactKind.INSTANCE_TYPES, FactKind.PRICES, FactKind.NAMED_HOOKS}
    elif FactKind.PRICES in before.synced and now - before.synced[FactKind.PRICES] < PRICES_EVERY:
        waiting.add(FactKind.PRICES)
    return [kind for kind in GATHER if kind not in waiting]


def _subnets(used: InUse, network: Network) -> Mapping[str, Any]:
    """Return the groups' subnets, and those that the CNI's subnet discovery may use beside them."""
    own = network.subnets(used.subnets)
    vpcs = sorted({subnet.vpc for subnet in own.values()} - {""})
    more = network.subnets_tagged(vpcs, CNI_ROLE_TAG)
    return subnets_content({**more, **own}.values())


def _types(used: InUse, before: ClusterFacts, launches: LaunchSources) -> Mapping[str, Any]:
    """Return the types. Known types stay: while the API server or a group does not answer, those in use are unknown."""
    return types_content({**before.types, **launches.instance_types(used.types)}.values())


def _prices(used: InUse, before: ClusterFacts, price_list: PriceList, clock: Clock) -> Mapping[str, Any]:
    types = sorted({*used.types, *before.types})
    spot = price_list.spot(types, used.zones, clock.now())
    return prices_content(Prices(on_demand=price_list.on_demand(types), spot=spot))


def _nodes(used: InUse) -> Mapping[str, Any]:
    """Return the contents of all nodes, those of unselected groups too: they are capacity as well."""
    nodes = used.nodes or ()
    ready = (node.instance_id for node in nodes if node.ready and node.instance_id)
    return nodes_content(cores_by_zone(nodes), ready, closed_zones(nodes))


def _cni(used: InUse, clusters: Clusters) -> Mapping[str, Any]:
    daemon_set = clusters.kubernetes(used.cluster).aws_node()
    return cni_content(None if daemon_set is None else variables_of(daemon_set))


def _templates(
    used: InUse, before: ClusterFacts, nodegroups: KnownNodegroups, launches: LaunchSources
) -> Mapping[str, Any]:
    from leeward.sync.templates import expected_templates  # late: a cold start puts hooks before it reads user data

    return expected_templates(used.cluster, used.groups, used.policies, before, nodegroups, launches)


def _with_templates(used: InUse, kind: FactKind, sheet: Sheet) -> InUse:
    """Add the templates: types that groups would launch are in use too, so they precede types and prices."""
    if kind is not FactKind.TEMPLATES:
        return used
    return replace(used, templates=ClusterFacts.from_sheets({kind: sheet}).templates)


def _capacity_blocks(used: InUse, instances: Instances) -> Mapping[str, Any]:
    """Return the Capacity Blocks of instances in selected groups. One call without any block in the account, two with
    some.
    """
    ends = instances.block_ends()
    members = instances.in_reservations(ends) if ends else {}
    selected = [group for group in used.groups if used.policies.policy_of(group) is not None]
    ours = {member.id for group in selected for member in group.instances}
    return blocks_content(
        {
            name: CapacityBlock(reservation=reservation, ends=ends[reservation])
            for name, reservation in members.items()
            if name in ours
        }
    )


def _node_repair(used: InUse, nodegroups: KnownNodegroups) -> Mapping[str, Any]:
    """Return EKS' node auto repair of managed groups whose policy repairs; one that cannot be read is left out."""
    found: dict[str, NodeRepair] = {}
    for group in used.groups:
        policy = used.policies.policy_of(group)
        if policy is None or not policy.repair.enabled or group.nodegroup is None:
            continue
        nodegroup = nodegroups.get(used.cluster, group.nodegroup, policy.template.ttl)
        if nodegroup is not None:
            found[group.name] = nodegroup.repair
    return node_repair_content(found)


def _named_hooks(used: InUse, before: ClusterFacts, now: datetime) -> Mapping[str, Any]:
    """Return the hooks that policies name. Those of a group that no policy selects any more stay for two days: what has
    begun there ends with them.
    """
    named: dict[str, NamedHooks] = {}
    for group in used.groups:
        policy, earlier = used.policies.policy_of(group), before.named_hooks.get(group.name)
        if policy is not None and policy.interruption.hooks:
            named[group.name] = NamedHooks(names=policy.interruption.hooks, at=now)
        elif policy is None and earlier is not None and now - earlier.at < HOOKS_REMEMBERED:
            named[group.name] = earlier
    return named_hooks_content(named)


GATHER: Mapping[FactKind, Gather] = {
    # first: it shows which types are in use
    FactKind.TEMPLATES: lambda used, before, ports: _templates(used, before, ports.nodegroups, ports.launches),
    FactKind.SUBNETS: lambda used, _, ports: _subnets(used, ports.network),
    FactKind.INSTANCE_TYPES: lambda used, before, ports: _types(used, before, ports.launches),
    FactKind.NODES: lambda used, _, __: _nodes(used),
    FactKind.CNI: lambda used, _, ports: _cni(used, ports.clusters),
    FactKind.CAPACITY_BLOCKS: lambda used, _, ports: _capacity_blocks(used, ports.instances),
    FactKind.NODE_REPAIR: lambda used, _, ports: _node_repair(used, ports.nodegroups),
    FactKind.NAMED_HOOKS: lambda used, before, ports: _named_hooks(used, before, ports.clock.now()),
    FactKind.PRICES: lambda used, before, ports: _prices(used, before, ports.price_list, ports.clock),  # slowest: last
}
