"""Inputs read before a replacement is placed: the facts of fn sync, free addresses, the node's pods, newcomers.

Never raises: unavailable inputs are omitted and listed in `doubts`, because a node that EC2 takes in two minutes does
not wait for a fact."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from leeward.errors import LeewardError
from leeward.model.facts import ClusterFacts, FactKind
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.lifecycle import PRESENT, LifecycleRole, role_of
from leeward.model.node import Node
from leeward.model.subnet import Subnet
from leeward.model.zonal_shift import NOT_SHIFTED, ZonalShifts
from leeward.placement.replacement import Known, Leaving
from leeward.placement.zone_choice import even_zones
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.compute import Network
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Catalog
from leeward.retry import retry
from leeward.termination.situation import Situation, find_node

JOINS_WITHIN = timedelta(minutes=15)  # an instance that is not a Ready node by then never takes its addresses
NEEDED = (FactKind.SUBNETS, FactKind.INSTANCE_TYPES, FactKind.TEMPLATES, FactKind.NODES, FactKind.CNI)

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class PlacementInputs:
    """Inputs of a placement. `node` None: it does not exist, or could not be read; `doubts`: inputs that are old or
    missing, one sentence each.

    `silent`: the cluster's API did not answer, and is not called again in this step.
    """

    leaving: Leaving
    known: Known
    node: Node | None = None
    doubts: list[str] = field(default_factory=list)
    silent: bool = False


def load_inputs(situation: Situation, group: Group, ports: Ports) -> PlacementInputs:
    """Read the inputs: one read of the table, one DescribeSubnets, two or three calls of the cluster's API, and one
    DescribeInstances if members have been launched that are not Ready yet.
    """
    subject = situation.record.subject
    leaving = Leaving(instance=subject.instance, zone=subject.zone, subnet=subject.subnet, type=subject.instance_type)
    inputs = PlacementInputs(leaving=leaving, known=Known(facts=ClusterFacts(), subnets=()))
    facts = _facts(subject.cluster, inputs, ports.clock, ports.catalog)
    inputs.known = Known(
        facts=facts,
        cluster=subject.cluster,
        subnets=_subnets(group, facts, inputs, ports.network),
        newcomers=_newcomers(group, subject.instance, facts, inputs, ports),
        cni=situation.policy.cni,
        even=even_zones(group, subject.instance),
    )
    _ask_the_cluster(situation, inputs, ports.clusters)
    return inputs


def _facts(cluster: str, inputs: PlacementInputs, clock: Clock, catalog: Catalog) -> ClusterFacts:
    sheets = _try(lambda: catalog.read(cluster), "the facts of fn sync", inputs)
    facts = ClusterFacts.from_sheets(sheets or {})
    if sheets is None:
        facts = replace(facts, shifts=_shifts(cluster, inputs, clock, catalog))
    now = clock.now()
    for kind in facts.stale(now, NEEDED):
        minutes = int((now - facts.synced[kind]).total_seconds() // 60)
        inputs.doubts.append(f"{kind.value} were last synced {minutes} min ago")
    missing = facts.missing(NEEDED) if sheets is not None else ()
    if missing:
        inputs.doubts.append(f"never synced: {', '.join(kind.value for kind in missing)}")
    return facts


def _shifts(cluster: str, inputs: PlacementInputs, clock: Clock, catalog: Catalog) -> ZonalShifts:
    """Return the zonal shifts alone, in more than one try: a launch into a shifted zone is worse than a late one."""
    what = "the zonal shifts"
    return _try(lambda: retry(lambda: catalog.zonal_shifts(cluster), clock), what, inputs) or NOT_SHIFTED


def _subnets(group: Group, facts: ClusterFacts, inputs: PlacementInputs, network: Network) -> tuple[Subnet, ...]:
    """Return the group's subnets with the addresses that are free now, else as fn sync read them."""
    live = _try(lambda: network.subnets(group.subnets), "free addresses", inputs) if group.subnets else {}
    known = live or {subnet.id: subnet for subnet in facts.subnets}
    return tuple(known[name] for name in group.subnets if name in known)


def _newcomers(
    group: Group, leaving: str, facts: ClusterFacts, inputs: PlacementInputs, ports: Ports
) -> tuple[Instance, ...]:
    """Return the members that were launched and are no Ready nodes yet. Without counted nodes, return only those that
    still boot.
    """
    counted = FactKind.NODES in facts.synced
    names = [
        member.id
        for member in group.instances
        if member.id != leaving
        and member.id not in facts.ready
        and role_of(member.lifecycle) in (PRESENT if counted else {LifecycleRole.LAUNCHING})
    ]
    instances = (
        _try(lambda: ports.instances.describe(names), "instances that are not Ready yet", inputs) if names else {}
    )
    since = ports.clock.now() - JOINS_WITHIN
    fresh = (one for one in (instances or {}).values() if not one.ended and one.launched >= since)
    return tuple(sorted(fresh, key=lambda one: one.id))


def _ask_the_cluster(situation: Situation, inputs: PlacementInputs, clusters: Clusters) -> None:
    """Read the node and its pods; the volumes only if one of its pods has a claim."""
    kubernetes = clusters.kubernetes(situation.record.subject.cluster)
    try:
        node = find_node(situation.record, kubernetes)
        pods = tuple(kubernetes.pods_on(node.name)) if node else ()
    except LeewardError as error:
        inputs.silent = True
        inputs.doubts.append(f"the node is taken for a full one, its pods are not known: {error}")
        return
    claimed = any(pod.claims for pod in pods)
    volumes = _try(kubernetes.volumes, "the zones of the pods' volumes", inputs) if claimed else ()
    inputs.node = node
    millicores = node.cpu if node else 0
    inputs.leaving = replace(inputs.leaving, millicores=millicores, pods=pods, volumes=tuple(volumes or ()))


def _try(ask: Callable[[], T], what: str, inputs: PlacementInputs) -> T | None:
    try:
        return ask()
    except LeewardError as error:
        inputs.doubts.append(f"{what} could not be had: {error}")
        return None
