"""Zone and subnet choice for a node of a large cluster: 5,000 nodes, 200 subnets. Target: at most 50 ms.

Growth is printed as well, and the cost of a hundred nodes at once: each takes its addresses before the next one.
"""

import random
import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from leeward.model import well_known
from leeward.model.instance_type import InstanceType
from leeward.model.node import Node
from leeward.model.subnet import Subnet
from leeward.placement.accounting import accounting_of, demand_of
from leeward.placement.cni import CniSettings
from leeward.placement.scene import PlacementScene, cores_by_zone
from leeward.placement.zones import place

TARGET_MS = 50.0
RUNS = 15
ZONES = tuple(f"us-east-1{letter}" for letter in "abcdef")
SIZES = ((500, 20), (5_000, 200), (50_000, 2_000))
TARGET_SIZE = (5_000, 200)
M5_LARGE = InstanceType(name="m5.large", vcpus=2, memory_mib=8192, max_enis=3, ips_per_eni=10)


def run(sizes: Sequence[tuple[int, int]] = SIZES) -> bool:
    """Print a line for each size (nodes, subnets), the smallest first; return whether the target is met."""
    print(f"zone and subnet choice, from nodes and subnets to the answer (median of {RUNS}):")
    found = {size: measure(*size) for size in sizes}
    smallest = found[sizes[0]]
    for (nodes, subnets), (one, hundred) in found.items():
        print(
            f"  {nodes:,} nodes, {subnets:,} subnets: {one:.1f} ms ({one / smallest[0]:.1f} x the smallest), "
            f"a hundred nodes at once {hundred:.0f} ms"
        )
    met = found.get(TARGET_SIZE, smallest)[0] <= TARGET_MS
    print(f"  target for 5,000 nodes and 200 subnets: {TARGET_MS:.0f} ms, {'met' if met else 'missed'}")
    return met


def measure(nodes: int, subnets: int) -> tuple[float, float]:
    """Return the milliseconds for one node and for a hundred."""
    fleet = [a_node(number) for number in range(nodes)]
    known = [a_subnet(number) for number in range(subnets)]
    return _median(fleet, known, 1), _median(fleet, known, 100)


def _median(nodes: list[Node], subnets: list[Subnet], count: int) -> float:
    times = []
    for seed in range(RUNS if count == 1 else 3):
        began = time.perf_counter()
        settings = CniSettings.from_variables({"WARM_IP_TARGET": "2"})
        scene = PlacementScene(
            subnets=tuple(subnets),
            demand=demand_of(accounting_of(settings, "bench", subnets, subnets), settings, [M5_LARGE], 12),
            cores=cores_by_zone(nodes),
        )
        placement = place(scene, count, random.Random(seed))
        times.append(time.perf_counter() - began)
        assert placement.complete
    return 1000 * statistics.median(times)


def a_node(number: int) -> Node:
    """Return one of the cluster's nodes, spread unevenly."""
    zone = ZONES[number * number % len(ZONES)]
    return Node(
        name=f"node-{number}",
        uid=f"uid-{number}",
        resource_version="1",
        provider_id=f"aws:///{zone}/i-{number:017x}",
        labels={well_known.ZONE_LABEL: zone, well_known.INSTANCE_TYPE_LABEL: "m5.large"},
        annotations={},
        taints=(),
        unschedulable=False,
        ready=True,
        deleting=False,
        created=datetime(2026, 1, 1, tzinfo=UTC),
        cpu=2000 * (1 + number % 3),
    )


def a_subnet(number: int) -> Subnet:
    """Return a subnet: every third one is full; the others hold many nodes."""
    free = 3 if number % 3 == 0 else 1000 + number
    return Subnet(id=f"subnet-{number:05}", zone=ZONES[number % len(ZONES)], free_ips=free, vpc="vpc-1")
