"""Capacity for the new nodes and for the pods of the old ones.

Pods that no node can host once the old nodes are gone: tried by the scheduling simulation over the node template.
Zones whose subnets cannot hold the new nodes beside the old ones: by placement's own accounting of addresses.

Labels and extended resources that every node of a group has and that nothing which boots it names do not block an
upgrade: device and feature discovery label new nodes as they have labelled the old ones, and an upgrade to other user
data could else never begin. They are a warning, because a person may have put them there. What the user data of old
nodes names and the new version does not is lost: a blocker."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from leeward.model.counts import count_of
from leeward.model.instance_type import InstanceType
from leeward.model.pod_limits import is_list
from leeward.model.quantity import CPU, MEMORY
from leeward.model.subnet import Subnet
from leeward.node_template.observed import of_unknown_source
from leeward.placement.accounting import Demand, accounting_of, demand_of
from leeward.placement.cni import CniSettings
from leeward.scheduling.nodes import NodeSpec, NodeTemplate, TemplateOffering
from leeward.scheduling.outcome import Packing, Unplaced
from leeward.scheduling.packing import attempt
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World
from leeward.snapshot.cluster import specs_by_free_capacity
from leeward.snapshot.launchable import Launchable
from leeward.snapshot.launches import ready_nodes
from leeward.upgrade.preflight.findings import Code, PreflightFinding, blocker, warning
from leeward.upgrade.preflight.model import Preflight, zone_of

_MOST_NAMED = 5
_FIX = (
    "see that what puts it there (device or feature discovery) runs on the new nodes too, or set it in the new "
    "version; with update.canary a single node drains first"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    """Try of the old nodes' pods on a template."""

    same: Packing  # on as many new nodes as there are old ones
    more: Packing | None  # on as many as they need, None where `same` has a place for all
    beyond: Mapping[str, str]  # pods that are not tried

    @classmethod
    def of(cls, world: World, old: Sequence[str], templates: Iterable[NodeTemplate], beyond: Mapping[str, str]) -> Self:
        """Return the result; the world stays as it is.

        Old nodes are removed one after another: all of them at once as empty domains would refuse pods that can start.
        """
        limited = tuple(templates)
        same, more = attempt(world, old, templates=limited, deleted=True), None
        if same.timed_out or any(one.pod not in beyond for one in same.unplaced):
            unlimited = [replace(one, max_nodes=None) for one in limited]
            more = attempt(world, old, templates=unlimited, deleted=True)
        return cls(same=same, more=more, beyond=beyond)

    @property
    def timed_out(self) -> bool:
        """True if the time ended it."""
        return self.same.timed_out or (self.more is not None and self.more.timed_out)

    @property
    def nowhere(self) -> tuple[Unplaced, ...]:
        """Pods that no number of new nodes can host."""
        return tuple(one for one in self.more.unplaced if one.pod not in self.beyond) if self.more is not None else ()


