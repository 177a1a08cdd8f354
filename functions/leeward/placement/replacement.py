"""Placement of the replacement of a leaving node: its group's zones in order, with its demand there.

Decides on facts that the caller has gathered; unknown facts are left out, and the caller reports them. Sources: Cast
AI, "How zone allocation works" and "Subnet usage calculation" (docs/designs/placement.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from leeward.model.facts import ClusterFacts, FactKind
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.instance_type import InstanceType
from leeward.model.pod import Pod
from leeward.model.subnet import IpReservation, Pool, Subnet
from leeward.model.termination import LaunchOption, LaunchPlan
from leeward.placement.accounting import Accounting, Demand, accounting_of, demand_of
from leeward.placement.cni import CniSettings, node_ips
from leeward.placement.restrictions import Restriction, by_claim, not_in_zones, of_claimed, of_pod, only_zones
from leeward.placement.scene import Chance, PlacementScene
from leeward.placement.zone_choice import NO_REFUSALS, ZoneRefusals, explained, in_even_zones_first, refusing_last
from leeward.placement.zones import choose_in_zone, judge_zones, place


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingInstance:
    """Node to be terminated. `millicores`: its capacity, 0 when unknown. `pods` None: its API did not answer, the node
    is then counted as a full one. `volumes`: raw PersistentVolumes, needed only where a pod has claims.
    """

    instance: str
    zone: str
    subnet: str
    type: str
    millicores: int = 0
    pods: tuple[Pod, ...] | None = None
    volumes: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFacts:
    """Facts to decide on. `subnets` of the group, with their free addresses; `newcomers`: instances that have been
    launched and whose Node is not Ready yet; `promises`: of other replacements, placed just now; `short`: spot capacity
    that EC2 is reclaiming; `cni`: the policy's overrides of the CNI's settings; `even`: zones in which a launch gives
    AZRebalance nothing to do; `refusals`: zones in which the pods that move may not run.
    """

    facts: ClusterFacts
    subnets: tuple[Subnet, ...]
    cluster: str = ""
    newcomers: tuple[Instance, ...] = ()
    promises: tuple[IpReservation, ...] = ()
    short: frozenset[Pool] = frozenset()
    cni: Mapping[str, str] = field(default_factory=dict)
    even: frozenset[str] = frozenset()
    refusals: ZoneRefusals = NO_REFUSALS


def plan_launch(group: Group, leaving: LeavingInstance, known: PlacementFacts, chance: Chance) -> LaunchPlan:
    """Return the group's zones in which the replacement may land, best first, one subnet each; `nowhere` when there is
    none.

    While the cores of each zone have not been recorded, the node's own zone comes first.
    """
    if not known.subnets and (shifted := known.facts.shifts.reason(leaving.zone)):
        return LaunchPlan(options=(), nowhere=f"nothing is known of the group's subnets, and its zone: {shifted}")
    if not known.subnets:
        why = "nothing is known of the group's subnets: the same subnet again"
        return LaunchPlan(options=(LaunchOption(subnet=leaving.subnet, zone=leaving.zone, why=why),))
    scene = replacement_scene(group, leaving, known)
    options: tuple[LaunchOption, ...] = ()
    if FactKind.NODES not in known.facts.synced:
        home = only_zones("the zone of the node that leaves, as long as no cores are counted", [leaving.zone])
        options = _options(replace(scene, restrictions=(*scene.restrictions, home)), leaving, chance)
    offered = {option.zone for option in options}
    options += tuple(option for option in _options(scene, leaving, chance) if option.zone not in offered)
    nowhere = "" if options else place(scene, 1, chance).sentence
    return LaunchPlan(options=_in_order(options, group, leaving, known), nowhere=nowhere)


def promise_of(
    option: LaunchOption, group: Group, leaving: LeavingInstance, known: PlacementFacts, now: datetime
) -> IpReservation:
    """Return the demand of the option, and the capacity that the leaving node frees, for other decisions to read."""
    return IpReservation(
        at=now,
        left=leaving.zone,
        millicores=_own_cores(leaving, known.facts),
        zone=option.zone,
        subnet=option.subnet,
        ips=option.ips,
        taken=_demand(group, leaving, known).millicores,
    )


def replacement_scene(group: Group, leaving: LeavingInstance, known: PlacementFacts) -> PlacementScene:
    """Return the scene: cores without the leaving node's, addresses without those that newcomers have still to take."""
    demand = _demand(group, leaving, known)
    return PlacementScene(
        subnets=known.subnets,
        demand=demand,
        cores=_cores(leaving, known),
        restrictions=(*not_in_zones(known.facts.shifts), *_restrictions(leaving)),
        promised=_promised(known, demand),
        closed=known.facts.closed,
    )


def _options(scene: PlacementScene, leaving: LeavingInstance, chance: Chance) -> tuple[LaunchOption, ...]:
    verdicts = judge_zones(scene, chance)
    home = next((verdict for verdict in verdicts if verdict.zone == leaving.zone and not verdict.usable), None)
    found: list[LaunchOption] = []
    for verdict in verdicts:
        if verdict.usable:
            choice = choose_in_zone(scene, verdict, chance)
            why = choice.why if home is None else f"{choice.why}; {home.zone}: {home.why}"
            found.append(LaunchOption(subnet=choice.subnet, zone=choice.zone, why=why, ips=choice.ips))
    return tuple(found)


def _in_order(
    options: tuple[LaunchOption, ...], group: Group, leaving: LeavingInstance, known: PlacementFacts
) -> tuple[LaunchOption, ...]:
    """Return the options, best first. A later step outweighs those before it: first of all the pods have to run."""
    options = _short_last(options, group, leaving, known)
    options = in_even_zones_first(options, known.even)
    options = refusing_last(options, known.refusals.alone)
    options = refusing_last(options, known.refusals.draining)
    options = tuple(sorted(options, key=lambda option: option.zone in known.facts.closed))
    return explained(refusing_last(options, known.refusals.gone), known.refusals)


