"""Explanation of zone imbalances, in words with numbers: large nodes, pods bound by their volumes, zones without
addresses.

Decides nothing: it reads the contents of the zones. Source: Cast AI, "Understanding zone imbalances"."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from leeward.model.node import Node
from leeward.model.subnet import Subnet
from leeward.placement.restrictions import Restriction
from leeward.placement.scene import node_cores, zone_of
from leeward.placement.verdict import ZoneStanding, ZoneVerdict, cores, listed

LARGE = 2  # a node of at least twice the typical node's cores explains an imbalance
_SHOWN = 3  # names in one sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneFacts:
    """Contents of a zone. `nodes`: thousandths of a core by name; `bound`: pods (`namespace/name`) whose volumes
    bind them there.
    """

    zone: str
    nodes: Mapping[str, int]
    bound: tuple[str, ...] = ()


def zone_facts(
    zones: Iterable[str],
    nodes: Iterable[Node],
    volumes_of_pods: Mapping[str, Sequence[Restriction]],
    type_cores: Mapping[str, int] | None = None,
) -> dict[str, ZoneFacts]:
    """Return the facts by zone. `volumes_of_pods`: the restrictions of its volumes by pod; a pod for which several
    zones are possible is not bound.
    """
    names = sorted(zones)
    held: dict[str, dict[str, int]] = {zone: {} for zone in names}
    for node in nodes:
        if zone_of(node) in held:
            held[zone_of(node)][node.name] = node_cores(node, type_cores)
    zone_of_pod = {pod: _only_zone(restrictions, names) for pod, restrictions in sorted(volumes_of_pods.items())}
    bound = {zone: tuple(pod for pod, only in zone_of_pod.items() if only == zone) for zone in names}
    return {zone: ZoneFacts(zone=zone, nodes=held[zone], bound=bound[zone]) for zone in names}


def _only_zone(restrictions: Sequence[Restriction], zones: Sequence[str]) -> str | None:
    """Return the only zone that the restrictions allow, None when there is none or more than one. A subnet without a
    name stands for each zone.
    """
    if not restrictions:
        return None
    open_to = [zone for zone in zones if all(one.allows(Subnet(id="", zone=zone)) for one in restrictions)]
    return open_to[0] if len(open_to) == 1 else None


def explain_zone(facts: ZoneFacts, typical: int) -> str:
    """Describe the contents of the zone; `typical`: the cluster's median node in thousandths of a core."""
    total = sum(facts.nodes.values())
    count = len(facts.nodes)
    parts = [f"{count} {'node' if count == 1 else 'nodes'} with {cores(total)}"]
    large = large_nodes(facts, typical)
    if large:
        shown = [f"{name} with {cores(facts.nodes[name])}" for name in large[:_SHOWN]]
        more = [f"{len(large) - _SHOWN} more"] if len(large) > _SHOWN else []
        parts.append(f"large: {listed([*shown, *more])} (a typical node has {cores(typical)})")
    if facts.bound:
        pods = "pod is" if len(facts.bound) == 1 else "pods are"
        parts.append(f"{len(facts.bound)} {pods} bound here by volumes")
    return ", ".join(parts)


def typical_node(facts: Iterable[ZoneFacts]) -> int:
    """Return the median node's thousandths of a core, 0 without nodes."""
    sizes = [size for zone in facts for size in zone.nodes.values()]
    return median_low(sizes) if sizes else 0


def large_nodes(facts: ZoneFacts, typical: int) -> list[str]:
    """Return the large nodes, the largest first, then by name."""
    large = [name for name, size in facts.nodes.items() if typical and size >= LARGE * typical]
    return sorted(large, key=lambda name: (-facts.nodes[name], name))


def imbalance(verdicts: Sequence[ZoneVerdict], facts: Mapping[str, ZoneFacts]) -> tuple[str, ...]:
    """Return sentences about the whole: how far apart the zones are, and the explanation. Empty when they are equal."""
    total = sum(verdict.millicores for verdict in verdicts)
    if not total or len({verdict.millicores for verdict in verdicts}) == 1:
        return ()
    most = max(sorted(verdicts, key=lambda one: one.zone), key=lambda one: one.millicores)
    least = min(sorted(verdicts, key=lambda one: one.zone), key=lambda one: one.millicores)
    share, even = 100 * most.millicores / total, 100 / len(verdicts)
    sentences = [
        f"{most.zone} holds {cores(most.millicores)} of {cores(total)} ({share:.0f} %; an even share is {even:.0f} %), "
        f"{least.zone} {cores(least.millicores)}."
    ]
    typical = typical_node(facts.values())
    for zone in sorted(facts):
        large = large_nodes(facts[zone], typical)
        if large:
            held = sum(facts[zone].nodes[name] for name in large)
            nodes = "node holds" if len(large) == 1 else "nodes hold"
            sentences.append(f"{zone}: {len(large)} large {nodes} {cores(held)}, so few nodes can be many cores.")
        if bound := len(facts[zone].bound):
            pods = "pod" if bound == 1 else "pods"
            sentences.append(f"{zone}: volumes bind {bound} {pods}, and what is packed beside them, to it.")
    sentences += [
        f"{one.zone}: left out for lack of addresses: {one.why}."
        for one in sorted(verdicts, key=lambda one: one.zone)
        if one.standing is ZoneStanding.NO_IPS
    ]
    return tuple(sentences)
