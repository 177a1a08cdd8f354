"""Benchmark of 1,000 look-ups of node templates by 16 threads over ten minutes. Target: one DescribeNodegroup call per
group and minute, counted; also printed is the cost of a template without the call."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.build import ExpectedNode, Sources, expected_node
from leeward.node_template.cache import NodegroupCache
from leeward.node_template.choices import choices

GROUPS, LABELS, LOOK_UPS, MINUTES, THREADS = 10, 100, 1_000, 10, 16
TTL = timedelta(minutes=1)
START = datetime(2026, 3, 1, tzinfo=UTC)
LAUNCH = LaunchSettings(version=1, image="ami-1", instance_type="m5.large")
TYPES = {"m5.large": InstanceType(name="m5.large", vcpus=2, memory_mib=8192, max_enis=3, ips_per_eni=10)}


class CountedNodegroups:
    """`ports.eks.Nodegroups` that counts its calls by group and minute."""

    def __init__(self, clock: "BenchClock") -> None:
        self.calls: Counter[tuple[str, datetime]] = Counter()
        self._clock = clock

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """Return a node group with more labels than a group may have tags."""
        self.calls[name, self._clock.now()] += 1
        labels = {f"example.com/label-{number}": str(number) for number in range(LABELS)}
        return Nodegroup(name=name, cluster=cluster, labels=labels, ami_type="AL2023_x86_64_STANDARD")


class BenchClock:
    """Clock that the benchmark moves, a minute at a time."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> datetime:
        """Return the present."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self._now += timedelta(seconds=seconds)


def run(look_ups: int = LOOK_UPS) -> bool:
    """Print calls and microseconds; return whether no group was described twice within a minute."""
    clock = BenchClock()
    nodegroups = CountedNodegroups(clock)
    cache = NodegroupCache(nodegroups, clock, chance=lambda: 0.0, say=print)
    groups = [a_group(number) for number in range(GROUPS)]
    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as threads:
        for _ in range(MINUTES):
            wanted = [groups[number % GROUPS] for number in range(look_ups // MINUTES)]
            list(threads.map(lambda group: look_up(group, cache), wanted))
            clock.sleep(60)
    seconds = time.perf_counter() - began
    calls, most = sum(nodegroups.calls.values()), max(nodegroups.calls.values())
    print(f"node templates: {look_ups} look-ups, {GROUPS} managed groups, {MINUTES} minutes, {THREADS} threads:")
    print(f"  {calls} DescribeNodegroup calls, at most {most} per group and minute (target 1)")
    print(f"  {seconds / look_ups * 1e6:.0f} us a template with {LABELS} labels")
    return most == 1 and calls <= GROUPS * MINUTES


def look_up(group: Group, cache: NodegroupCache) -> ExpectedNode:
    """Look up one group's template as a caller does."""
    nodegroup = cache.get(group.cluster or "", group.nodegroup or "", TTL)
    found = choices(group, LAUNCH, nodegroup, known=TYPES)
    return expected_node(Sources(group=group, choices=found, launch=LAUNCH, nodegroup=nodegroup, types=TYPES))


def a_group(number: int) -> Group:
    """Return a managed group of size zero."""
    tags = {"eks:cluster-name": "blue", "eks:nodegroup-name": f"web-{number}"}
    return Group(name=f"eks-web-{number}", tags=tags, minimum=0, maximum=9, desired=0, zones=("us-east-1a",))
