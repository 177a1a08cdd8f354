"""The fleet of `bench/fleet.yaml` as a simulated world: one group, its nodes full of Deployments, nothing fails.

The same file, seed and number of nodes give the same pods, budgets and places.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Self

import yaml

from leeward.policy.document import (
    ClusterPolicies,
    ClusterSettings,
    DrainPolicy,
    GroupSelector,
    NodePolicy,
    UpdatePolicy,
)
from local.cluster.objects import Obj
from local.cluster.settings import START_DELAY
from simulation import fleets
from simulation.fault_rates import Faults
from simulation.invariants import Checker
from simulation.plans import AutoscalerPlan
from simulation.rule import Violation
from simulation.view import WorldView
from simulation.world import World

FILE = Path(__file__).with_name("fleet.yaml")
GROUP = "app"
BOOTED = 0.6  # share of a boot until EC2 reports running; the rest until the node joins


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Values of the file; seconds. `unavailable`: as a policy writes it, `10%` or a number."""

    seed: int
    nodes: tuple[int, ...]
    zones: tuple[str, ...]
    addresses: int
    instance_type: str
    pods_per_node: int
    boot: int
    spread: int
    grace: int
    ready: int
    least: int
    most: int
    budgeted: float
    unavailable: tuple[str, ...]
    settle: int

    @classmethod
    def read(cls, file: Path = FILE) -> Self:
        """Read the file. Raises KeyError for a missing line."""
        raw = yaml.safe_load(file.read_text())
        return cls(
            seed=raw["seed"],
            nodes=tuple(raw["nodes"]),
            zones=tuple(raw["zones"]),
            addresses=raw["addresses"],
            instance_type=raw["instanceType"],
            pods_per_node=raw["podsPerNode"],
            boot=raw["boot"]["seconds"],
            spread=raw["boot"]["spread"],
            grace=raw["podGrace"],
            ready=raw["podReady"],
            least=raw["replicas"]["least"],
            most=raw["replicas"]["most"],
            budgeted=raw["budgeted"],
            unavailable=tuple(raw["maxUnavailable"]),
            settle=raw["settle"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchGroup:
    """Specification of the only group, a `simulation.aws.compute.Plan`."""

    size: int
    maximum: int
    zones: Sequence[str]
    instance_type: str
    selected: bool
    name: str = GROUP
    spot: bool = False
    capacity_rebalance: bool = False
    foreign_hook: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchFleet:
    """A `simulation.plans.FleetPlan` of one group and no autoscaler."""

    groups: tuple[BenchGroup, ...]
    workloads: tuple[Obj, ...]
    policies: ClusterPolicies
    cluster: str = fleets.CLUSTER
    autoscaler: AutoscalerPlan | None = None


def update_policy(unavailable: str, max_surge: int | None = None) -> UpdatePolicy:
    """Return the update policy of a number of nodes, or of a share of them."""
    if unavailable.endswith("%"):
        share = int(unavailable[:-1])
        return UpdatePolicy(max_unavailable=None, max_unavailable_percentage=share, max_surge=max_surge)
    return UpdatePolicy(max_unavailable=int(unavailable), max_surge=max_surge)


class Unchecked(Checker):
    """Invariants that are never checked: they are rules for Leeward's runs, which the reference need not keep, and it
    evicts thousands at one moment.
    """

    def after_event(self, _view: WorldView) -> list[Violation]:
        """Check nothing."""
        return []


def a_world(figures: Figures, nodes: int, unavailable: str, *, ours: bool, max_surge: int | None = None) -> World:
    """Return a world without faults and arrivals. `ours`: a policy selects the group; else Leeward does not touch
    it.
    """
    policy = NodePolicy(
        name=GROUP,
        selector=GroupSelector(groups=(GROUP,)),
        drain=DrainPolicy(settle=timedelta(seconds=figures.settle)),
        update=update_policy(unavailable, max_surge),
    )
    group = BenchGroup(
        size=nodes,
        maximum=3 * nodes,  # neither side has to raise it
        zones=figures.zones,
        instance_type=figures.instance_type,
        selected=ours,
    )
    fleet = BenchFleet(
        groups=(group,),
        workloads=tuple(workloads_of(figures, nodes)),
        policies=ClusterPolicies(settings=ClusterSettings(name=fleets.CLUSTER), policies=(policy,) if ours else ()),
    )
    world = World(figures.seed, fleet, Faults.none(), ())
    if not ours:
        world.checker = Unchecked()
    world.system.balancers.groups.clear()  # the file has no load balancers, and the reference waits for none
    world.fleet.subnet_size = figures.addresses
    made = world.fleet.groups[GROUP]
    made.boots = (BOOTED * (figures.boot - figures.spread), BOOTED * (figures.boot + figures.spread))
    made.joins = ((1 - BOOTED) * (figures.boot - figures.spread), (1 - BOOTED) * (figures.boot + figures.spread))
    return world


def workloads_of(figures: Figures, nodes: int) -> Iterator[Obj]:
    """Return Deployments until every node has its pods; every second one has a budget, at random."""
    chance = Random(f"{figures.seed}/bench/{nodes}")
    left = nodes * figures.pods_per_node
    for number in range(left):
        replicas = min(chance.randint(figures.least, figures.most), left)
        if replicas == 0:
            return
        left -= replicas
        yield _deployment(f"web-{number}", replicas, figures)
        if chance.random() < figures.budgeted:
            yield _budget(f"web-{number}")


def _deployment(name: str, replicas: int, figures: Figures) -> Obj:
    container = {"name": "main", "image": name, "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}
    template: Mapping[str, Any] = {
        "metadata": {"labels": {"app": name}, "annotations": {START_DELAY: str(figures.ready)}},
        "spec": {"terminationGracePeriodSeconds": figures.grace, "containers": [container]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "replicas": replicas, "template": template},
    }


def _budget(name: str) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "maxUnavailable": 1},
    }
