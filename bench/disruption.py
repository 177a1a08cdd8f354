"""Consolidation of whole clusters, 20 pods a node, in CPU seconds of one core: candidates, world, every node tried
alone, the multi-node search, and a verdict on each node. Targets: 5 s for 1,000 nodes, 60 s for 5,000, 512 MB.

There are three fleets, because the cost of a scan depends on how full they are: full ones, where no node can be
removed, half empty ones, where many can, and ones in which a node can only be replaced. Each size runs in a process of
its own, so that its peak memory is its own; growth is the cost of a node among 5,000 against one among 1,000.
"""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from bench import raw_cluster
from bench.memory import peak_megabytes
from leeward.cluster.facets import Known
from leeward.disruption.command import DisruptionPlan, MethodName
from leeward.disruption.plan import plan_disruption
from leeward.model.facts import Prices
from leeward.model.group import Group, GroupInstance
from leeward.model.instance import CapacityType, Instance
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.quantity import amounts
from leeward.model.subnet import Subnet
from leeward.node_template.build import ExpectedNode
from leeward.node_template.choices import Choices
from leeward.policy.document import ClusterPolicies, ClusterSettings, DisruptionPolicy, GroupSelector, NodePolicy
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodReader
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.launchable import Launchable, launchable

PODS_A_NODE, GROUPS = 20, 10
TARGETS = {1_000: 5.0, 5_000: 60.0}  # nodes -> seconds
MOST_MEMORY, NEAR_LINEAR = 512, 2.0
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ON_DEMAND = {"m5.xlarge": 0.192, "m5.2xlarge": 0.384}
SMALLER = "m5.xlarge", ("3920m", 58)
# cores of a node, and the most pods: 20 pods take 4.8 of them
FLEETS = {"full": ("4810m", 20), "half empty": ("7910m", 58), "replaceable": ("7910m", 20)}


def run(targets: Mapping[int, float] = TARGETS) -> bool:
    """Print a line for each fleet and size, the smaller first; return whether all targets are met."""
    print(f"consolidation, {PODS_A_NODE} pods a node, all verdicts (CPU time of one core):")
    met: list[bool] = []
    for fleet in FLEETS:
        seconds = {count: _measured(fleet, count, target, met) for count, target in targets.items()}
        small, large = seconds
        growth = seconds[large] / large / (seconds[small] / small)
        met.append(growth <= NEAR_LINEAR)
        print(f"    a node among {large:,} costs {growth:.2f} x one among {small:,} (target {NEAR_LINEAR} x)")
    return all(met)


def _measured(fleet: str, count: int, most: float, met: list[bool]) -> float:
    """Measure in a separate process and return the seconds."""
    command = [sys.executable, "-m", "bench.disruption", fleet, str(count)]
    seconds, peak, said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    met.append(seconds <= most and peak <= MOST_MEMORY)
    target = f"target {most:.0f} s, {MOST_MEMORY} MB"
    print(f"  {fleet}, {count:,} nodes: {seconds:.2f} s, {peak} MB ({target}); {said}")
    return float(seconds)


def in_process(fleet: str, count: int) -> list[Any]:
    """Return [CPU seconds, peak megabytes, result]."""
    snapshot = a_snapshot(fleet, count)
    gc.collect()
    began = time.process_time()
    plan = plan_disruption(snapshot, only=MethodName.CONSOLIDATION)
    seconds = time.process_time() - began
    return [seconds, peak_megabytes(), _said(plan)]


def _said(plan: DisruptionPlan) -> str:
    alone = sum(
        one[MethodName.CONSOLIDATION].reason.startswith("it could be removed") for one in plan.verdicts.values()
    )
    if not plan.commands:
        return "nothing can go"
    (command,) = plan.commands
    return f"{len(command.nodes)} nodes go ({command.decision.value}), {alone} more could alone"


def a_snapshot(fleet: str, count: int, raw_pods: Iterable[dict[str, Any]] | None = None) -> ClusterSnapshot:
    """Return ten groups of on-demand nodes; but for full fleets also two empty groups that would launch smaller
    ones. `raw_pods`: instead of the ordinary ones.
    """
    cpu, most = FLEETS[fleet]
    reader = PodReader()
    raw_nodes = list(raw_cluster.nodes(count, cpu=cpu, pods=most))
    pods, specs = [], []
    for raw in raw_cluster.pods(count * PODS_A_NODE, count) if raw_pods is None else raw_pods:
        pods.append(Pod.from_json(raw))
        specs.append(reader.read(raw))
    groups, instances = _groups(count, smaller=() if fleet == "full" else ("small-0", "small-1"))
    subnets = {f"subnet-{zone}": Subnet(id=f"subnet-{zone}", zone=zone) for zone in raw_cluster.ZONES}
    prices = Prices(on_demand=ON_DEMAND)
    rules = DisruptionPolicy(budgets=())
    policy = NodePolicy(name="all", selector=GroupSelector(groups=("*",)), disruption=rules)
    return ClusterSnapshot(
        cluster="blue",
        now=NOW,
        policies=ClusterPolicies(settings=ClusterSettings(name="blue"), policies=(policy,)),
        node_list=Known(tuple(map(Node.from_json, raw_nodes))),
        pods=tuple(pods),
        groups=groups,
        instances=instances,
        subnets=subnets,
        prices=prices,
        node_specs=tuple(map(NodeSpec.from_json, raw_nodes)),
        pod_specs=tuple(specs),
        launchables={name: _launchable(group, FLEETS[fleet], subnets, prices) for name, group in groups.items()},
    )


def _groups(count: int, smaller: tuple[str, ...]) -> tuple[dict[str, Group], dict[str, Instance]]:
    zones = raw_cluster.ZONES
    members = [
        GroupInstance(
            id=raw_cluster.instance_id(n), zone=zones[n % len(zones)], lifecycle="InService", type="m5.2xlarge"
        )
        for n in range(count)
    ]
    sizes = {f"web-{number}": tuple(members[number::GROUPS]) for number in range(GROUPS)}
    groups = {
        name: Group(
            name=name,
            tags={},
            minimum=0,
            maximum=2 * count,
            desired=len(mine),
            zones=zones,
            subnets=tuple(f"subnet-{zone}" for zone in zones),
            instances=mine,
        )
        for name, mine in {**sizes, **dict.fromkeys(smaller, ())}.items()
    }
    instances = {
        one.id: Instance(
            id=one.id,
            state="running",
            type=one.type,
            zone=one.zone,
            subnet=f"subnet-{one.zone}",
            capacity_type=CapacityType.ON_DEMAND,
            tags={},
            launched=NOW,
        )
        for one in members
    }
    return groups, instances


def _launchable(group: Group, like: tuple[str, int], subnets: dict[str, Subnet], prices: Prices) -> Launchable:
    """Return the type of its members, or the smaller type."""
    name, (cpu, most) = ("m5.2xlarge", like) if group.instances else SMALLER
    room = amounts({"cpu": cpu, "memory": "31482304Ki", "pods": str(most)}, down=True)
    labels = {"node.kubernetes.io/instance-type": name, "topology.kubernetes.io/zone": group.zones[0]}
    expected = ExpectedNode(name="new", group=group.name, labels=labels, taints=(), capacity=room, allocatable=room)
    found = Choices(types=(name,), zones=group.zones, capacity=CapacityType.ON_DEMAND)
    return launchable(group, found, [expected], subnets.values(), prices)


if __name__ == "__main__":
    print(json.dumps(in_process(sys.argv[1], int(sys.argv[2]))))