def _short_last(
    options: tuple[LaunchOption, ...], group: Group, leaving: LeavingInstance, known: PlacementFacts
) -> tuple[LaunchOption, ...]:
    """Move zones in which EC2 is reclaiming spot capacity that the group may get behind all others: the group's own
    strategy chooses the type, so that one short type is enough. Where every zone is short they keep their order.
    """
    template = known.facts.templates.get(group.name)
    if template is not None and template.capacity == "on-demand":
        return options
    types = set(_type_names(group, leaving, known))
    short = {pool.zone: pool.instance_type for pool in sorted(known.short, key=str) if pool.instance_type in types}
    well = tuple(option for option in options if option.zone not in short)
    if not well or len(well) == len(options):
        return options
    why = ", ".join(f"{short[zone]} in {zone}" for zone in dict.fromkeys(o.zone for o in options if o.zone in short))
    reclaimed = tuple(replace(option, why=f"{option.why}; EC2 is taking back spot capacity: {why}") for option in well)
    return reclaimed + tuple(option for option in options if option.zone in short)


def _type_names(group: Group, leaving: LeavingInstance, known: PlacementFacts) -> tuple[str, ...]:
    """Return the types that the group may launch: those of its template, else its overrides, else its instances."""
    templates = known.facts.templates
    types = templates[group.name].types if group.name in templates else ()
    return types or group.override_types or tuple(sorted({*group.running_types, leaving.type} - {""}))


def _demand(group: Group, leaving: LeavingInstance, known: PlacementFacts) -> Demand:
    """Return the demand of any type that the group may launch."""
    facts = known.facts
    names = _type_names(group, leaving, known)
    types = [facts.types.get(name, InstanceType(name=name, vcpus=0, memory_mib=0)) for name in names]
    settings = CniSettings.from_variables({**(facts.cni or {}), **known.cni})
    accounting = accounting_of(settings, known.cluster, (*facts.subnets, *known.subnets), known.subnets)
    if facts.cni is None and FactKind.CNI in facts.synced:
        accounting = Accounting(on=False, why="kube-system/aws-node is not there")
    pods = _pods(leaving, types, settings)
    return demand_of(accounting, settings, types, pods)


def _pods(leaving: LeavingInstance, types: Sequence[InstanceType], settings: CniSettings) -> int:
    """Return the number of pods that need an address; for a node whose pods are unknown, as many as it can hold."""
    if leaving.pods is not None:
        return sum(not pod.finished and not pod.host_network for pod in leaving.pods)
    counted = [kind for kind in types if kind.max_enis > 0 and kind.ips_per_eni > 1]
    return max((node_ips(settings, kind, 0).max_pods for kind in counted), default=0)


def _cores(leaving: LeavingInstance, known: PlacementFacts) -> dict[str, int]:
    """Return the cores by zone, with newcomers that were launched since the nodes were counted."""
    facts = known.facts
    found = {subnet.zone: 0 for subnet in known.subnets}
    found.update((zone, amount) for zone, amount in facts.cores.items() if zone in found)
    leave = [(leaving.zone, _own_cores(leaving, facts)), *((one.left, one.millicores) for one in known.promises)]
    for zone, amount in leave:
        if zone in found:
            found[zone] = max(found[zone] - amount, 0)
    for promise in _unseen(known):
        if promise.zone in found:
            found[promise.zone] += promise.taken
    counted = facts.synced.get(FactKind.NODES)
    for newcomer in known.newcomers:
        if counted is not None and newcomer.launched >= counted and newcomer.zone in found:
            found[newcomer.zone] += _type_cores(newcomer.type, facts)
    return found


def _own_cores(leaving: LeavingInstance, facts: ClusterFacts) -> int:
    return leaving.millicores or _type_cores(leaving.type, facts)


def _unseen(known: PlacementFacts) -> list[IpReservation]:
    """Return promises whose instance is not among the newcomers: newcomers are counted themselves."""
    seen = {newcomer.id for newcomer in known.newcomers}
    return [promise for promise in known.promises if promise.launched not in seen]


def _type_cores(name: str, facts: ClusterFacts) -> int:
    return facts.types[name].vcpus * 1000 if name in facts.types else 0


def _promised(known: PlacementFacts, demand: Demand) -> dict[str, int]:
    """Return the promised addresses by subnet: each newcomer takes as many as the node that is placed now, less those
    that EC2 counts as taken already.
    """
    found: dict[str, int] = {}
    for promise in _unseen(known):
        found[promise.subnet] = found.get(promise.subnet, 0) + promise.ips
    for newcomer in known.newcomers:
        more = max(demand.ips - max(newcomer.ips, 1), 0)
        if more:
            found[newcomer.subnet] = found.get(newcomer.subnet, 0) + more
    return found


def _restrictions(leaving: LeavingInstance) -> tuple[Restriction, ...]:
    """Return the restrictions of the pods that have to move to another node. The node affinity of a pod beyond the
    limits of planning is not read: the launch must not wait for its terms.
    """
    found: list[Restriction] = []
    volumes = by_claim(leaving.volumes)
    for pod in leaving_pods(leaving.pods or ()):
        if not pod.beyond_limit:
            terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": pod.node_terms}}
            found += of_pod(pod.key, {"nodeSelector": pod.node_selector, "affinity": {"nodeAffinity": terms}})
        found += of_claimed(pod, volumes)
    return tuple(found)


def leaving_pods(pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """Return the pods that do not simply end with the node."""
    return tuple(pod for pod in pods if not (pod.finished or pod.mirror or pod.of_daemon_set))
