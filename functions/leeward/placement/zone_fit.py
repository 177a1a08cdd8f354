"""Zones in which the pods of a leaving node may run on a new node: the scheduler is asked once for each zone.

Decides on rules about zones alone. The other nodes take no pods here: what is free on them is not read, and only the
new node is of interest."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from leeward.model import well_known
from leeward.placement.zone_choice import ZoneRefusals
from leeward.scheduling.nodes import HOSTNAME_LABEL, NodeSpec, NodeTemplate, TemplateOffering
from leeward.scheduling.packing import attempt
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World

_OF_PLACE = frozenset(
    {
        *well_known.ZONE_KEYS,
        well_known.ZONE_ID_LABEL,
        well_known.SUBNET_LABEL,
        well_known.CAST_SUBNET_LABEL,
        HOSTNAME_LABEL,
    }
)


def zone_refusals(
    node: str,
    tied: Collection[str],
    zones: Mapping[str, str],
    nodes: Iterable[NodeSpec],
    pods: Iterable[PodSpec],
    in_time: Callable[[], bool],
) -> ZoneRefusals | None:
    """Return which of the `tied` pods (`namespace/name`) may not run on a new node beside theirs, by zone. `zones`: the
    zone's id by its name, empty where unknown: a node of the zone shows it, else nothing is said there of pods that
    compare ids. None: the time ended first.

    The new node is like the leaving one but for its place, and without taints: its pods tolerate those that last.
    Raises ObjectGoneError where the node is not among `nodes`.
    """
    nodes, pods = list(nodes), list(pods)
    ids = {one.labels.get(well_known.ZONE_LABEL, ""): one.labels.get(well_known.ZONE_ID_LABEL, "") for one in nodes}
    by_id = frozenset(pod.key for pod in pods if well_known.ZONE_ID_LABEL in _keys(pod))
    like = next((one for one in nodes if one.name == node), None)
    closed = [one if one.name == node else replace(one, closed="node(s) were not asked") for one in nodes]
    whole = World(closed, pods)
    worlds = {"draining": (whole, False), "gone": (whole, True)}
    if any(pod.needs.near for pod in pods if pod.key in tied):  # the pod beside which one has to run may go elsewhere
        worlds["alone"] = (World(closed, [pod for pod in pods if pod.node != node or pod.key in tied]), True)
    found: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in worlds}
    for zone, told in sorted(zones.items()):
        zone_id = told or ids.get(zone, "")
        judged = frozenset(tied) - (frozenset() if zone_id else by_id)
        for name, (world, deleted) in worlds.items():
            if not in_time():
                return None
            world.in_time = in_time
            templates = [_template(like, zone, zone_id)] if like is not None else []
            packing = attempt(world, [node], templates=templates, at_most=1, deleted=deleted)
            if packing.timed_out:
                return None
            if refused := sorted(one.pod for one in packing.unplaced if one.pod in judged):
                found[name][zone] = tuple(refused)
    return ZoneRefusals(**found)


def _keys(pod: PodSpec) -> frozenset[str]:
    """Return the topology keys and node labels that the pod's required rules compare."""
    spread = {rule.key for rule in pod.needs.spread if rule.required}
    return pod.needs.nodes.keys.union(spread, (term.key for term in (*pod.needs.near, *pod.needs.away)))


def _template(like: NodeSpec, zone: str, zone_id: str) -> NodeTemplate:
    labels = {key: value for key, value in like.labels.items() if key not in _OF_PLACE}
    node = replace(like, name=zone, labels=labels, taints=(), unschedulable=False, closed="")
    place = {well_known.ZONE_KEYS[1]: zone, **({well_known.ZONE_ID_LABEL: zone_id} if zone_id else {})}
    return NodeTemplate(name=zone, node=node, offerings=(TemplateOffering(zone=zone, labels=place),), max_nodes=1)
