"""Pods that no node can host once the old nodes are gone: tried by the scheduling simulation over the node template."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from leeward.model.quantity import CPU, MEMORY
from leeward.scheduling.nodes import NodeSpec, NodeTemplate, Offering
from leeward.scheduling.outcome import Packing
from leeward.scheduling.packing import attempt
from leeward.scheduling.world import World
from leeward.snapshot.free_capacity import specs_by_free_capacity
from leeward.snapshot.launchable import Launchable
from leeward.upgrade.findings import Code, Finding, blocker, warning
from leeward.upgrade.preflight import Preflight, zone_of


def check(preflight: Preflight) -> Iterator[Finding]:
    """Simulate all old nodes away at once, as many new ones in each zone. Pods that fit only on further nodes are a
    warning.
    """
    launchable = preflight.launchable
    old = [member.node.name for member in preflight.old if member.node is not None]
    if launchable is None or not old:
        return
    node = _complete(preflight, launchable)
    if node is None:
        said = f"cpu and memory of a new node are not known (types {', '.join(launchable.types) or 'unknown'})"
        fix = "put instance-types.json into the snapshot: pods are not tried on the new template without it"
        yield warning(Code.TEMPLATE_INCOMPLETE, f"group {preflight.group.name}", said, fix)
        return
    snapshot = preflight.world
    world = World(specs_by_free_capacity(snapshot), snapshot.pod_specs, daemons=snapshot.daemon_specs)
    # Remove old nodes one after another: all of them at once as empty domains would refuse pods that can start.
    same = attempt(world, old, templates=_templates(preflight, launchable, node, unlimited=False), deleted=True)
    if same.complete:
        return
    more = attempt(world, old, templates=_templates(preflight, launchable, node, unlimited=True), deleted=True)
    yield from _nowhere(more)
    if len(more.unplaced) < len(same.unplaced):
        yield _more_nodes(preflight, more, len(old))


def _complete(preflight: Preflight, launchable: Launchable) -> NodeSpec | None:
    """Return the template's node. Where its size is not known, old nodes of the same types show it; else None."""
    node = launchable.template.node
    if not _sized(node):
        world, types = preflight.world, set(launchable.types)
        alike = {one.name: world.type_of(one) for one in world.nodes if world.type_of(one) in types}
        sizes = [spec.allocatable for spec in world.node_specs if spec.name in alike]
        if not types or types - {*alike.values()}:
            return None
        least = {name: min(size.get(name, 0) for size in sizes) for name in sizes[0]}
        node = replace(node, allocatable={**node.allocatable, **least})
    return node if _sized(node) else None


def _sized(node: NodeSpec) -> bool:
    return all(node.allocatable.get(name) for name in (CPU, MEMORY))


def _templates(
    preflight: Preflight, launchable: Launchable, node: NodeSpec, *, unlimited: bool
) -> tuple[NodeTemplate, ...]:
    """Return one for each zone, with as many new nodes as it has old ones; a zone with old nodes has a subnet, listed
    or not.
    """
    zones = Counter(zone_of(preflight.world, member) for member in preflight.old)
    offerings = {zone: Offering(zone=zone) for zone in sorted(zones)}
    offerings |= {offering.zone: offering for offering in launchable.template.offerings}
    return tuple(
        replace(
            launchable.template,
            name=f"{launchable.template.name}-{zone}",
            node=node,
            offerings=(offering,),
            most=None if unlimited else zones[zone],
        )
        for zone, offering in offerings.items()
    )


def _nowhere(packing: Packing) -> Iterator[Finding]:
    """Yield the pods of one cause together: a workload's pods share theirs."""
    by_cause: dict[str, list[str]] = {}
    for one in packing.unplaced:
        by_cause.setdefault(one.why, []).append(one.pod)
    for why, pods in sorted(by_cause.items(), key=lambda item: item[1]):
        also = f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
        said = f"no node could host it once the old nodes are gone{also}: {why}"
        fix = "change what the pod asks for, or the new template (instance types, labels, taints)"
        yield blocker(Code.PODS_FIT_NOWHERE, f"pod {pods[0]}", said, fix)


def _more_nodes(preflight: Preflight, packing: Packing, old: int) -> Finding:
    said = f"by first fit the pods need {len(packing.new_nodes)} new nodes, {old} old ones go"
    fix = "let Cluster Autoscaler or a larger desired size provide them, or choose a larger instance type"
    return warning(Code.MORE_NODES_NEEDED, f"group {preflight.group.name}", said, fix)
