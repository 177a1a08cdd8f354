"""Worlds of `bench calls`: the events of each and the period in which its calls are counted. Nothing fails."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from bench.calls_count import Counts, watch
from bench.upgrade_fleet import BenchFleet, BenchGroup, Figures, a_world
from leeward.model.termination import Outcome, Status
from leeward.policy.document import (
    Budget,
    ClusterPolicies,
    ClusterSettings,
    DisruptionPolicy,
    DrainPolicy,
    GroupSelector,
    NodePolicy,
)
from leeward.workflow.executions import execution_name
from simulation import fleets
from simulation.aws.compute import IN_SERVICE
from simulation.definitions import NODE_GROUP_UPGRADE
from simulation.fault_rates import Faults
from simulation.world import WARM_UP, World

GROUP = "web"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
SETTLE = timedelta(seconds=60)
SLOW = 60  # seconds that one pod of each node needs to stop: the drain
QUICK = 10
TEAMS = ("shop", "blog", "jobs")  # namespaces
PODS_A_TEAM = 3  # of each node, in addition to the slow one
LOOK_EVERY = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """World with the calls counted in it: for `nodes` terminated nodes, or for an hour where it is None."""

    name: str
    nodes: int | None
    seconds: float
    counts: Counts


def spot_warning() -> Scene:
    """Warn one spot instance; our hook guards the group, so the instance is terminated before EC2 takes it."""
    return _one("lone spot warning", spot=True, begin=lambda world: world.fleet.notices.spot_warning(_first(world)))


def scale_in() -> Scene:
    """Let the group's owner reduce its size by one; our hook holds the instance."""

    def shrink(world: World) -> None:
        group = world.fleet.groups[GROUP]
        world.fleet.resize(group, group.desired - 1)

    return _one("scale-in with our hook", spot=False, begin=shrink)


def upgrade(nodes: int = 100, unavailable: str = "10%") -> Scene:
    """Upgrade the fleet of bench/fleet.yaml."""
    world = a_world(Figures.read(), nodes, unavailable, ours=True)
    machine = world.system.machines[NODE_GROUP_UPGRADE]

    def begin(_: World) -> None:
        world.fleet.groups["app"].template.add("ami-00000000000000002")
        machine.begin(execution_name("app", 1), {"group": "app", "launchTemplateVersion": "2"})

    def over() -> bool:
        record = world.upgrades.get("app")
        return record is not None and record.ended is not None and not machine.executions

    return _run(f"upgrade of {nodes} nodes at {unavailable}", world, begin, over, hours=10.0, nodes=nodes)


def disruption(nodes: int = 10) -> Scene:
    """Let all nodes drift at once; the budget allows replacing all in one run."""
    rules = DisruptionPolicy(
        consolidation_policy="Never", budgets=(Budget(nodes=100, percent=True),), cooldown=timedelta(minutes=5)
    )
    world = _world(nodes, spot=False, disruption=rules)

    def begin(_: World) -> None:
        group = world.fleet.groups[GROUP]
        group.template.add("ami-00000000000000002")
        group.point_at("2")

    def over() -> bool:
        return len(_terminated(world)) >= nodes and not world.system.machine.executions

    return _run(f"disruption run of {nodes} nodes", world, begin, over, hours=4.0, nodes=nodes)


def idle_hour(nodes: int = 100) -> Scene:
    """Let an hour pass without events: nodes are checked for drift and expiry, and none is due."""
    rules = DisruptionPolicy(
        consolidation_policy="Never", expire_after=timedelta(days=30), budgets=(Budget(nodes=10, percent=True),)
    )
    world = _world(nodes, spot=False, disruption=rules)
    began = world.timeline.now() + WARM_UP
    scene = _run(
        f"idle hour of {nodes} nodes",
        world,
        lambda _: None,
        lambda: world.timeline.now() >= began + 3600,
        hours=2.0,
        nodes=0,
    )
    return Scene(name=scene.name, nodes=None, seconds=scene.seconds, counts=scene.counts)