def check_capacity(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Simulate all old nodes away at once, as many new ones in each zone. Pods that fit only on further nodes are a
    warning.
    """
    launchable = preflight.launchable
    old = [member.node.name for member in preflight.old if member.node is not None]
    if launchable is None or not old:
        return
    node = _complete(preflight, launchable)
    if node is None:
        message = f"cpu and memory of a new node are not known (types {', '.join(launchable.types) or 'unknown'})"
        fix = "put instance-types.json into the snapshot: pods are not tried on the new template without it"
        yield warning(Code.TEMPLATE_INCOMPLETE, f"group {preflight.group.name}", message, fix)
        return
    yield from _tried(preflight, old, launchable, node)


def _tried(
    preflight: Preflight, old: Sequence[str], launchable: Launchable, node: NodeSpec
) -> Iterator[PreflightFinding]:
    """Try the pods of the old nodes, first on as many new nodes in each zone, then on as many as they need."""
    snapshot = preflight.snapshot
    world = World(specs_by_free_capacity(snapshot), snapshot.pod_specs, daemons=snapshot.daemon_specs)
    beyond = {pod.key: pod.needs.beyond_limit for name in old for pod in world.pods_on(name) if _is_beyond(pod)}
    yield from _beyond_limits(beyond)
    world.in_time = preflight.time.in_time
    templates = _templates(preflight, launchable, node)
    tried = _Try.of(world, old, templates, beyond)
    refused = {one.pod for one in tried.nowhere}
    unproven = unproven_of(preflight, node) if refused and not tried.timed_out else Unproven()
    if unproven:
        assumed = _Try.of(world, old, unproven.on(templates), beyond)
        helped = refused - {one.pod for one in assumed.nowhere}
        yield from unproven.findings(pod for name in old for pod in world.pods_on(name) if pod.key in helped)
        tried = assumed if helped or assumed.timed_out else tried
    if tried.timed_out:
        yield _not_tried(preflight)
        return
    yield from _nowhere(one for one in tried.nowhere if one.pod in refused)
    if tried.more is not None and len(tried.more.unplaced) < len(tried.same.unplaced):
        yield _more_nodes(preflight, tried.more, len(old))


def _complete(preflight: Preflight, launchable: Launchable) -> NodeSpec | None:
    """Return the template's node. Where its size is not known, old nodes of the same types show it; else None."""
    node = launchable.template.node
    if not _sized(node):
        snapshot, types = preflight.snapshot, set(launchable.types)
        alike = {one.name: snapshot.type_of(one) for one in snapshot.nodes if snapshot.type_of(one) in types}
        sizes = [spec.allocatable for spec in snapshot.node_specs if spec.name in alike]
        if not types or types - {*alike.values()}:
            return None
        least = {name: min(size.get(name, 0) for size in sizes) for name in sizes[0]}
        node = replace(node, allocatable={**node.allocatable, **least})
    return node if _sized(node) else None


def _sized(node: NodeSpec) -> bool:
    return all(node.allocatable.get(name) for name in (CPU, MEMORY))


def _templates(preflight: Preflight, launchable: Launchable, node: NodeSpec) -> tuple[NodeTemplate, ...]:
    """Return one for each zone, with as many new nodes as it has old ones; a zone with old nodes has a subnet, listed
    or not.
    """
    zones = Counter(zone_of(preflight.snapshot, member) for member in preflight.old)
    offerings = {zone: TemplateOffering(zone=zone) for zone in sorted(zones)}
    offerings |= {offering.zone: offering for offering in launchable.template.offerings}
    return tuple(
        replace(
            launchable.template,
            name=f"{launchable.template.name}-{zone}",
            node=node,
            offerings=(offering,),
            max_nodes=zones[zone],
        )
        for zone, offering in offerings.items()
    )


def _is_beyond(pod: PodSpec) -> bool:
    return bool(pod.needs.beyond_limit) and not pod.stays


def _beyond_limits(beyond: Mapping[str, str]) -> Iterator[PreflightFinding]:
    """Report pods that were not tried, in one warning: the upgrade evicts them like any others."""
    by_reason: dict[str, dict[str, str]] = {}
    for pod, reason in beyond.items():
        by_reason.setdefault("" if is_list(reason) else reason, {})[pod] = reason
    for kind, pods in sorted(by_reason.items()):
        first = min(pods)
        also = f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
        message = f"it has {pods[first]}{also}: whether a new node can host it was not tried"
        fix = "see that a new node can host it before its old node is drained"
        fix = fix if kind else "shorten that list in its workload's template"
        yield warning(Code.PODS_BEYOND_LIMITS, f"pod {first}", message, fix)


def _not_tried(preflight: Preflight) -> PreflightFinding:
    message = "not every pod was tried on the new template: there was no time left"
    fix = "leeward upgrade plan has no such limit: see whether it reports PodsFitNowhere"
    return warning(Code.NOT_JUDGED, f"group {preflight.group.name}", message, fix)


def _nowhere(unplaced: Iterable[Unplaced]) -> Iterator[PreflightFinding]:
    """Yield the pods of one cause together: a workload's pods share theirs."""
    by_cause: dict[str, list[str]] = {}
    for one in unplaced:
        by_cause.setdefault(one.why, []).append(one.pod)
    for why, pods in sorted(by_cause.items(), key=lambda item: item[1]):
        also = f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
        message = f"no node could host it once the old nodes are gone{also}: {why}"
        fix = "change what the pod asks for, or the new template (instance types, labels, taints)"
        yield blocker(Code.PODS_FIT_NOWHERE, f"pod {pods[0]}", message, fix)


def _more_nodes(preflight: Preflight, packing: Packing, old: int) -> PreflightFinding:
    message = f"by first fit the pods need {count_of(len(packing.new_nodes), 'new node')}, {old} old ones go"
    fix = "let Cluster Autoscaler or a larger desired size provide them, or choose a larger instance type"
    return warning(Code.MORE_NODES_NEEDED, f"group {preflight.group.name}", message, fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """Labels by zone, and amounts of extended resources. False where there are none."""

    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.labels or self.resources)

    def on(self, templates: Iterable[NodeTemplate]) -> tuple[NodeTemplate, ...]:
        """Return the templates with all of them; what a template has of its own stays."""
        return tuple(
            replace(
                template,
                node=replace(template.node, allocatable={**self.resources, **template.node.allocatable}),
                offerings=tuple(
                    replace(offering, labels={**self.labels.get(offering.zone, {}), **offering.labels})
                    for offering in template.offerings
                ),
            )
            for template in templates
        )

    def findings(self, pods: Iterable[PodSpec]) -> Iterator[PreflightFinding]:
        """Report in one warning the pods that a new node can host only with some of them."""
        asked = {pod.key: self._asked(pod) for pod in pods}
        if not asked:
            return
        first, also = min(asked), f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
        named = ", ".join(sorted(set[str]().union(*asked.values()))[:_MOST_NAMED])
        message = (
            f"it needs{also} a node with {named}: every node of the group has that, neither user data nor tags name "
            "it, and whether a new node gets it is not known"
        )
        yield warning(Code.LABELS_MISSING, f"pod {first}", message, _FIX)

    def _asked(self, pod: PodSpec) -> set[str]:
        spread = (rule.key for rule in pod.needs.spread)
        keys = pod.needs.nodes.keys.union(spread, (term.key for term in pod.needs.near))
        labels = {(key, value) for labels in self.labels.values() for key, value in labels.items()}
        resources = {name for name, _ in pod.needs.requests if name in self.resources}
        return {f"{key}={value}" for key, value in labels if key in keys} | resources


def unproven_of(preflight: Preflight, node: NodeSpec) -> Unproven:
    """Return those of the group's Ready nodes. `node`: of the new version; what is known of it is left out."""
    snapshot = preflight.snapshot
    specs = {spec.name: spec for spec in snapshot.node_specs}
    nodes = [(one, specs[one.name]) for one in snapshot.nodes if one.name in specs]
    ready = ready_nodes(preflight.group, nodes, snapshot.instances, snapshot.launched_from)
    by_zone, resources = of_unknown_source(ready)
    known = {*node.labels, *(key for variant in node.variants for key, _ in variant)}
    labels = {zone: {key: found[key] for key in found if key not in known} for zone, found in by_zone.items()}
    return Unproven(
        labels={zone: found for zone, found in labels.items() if found},
        resources={name: amount for name, amount in resources.items() if name not in node.allocatable},
    )


def check_addresses(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Check each zone with old nodes: a blocker where there is no address for one new node, a warning where fewer than
    may come at a time: the upgrade is slower then.
    """
    subnets = _subnets(preflight)
    if not preflight.extra or not subnets:
        return
    demand = _demand(preflight, subnets)
    zones = Counter(zone_of(preflight.snapshot, member) for member in preflight.old)
    share = -(-preflight.most_extra // max(len(zones), 1))
    for zone in sorted(zones):
        wanted = min(zones[zone], share)
        mine = [subnet for subnet in subnets if subnet.zone == zone]
        nodes = sum(subnet.free_ips // max(demand.ips, 1) for subnet in mine)
        free = ", ".join(f"{subnet.id} has {subnet.free_ips} free" for subnet in mine) or "no subnet of the group"
        addresses = f"{free}, {demand.node} takes {demand.ips}"
        fix = f"free addresses or add a subnet in {zone} (leeward inspect zones), or use update.strategy MINIMAL"
        if nodes == 0:
            yield blocker(Code.ZONE_WITHOUT_ADDRESSES, f"zone {zone}", f"no addresses for a new node: {addresses}", fix)
        elif nodes < wanted:
            message = f"addresses for {nodes} of up to {count_of(wanted, 'new node')} at a time: {addresses}"
            yield warning(Code.ZONE_SHORT_OF_ADDRESSES, f"zone {zone}", message, fix)


def _subnets(preflight: Preflight) -> list[Subnet]:
    """Return the group's own subnets; for a group without, all of its zones."""
    group, known = preflight.group, preflight.snapshot.subnets.values()
    if group.subnets:
        return [subnet for subnet in known if subnet.id in group.subnets]
    return [subnet for subnet in known if subnet.zone in group.zones]


def _demand(preflight: Preflight, subnets: list[Subnet]) -> Demand:
    """Return the demand of a node as full as the fullest old one, of whatever type takes most."""
    settings = CniSettings.from_variables(preflight.inputs.cni)
    launchable = preflight.launchable
    names = launchable.types if launchable is not None else preflight.group.running_types
    known = {**preflight.snapshot.types, **preflight.inputs.types}
    types = [known.get(name, InstanceType(name=name, vcpus=0, memory_mib=0)) for name in names]
    snapshot = preflight.snapshot
    accounting = accounting_of(settings, snapshot.cluster, snapshot.subnets.values(), subnets)
    return demand_of(accounting, settings, types, _pods(preflight))


def _pods(preflight: Preflight) -> int:
    """Count the pods with an address of their own, DaemonSets' pods too, on the fullest old node."""
    nodes = [member.node.name for member in preflight.old if member.node is not None]
    held = (sum(not (pod.finished or pod.host_network) for pod in preflight.snapshot.pods_on(node)) for node in nodes)
    return max(held, default=0)
