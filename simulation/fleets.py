"""Generated clusters and their arrivals: groups, workloads with their budgets, policies, arrivals.

Everything comes out of the `Random` that it is given. It defines what exists and what arrives when; the world chooses
which instance or node an arrival meets, from `pick`, because the members at that moment are not known yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from random import Random

from leeward.policy.document import ClusterPolicies
from local.cluster.model import Cluster
from local.cluster.objects import Obj
from local.cluster.resources import BY_KIND
from simulation.fleet_policies import policies_of, with_surges, with_updates
from simulation.plans import AutoscalerPlan
from simulation.workloads import workloads

CLUSTER = "blue"
REGION = "us-east-1"
FEWEST_NODES, MOST_NODES = 1, 500
SIZES = ((0.9, 5, 60), (0.09, 61, 150), (0.01, 151, 500))  # frequency, from, to: large fleets take long
TYPES = ("m5.large", "m5.xlarge", "c5.xlarge", "r5.large", "m6g.large")
SLACK = (0, 1, 3, 10)  # between a group's size and its maximum: 0 refuses every launch


class ArrivalKind(StrEnum):
    """Kind of arrival in a cluster."""

    SPOT_WARNING = "spot_warning"
    REBALANCE = "rebalance"
    MAINTENANCE = "maintenance"
    SCALE_IN = "scale_in"
    SCALE_OUT = "scale_out"
    OPERATOR_CORDON = "operator_cordon"
    OPERATOR_DELETE_NODE = "operator_delete_node"
    OPERATOR_STOP_EXECUTION = "operator_stop_execution"
    OPERATOR_START_EXECUTION = "operator_start_execution"
    OPERATOR_DRAIN = "operator_drain"
    OPERATOR_RESIZE = "operator_resize"
    OPERATOR_DETACH = "operator_detach"
    NONSENSE = "nonsense"
    FOREIGN_TERMINATE = "foreign_terminate"
    UNHEALTHY = "unhealthy"
    SPOT_STORM = "spot_storm"
    REBALANCE_THEN_WARNING = "rebalance_then_warning"
    MAINTENANCE_MOVED = "maintenance_moved"
    ZONE_OUTAGE = "zone_outage"
    COLLISION = "collision"
    UPGRADE = "upgrade"
    UPGRADE_CONTROLLED = "upgrade_controlled"
    UPGRADE_STOPPED = "upgrade_stopped"
    DISRUPTION_STOPPED = "disruption_stopped"
    TEMPLATE_CHANGED = "template_changed"


WEIGHTS: Mapping[ArrivalKind, float] = {
    ArrivalKind.SPOT_WARNING: 22,
    ArrivalKind.REBALANCE: 16,
    ArrivalKind.MAINTENANCE: 6,
    ArrivalKind.SCALE_IN: 11,
    ArrivalKind.SCALE_OUT: 11,
    ArrivalKind.OPERATOR_CORDON: 6,
    ArrivalKind.OPERATOR_DELETE_NODE: 3,
    ArrivalKind.OPERATOR_STOP_EXECUTION: 5,
    ArrivalKind.OPERATOR_START_EXECUTION: 5,
    ArrivalKind.OPERATOR_DRAIN: 6,
    ArrivalKind.OPERATOR_RESIZE: 5,
    ArrivalKind.OPERATOR_DETACH: 3,
    ArrivalKind.NONSENSE: 8,
    ArrivalKind.FOREIGN_TERMINATE: 6,
    ArrivalKind.UNHEALTHY: 6,
    ArrivalKind.SPOT_STORM: 0.5,
    ArrivalKind.REBALANCE_THEN_WARNING: 4,
    ArrivalKind.MAINTENANCE_MOVED: 3,
    ArrivalKind.ZONE_OUTAGE: 0.5,  # a third of the fleet each
    ArrivalKind.COLLISION: 5,
}
OF_SPOT = frozenset(
    {
        ArrivalKind.SPOT_WARNING,
        ArrivalKind.REBALANCE,
        ArrivalKind.SPOT_STORM,
        ArrivalKind.REBALANCE_THEN_WARNING,
    }
)
IN_BURSTS = frozenset({ArrivalKind.SPOT_WARNING, ArrivalKind.REBALANCE, ArrivalKind.SCALE_IN})
BURST = 0.04  # chance that one of those brings others within seconds, as a zone short of capacity does


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPlan:
    """Lifecycle hook that the group's policy names as ours; a launch hook abandons an instance without an answer."""

    name: str
    timeout: int
    launching: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """Plan of one Auto Scaling group. `foreign_hook`: another team's terminate hook is on it. `selected`: by a policy.

    `boots` and `joins`: seconds, the least and the most, None as usual; `types`: of a mixed instances policy; `reuses`:
    what is scaled in returns to a warm pool; `launches_warm`: and comes back from there; `refuses`: what
    LaunchInstances says, empty where it launches.
    """

    name: str
    zones: tuple[str, ...]
    spot: bool
    size: int
    maximum: int
    capacity_rebalance: bool
    instance_type: str
    foreign_hook: bool
    selected: bool
    minimum: int = 0
    hooks: tuple[HookPlan, ...] = ()
    foreign_abandons: bool = False
    boots: tuple[float, float] | None = None
    joins: tuple[float, float] | None = None
    types: tuple[str, ...] = ()
    reuses: bool = False
    launches_warm: bool = False
    refuses: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Cluster as it is at the beginning. `workloads` are raw Kubernetes objects, in the order to create them."""

    cluster: str
    zones: tuple[str, ...]
    groups: tuple[GroupPlan, ...]
    workloads: tuple[Obj, ...]
    policies: ClusterPolicies
    autoscaler: AutoscalerPlan | None

    @property
    def nodes(self) -> int:
        """Number of nodes of all groups together."""
        return sum(group.size for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Event that hits the cluster `at_seconds` after the start; `pick` (0 to 2**31) chooses the instance or group."""

    at_seconds: float
    kind: ArrivalKind
    pick: int