def _one(name: str, *, spot: bool, begin: Callable[[World], None]) -> Scene:
    world = _world(3, spot=spot)
    return _run(name, world, begin, lambda: bool(_terminated(world)), hours=0.5, nodes=1)


def _terminated(world: World) -> list[str]:
    """Return the instances whose records are finally closed."""
    return [
        name
        for name, record in world.claims.records.items()
        if record.status is Status.CLOSED and record.outcome is Outcome.TERMINATED
    ]


def _run(
    name: str, world: World, begin: Callable[[World], None], over: Callable[[], bool], *, hours: float, nodes: int
) -> Scene:
    """Count from `begin` until `over` is true. Raises RuntimeError if that does not happen."""
    counts, scenes = watch(world), list[Scene]()

    def start() -> None:
        began, before = world.timeline.now(), counts.copy()
        begin(world)

        def look() -> None:
            if over() and not scenes:
                seconds = world.timeline.now() - began
                scenes.append(Scene(name=name, nodes=nodes, seconds=seconds, counts=counts.minus(before)))
                world.timeline.stopped = True

        world.timeline.every(LOOK_EVERY, look, "the benchmark looks")

    world.timeline.after(WARM_UP + 1, start, name)
    world.run(hours, converge=0)
    if not scenes or world.violations:
        story = [*map(str, world.violations), *list(world.story)[-20:]]
        raise RuntimeError("\n".join([f"{name}: not over after {hours} h", *story]))
    return scenes[0]


def _first(world: World) -> Any:
    members = world.fleet.groups[GROUP].members.values()
    return next(member for member in members if member.lifecycle == IN_SERVICE)


def _world(size: int, *, spot: bool, disruption: DisruptionPolicy | None = None) -> World:
    policy = NodePolicy(name=GROUP, selector=GroupSelector(groups=(GROUP,)), drain=DrainPolicy(settle=SETTLE))
    if disruption is not None:
        policy = replace(policy, disruption=disruption)
    group = BenchGroup(
        name=GROUP, size=size, maximum=3 * size, zones=ZONES, instance_type="m5.xlarge", selected=True, spot=spot
    )
    fleet = BenchFleet(
        groups=(group,),
        workloads=tuple(_workloads(size)),
        policies=ClusterPolicies(settings=ClusterSettings(name=fleets.CLUSTER), policies=(policy,)),
    )
    world = World(1, fleet, Faults.none(), (), disruption=disruption is not None)
    world.fleet.subnet_size = 4000
    world.system.balancers.groups.clear()
    return world


def _workloads(size: int) -> list[dict[str, Any]]:
    """Return a DaemonSet, a slow pod and a few quick ones a node, spread over the nodes; each team has a budget."""
    found = [_daemon_set(), _deployment("default", "slow", size, SLOW)]
    for team in TEAMS:
        found.append(_deployment(team, "app", PODS_A_TEAM * size, QUICK))
        spec = {"selector": {"matchLabels": {"app": f"{team}-app"}}, "maxUnavailable": "34%"}
        meta = {"name": "app", "namespace": team}
        found.append(
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec},
        )
    return found


def _deployment(namespace: str, name: str, replicas: int, grace: int) -> dict[str, Any]:
    labels: Mapping[str, str] = {"app": f"{namespace}-{name}"}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    term = {"podAffinityTerm": apart, "weight": 100}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": grace,
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}},
            "containers": [
                {"name": "main", "image": name, "resources": {"requests": {"cpu": "360m", "memory": "64Mi"}}}
            ],
        },
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def _daemon_set() -> dict[str, Any]:
    labels = {"app": "agent"}
    container = {"name": "main", "image": "agent", "resources": {"requests": {"cpu": "10m"}}}
    template = {
        "metadata": {"labels": labels},
        "spec": {"tolerations": [{"operator": "Exists"}], "containers": [container]},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "agent", "namespace": "kube-system"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec}
