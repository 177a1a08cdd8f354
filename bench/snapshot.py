"""Reading a whole cluster, 5,000 pods on 500 nodes, from the API server's pages to the joined snapshot: CPU seconds of
one core and memory over the imported handler. Targets: 0.5 s, 45 MB.

It runs in a process of its own that reads over HTTP with the real client, page by page; decompressing is in the
figure, TLS is not. Reading the same pages without joining anything is printed beside it."""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bench import raw_cluster
from bench.api_server import serving
from bench.memory import peak_megabytes
from bench.pods import api_of

if TYPE_CHECKING:  # the memory of the reading process's imports counts as its own
    from leeward.adapters.kubernetes.api import ClusterApi
    from leeward.model.group import Group
    from leeward.model.instance import Instance

PODS, NODES, GROUPS, RUNS = 5_000, 500, 10, 5
SECONDS, MEGABYTES = 0.5, 45
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TYPE = "m5.2xlarge"


def run(nodes: int = NODES, pods: int = PODS) -> bool:
    """Print both figures; return whether they meet their targets."""
    with serving(pods, nodes) as url:
        command = [sys.executable, "-m", "bench.snapshot", url, str(nodes)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds, parsing, grown, read = json.loads(answer.stdout)
    if read != [nodes, pods]:
        raise AssertionError(f"read {read}, expected {[nodes, pods]}")
    print(f"snapshot of {pods:,} pods on {nodes} nodes (best of {RUNS}): {seconds:.2f} s (target {SECONDS} s),")
    print(f"  reading its pages alone {parsing:.2f} s; {grown} MB over the imported handler (target {MEGABYTES} MB)")
    return bool(seconds <= SECONDS and grown <= MEGABYTES)


def in_process(url: str, nodes: int) -> list[Any]:
    """Return [CPU seconds, those of reading the pages alone, megabytes, summary of what was read]."""
    import leeward.upgrade.handler  # noqa: F401 - a planner's handler, for what it takes by itself
    from leeward.snapshot.gather import gather

    kubernetes = api_of(url)
    ports = ports_of(kubernetes, nodes)
    before = peak_megabytes()
    found = gather(ports, "blue", NOW)
    grown = peak_megabytes() - before
    read = [len(found.nodes), len(found.pod_specs)]
    seconds = min(_timed(lambda: gather(ports, "blue", NOW)) for _ in range(RUNS))
    gc.disable()  # as the reading process does
    return [seconds, min(_timed(lambda: _parse(kubernetes)) for _ in range(RUNS)), grown, read]


def _parse(kubernetes: "ClusterApi") -> None:
    from leeward.ports.kubernetes import Listed

    for what in (Listed.NODES, Listed.PODS):
        kubernetes.read(what, lambda _: None)


def _timed(what: Callable[[], object]) -> float:
    began = time.process_time()
    what()
    return time.process_time() - began


def ports_of(kubernetes: "ClusterApi", nodes: int) -> Any:
    """Return ports whose AWS answers are immediate: groups of equal size that all launch one type. Calls that no
    snapshot makes are missing.
    """
    from leeward.model.instance_type import InstanceType
    from leeward.model.launch import LaunchSettings
    from leeward.model.subnet import Subnet
    from leeward.model.zonal_shift import ZonalShifts
    from leeward.policy.document import ClusterPolicies, ClusterSettings, GroupSelector, NodePolicy

    groups, instances = _members(nodes)
    types = {TYPE: InstanceType(name=TYPE, vcpus=8, memory_mib=32768, max_enis=4, ips_per_eni=15)}
    policy = NodePolicy(name="all", selector=GroupSelector(groups=("*",)))
    policies = ClusterPolicies(settings=ClusterSettings(name="blue"), policies=(policy,))
    return SimpleNamespace(
        clusters=SimpleNamespace(kubernetes=lambda _: kubernetes, policies=lambda _: policies),
        groups=SimpleNamespace(of_clusters=lambda _: groups, hooks=lambda _: ()),
        instances=SimpleNamespace(describe=lambda _: instances),
        network=SimpleNamespace(subnets=lambda ids: {one: Subnet(id=one, zone=one[7:]) for one in ids}),
        launches=SimpleNamespace(
            settings=lambda _: LaunchSettings(image="ami-1", instance_type=TYPE),
            instance_types=lambda _: types,
            all_instance_types=lambda: types,
            image=lambda _: None,
        ),
        nodegroups=SimpleNamespace(get=lambda *_: None),
        catalog=SimpleNamespace(read=lambda _: {}, zonal_shifts=lambda _: ZonalShifts()),
        price_list=SimpleNamespace(on_demand=lambda _: {TYPE: 0.384}, spot=lambda *_: {TYPE: {}}),
        claims=SimpleNamespace(open_instances=tuple),
    )


def _members(nodes: int) -> tuple[list["Group"], dict[str, "Instance"]]:
    """Return the groups and the instances behind the nodes."""
    from leeward.model.group import Group, GroupInstance
    from leeward.model.instance import CapacityType, Instance

    zones = raw_cluster.ZONES
    members = [
        GroupInstance(id=raw_cluster.instance_id(n), zone=zones[n % len(zones)], lifecycle="InService", type=TYPE)
        for n in range(nodes)
    ]
    sizes: dict[str, Any] = {"minimum": 0, "maximum": nodes, "desired": nodes // GROUPS}
    subnets = tuple(f"subnet-{zone}" for zone in zones)
    groups = [
        Group(name=f"web-{n}", tags={}, **sizes, zones=zones, subnets=subnets, instances=tuple(members[n::GROUPS]))
        for n in range(GROUPS)
    ]
    rest: dict[str, Any] = {
        "state": "running",
        "type": TYPE,
        "tags": {},
        "launched": NOW,
        "capacity_type": CapacityType.ON_DEMAND,
    }
    return groups, {one.id: Instance(id=one.id, zone=one.zone, subnet=f"subnet-{one.zone}", **rest) for one in members}


if __name__ == "__main__":
    print(json.dumps(in_process(sys.argv[1], int(sys.argv[2]))))