def generate(random: Random, *, nodes: int | None = None) -> Fleet:
    """Generate a fleet of 1 to 500 nodes, mostly small, or of exactly `nodes`. Raises ValueError for any
    other number.
    """
    count = _size(random) if nodes is None else nodes
    if not FEWEST_NODES <= count <= MOST_NODES:
        raise ValueError(f"nodes: found {count}, expected {FEWEST_NODES} to {MOST_NODES}")
    zones = tuple(f"{REGION}{letter}" for letter in "abcdef"[: random.randint(3, 6)])
    groups = _groups(random, zones, count)
    sturdy = tuple(zone for zone, members in nodes_by_zone(groups).items() if members > 1)
    running, policies, autoscaler = workloads(random, count, sturdy), policies_of(random, CLUSTER), _autoscaler(random)
    return Fleet(
        cluster=CLUSTER,
        zones=zones,
        groups=groups,
        workloads=running,
        policies=with_surges(random, with_updates(random, policies)),
        autoscaler=autoscaler,
    )


def nodes_by_zone(groups: Sequence[GroupPlan]) -> dict[str, int]:
    """Return how many nodes each zone has at first: a group fills its zones in turn, so the first one has three at
    least.
    """
    found: dict[str, int] = {}
    for group in groups:
        for number in range(group.size):
            zone = group.zones[number % len(group.zones)]
            found[zone] = found.get(zone, 0) + 1
    return found


def create_workloads(fleet: Fleet, cluster: Cluster) -> None:
    """Put the fleet's workloads into a cluster model that has its nodes or will have."""
    for obj in fleet.workloads:
        cluster.create(BY_KIND[obj["kind"]].plural, obj)


