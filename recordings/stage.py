"""Cluster that is recorded: a small fleet in a simulated world, with the deployed product, in virtual time.

A recorded command has the world's ports. Their clock shows its time, and a command that sleeps lets the world advance,
so that the same recording is made on every machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from leeward.policy.document import (
    ClusterPolicies,
    ClusterSettings,
    DrainPolicy,
    GroupSelector,
    NodePolicy,
    UpdatePolicy,
)
from leeward.ports import Ports
from local.cluster.settings import START_DELAY
from simulation.aws.compute import SimInstance
from simulation.fault_rates import Faults
from simulation.plans import AutoscalerPlan
from simulation.world import World

CLUSTER = "shop"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
READY_AFTER = "22"  # seconds from a pod's start: budgets are felt
WARM_UP = 600.0  # seconds until all nodes are Ready and the hooks are there


@dataclass(frozen=True, slots=True, kw_only=True)
class StageGroup:
    """One Auto Scaling group, `simulation.aws.compute.Plan`."""

    name: str
    spot: bool
    size: int
    instance_type: str
    maximum: int = 20
    zones: tuple[str, ...] = ZONES
    capacity_rebalance: bool = False
    foreign_hook: bool = False
    selected: bool = True
    boots: tuple[float, float] = (25.0, 30.0)
    joins: tuple[float, float] = (12.0, 15.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFleet:
    """Cluster with its groups and workloads, `simulation.plans.FleetPlan`."""

    groups: tuple[StageGroup, ...]
    workloads: tuple[dict[str, Any], ...]
    policies: ClusterPolicies
    cluster: str = CLUSTER
    autoscaler: AutoscalerPlan | None = None


class Stage(World):
    """World without faults and arrivals: what happens is what the recording's command or script does."""

    def __init__(self, fleet: StageFleet) -> None:
        super().__init__(1, fleet, Faults.none(), ())
        self._named = 0
        self.fleet.named = self._name
        self._populate()
        self.timeline.afterwards = self._after
        self.timeline.run_until(self.timeline.now() + WARM_UP)

    def members(self, group: str) -> Sequence[SimInstance]:
        """Return the instances of the group that are in service, in the order of their launch."""
        return [one for one in self.fleet.groups[group].members.values() if not one.leaving]

    def warn(self, seconds: float, member: SimInstance) -> None:
        """Give a spot instance its two minutes' notice, so many seconds from now."""
        self.timeline.after(seconds, lambda: self.fleet.notices.spot_warning(member), "script")

    def _name(self, member: SimInstance) -> str:
        """Return the name of a node as EC2 forms it, an address of its zone's subnet."""
        self._named += 1
        return f"ip-10-0-{16 * (1 + ZONES.index(member.zone))}-{20 + 7 * self._named % 200}"


class StageClock:
    """Clock of the recorded command. `slept` is called before the world advances; the command is interrupted, as by
    Ctrl-C, after `limit` seconds of virtual time.
    """

    def __init__(self, stage: Stage, slept: Callable[[], None], limit: float) -> None:
        self._stage, self._slept = stage, slept
        self._end = stage.timeline.now() + limit

    def now(self) -> datetime:
        """Return the time of the world."""
        return self._stage.timeline.instant().replace(microsecond=0)

    def sleep(self, seconds: float) -> None:
        """Let the world advance. Raises KeyboardInterrupt at the end of the recording."""
        self._slept()
        timeline = self._stage.timeline
        if timeline.now() >= self._end:
            raise KeyboardInterrupt
        timeline.run_until(timeline.now() + seconds)


def shop(web: int = 3, spot: int = 4, workers: int = 5) -> Stage:
    """Return the cluster of the recordings, with so many nodes of `web` and `web-spot` and pods of `worker`."""
    groups = (
        StageGroup(name="web", spot=False, size=web, instance_type="m5.large"),
        StageGroup(name="web-spot", spot=True, size=spot, instance_type="m5.xlarge"),
        StageGroup(name="batch", spot=True, size=2, instance_type="c5.xlarge"),
    )
    drain = DrainPolicy(settle=timedelta(seconds=20), timeout=timedelta(minutes=15))
    policy = NodePolicy(
        name="all", selector=GroupSelector(groups=("*",)), drain=drain, update=UpdatePolicy(max_unavailable=1)
    )
    workloads = (
        *_deployment("cart", 6, cpu="400m"),
        *_deployment("search", 8, cpu="500m"),
        *_deployment("checkout", 4, cpu="300m"),
        *_deployment("worker", workers, cpu="900m"),
    )
    policies = ClusterPolicies(settings=ClusterSettings(name=CLUSTER), policies=(policy,))
    return Stage(StageFleet(groups=groups, workloads=workloads, policies=policies))


def _deployment(name: str, replicas: int, cpu: str) -> tuple[dict[str, Any], ...]:
    """Return a Deployment and its budget, which allows one pod to be missing."""
    selector = {"matchLabels": {"app": name}}
    requests = {"cpu": cpu, "memory": "700Mi"}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": {START_DELAY: READY_AFTER}},
        "spec": {
            "terminationGracePeriodSeconds": 10,
            "containers": [{"name": "app", "image": name, "resources": {"requests": requests}}],
        },
    }
    metadata = {"name": name, "namespace": "shop"}
    return (
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": replicas, "selector": selector, "template": template},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"selector": selector, "maxUnavailable": 1},
        },
    )


def ports_with(stage: Stage, clock: StageClock) -> Ports:
    """Return the stage's ports with the clock of the recorded command."""
    return replace(stage.system.ports, clock=clock)