def arrivals(fleet: Fleet, random: Random, hours: float, per_hour: float) -> tuple[Arrival, ...]:
    """Return the arrivals in `hours`, about `per_hour` in each, in the order of time; a burst counts as
    what is in it.
    """
    weights = {kind: weight for kind, weight in WEIGHTS.items() if kind not in OF_SPOT or _has_spot(fleet)}
    end, now, found = hours * 3600, 0.0, list[Arrival]()
    while per_hour > 0:
        kind = random.choices(tuple(weights), tuple(weights.values()))[0]
        size = random.randint(2, 8) if kind in IN_BURSTS and random.random() < BURST else 1
        now += random.expovariate(per_hour / 3600 / size)
        if now >= end:
            break
        for _ in range(size):
            at = now if size == 1 else now + random.uniform(0, 2)
            if at < end:
                found.append(Arrival(at_seconds=round(at, 3), kind=kind, pick=random.getrandbits(31)))
    return tuple(sorted(found, key=lambda arrival: arrival.at_seconds))


def upgrades(random: Random, hours: float, per_hour: float) -> tuple[Arrival, ...]:
    """Return the upgrades that are begun, about `per_hour` in each, and what their operators do to them in between."""
    found, now = list[Arrival](), 0.0
    while per_hour > 0:
        now += random.expovariate(per_hour / 3600)
        if now >= hours * 3600:
            break
        found.append(Arrival(at_seconds=round(now, 3), kind=ArrivalKind.UPGRADE, pick=random.getrandbits(31)))
        for kind, often in ((ArrivalKind.UPGRADE_CONTROLLED, 0.7), (ArrivalKind.UPGRADE_STOPPED, 0.3)):
            if random.random() < often:
                at = now + random.uniform(20, 1500)
                if at < hours * 3600:
                    found.append(Arrival(at_seconds=round(at, 3), kind=kind, pick=random.getrandbits(31)))
    return tuple(sorted(found, key=lambda arrival: arrival.at_seconds))


def _has_spot(fleet: Fleet) -> bool:
    return any(group.spot for group in fleet.groups)


def _size(random: Random) -> int:
    _, fewest, most = random.choices(SIZES, [often for often, _, _ in SIZES])[0]
    return random.randint(fewest, most)


def _groups(random: Random, zones: Sequence[str], nodes: int) -> tuple[GroupPlan, ...]:
    """Return the groups: at least one of spot, one on demand and one that no policy selects; the foreign hook is on
    that one and may be on others.
    """
    names = ["app-spot", "app", "legacy"]
    names += ["batch-spot", "batch", "app-zonal", "app-spot-2"][: random.randint(0, max(min(4, nodes // 5 - 1), 0))]
    names = names[: max(nodes, 1)]
    sizes = _split(random, nodes, len(names))
    return tuple(_group(random, name, size, zones) for name, size in zip(names, sizes, strict=True))


def _group(random: Random, name: str, size: int, zones: Sequence[str]) -> GroupPlan:
    spot, selected = "spot" in name, name != "legacy"
    own = (random.choice(zones),) if name == "app-zonal" else tuple(zones)
    return GroupPlan(
        name=name,
        zones=own,
        spot=spot,
        size=size,
        maximum=size + random.choice(SLACK),
        capacity_rebalance=spot and random.random() < 0.3,
        instance_type=random.choice(TYPES),
        foreign_hook=not selected or random.random() < 0.2,
        selected=selected,
    )


def _split(random: Random, total: int, parts: int) -> list[int]:
    """Split `total` into parts of at least one each."""
    cuts = [0, *sorted(random.sample(range(1, total), parts - 1)), total]
    return [after - before for before, after in pairwise(cuts)]


def _autoscaler(random: Random) -> AutoscalerPlan | None:
    """Return an autoscaler for half of the clusters, most of them in more of a hurry than by default: hours see more of
    it.
    """
    if random.random() < 0.5:
        return None
    hurry = random.choice((1, 3, 6))
    return AutoscalerPlan(
        unneeded_seconds=600 / hurry,
        after_growth_seconds=600 / hurry,
        recheck_seconds=300 / hurry,
        provision_seconds=900 / hurry,
        least=random.choice((0.5, 0.7, 0.9)),
    )
