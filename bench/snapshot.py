"""Reading a whole cluster, 5,000 pods on 500 nodes, from the API server's pages to the joined snapshot: CPU seconds of
one core and memory over the imported handler. Targets: 0.5 s, 45 MB.

It runs in a process of its own that reads the pages one by one from files, as it would from the network; decompressing
and TLS are not in the figure. Parsing the same JSON alone is printed beside it."""

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from bench import raw_cluster
from bench.memory import peak_megabytes

if TYPE_CHECKING:  # what the reading process imports counts as its own
    from leeward.model.group import Group
    from leeward.model.instance import Instance

PODS, NODES, GROUPS, RUNS = 5_000, 500, 10, 5
SECONDS, MEGABYTES = 0.5, 45
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TYPE = "m5.2xlarge"
T = TypeVar("T")


def run() -> bool:
    """Print both figures; whether they meet their targets."""
    with tempfile.TemporaryDirectory() as folder:
        write_pages(Path(folder))
        answer = subprocess.run(
            [sys.executable, "-m", "bench.snapshot", folder], check=True, capture_output=True, text=True
        )
    seconds, parsing, grown, read = json.loads(answer.stdout)
    if read != [NODES, PODS]:
        raise AssertionError(f"read {read}, expected {[NODES, PODS]}")
    print(f"snapshot of {PODS:,} pods on {NODES} nodes (best of {RUNS}): {seconds:.2f} s (target {SECONDS} s),")
    print(f"  parsing its JSON alone {parsing:.2f} s; {grown} MB over the imported handler (target {MEGABYTES} MB)")
    return bool(seconds <= SECONDS and grown <= MEGABYTES)


def write_pages(folder: Path) -> None:
    """`nodes-0.json` and so on."""
    lists = {"nodes": raw_cluster.nodes(NODES), "pods": raw_cluster.pods(PODS, NODES)}
    for name, items in lists.items():
        for number, page in enumerate(raw_cluster.pages(items)):
            (folder / f"{name}-{number}.json").write_bytes(page)


def pages_of(folder: Path, name: str) -> Iterator[bytes]:
    """In order."""
    for number in range(len(list(folder.glob(f"{name}-*.json")))):
        yield (folder / f"{name}-{number}.json").read_bytes()


class PagedKubernetes:
    """As much of `ports.Kubernetes` as a snapshot asks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, what: str, parse: Callable[[Mapping[str, Any]], T]) -> Sequence[T]:
        """Page by page."""
        found: list[T] = []
        for page in pages_of(self._folder, what):
            found.extend(parse(raw) for raw in json.loads(page)["items"])
        return tuple(found)

    def budgets(self) -> Sequence[Any]:
        """None."""
        return ()


def in_process(folder: Path) -> list[Any]:
    """[CPU seconds, those of parsing alone, megabytes, what was read]."""
    import leeward.upgrade.handler  # noqa: F401 - a planner's handler, for what it takes by itself
    from leeward.snapshot.gather import gather

    ports = _ports(folder)
    before = peak_megabytes()
    found = gather(ports, "blue", NOW)
    grown = peak_megabytes() - before
    read = [len(found.nodes), len(found.pod_specs)]
    seconds = min(_timed(lambda: gather(ports, "blue", NOW)) for _ in range(RUNS))
    gc.disable()  # as the reading does
    return [seconds, min(_timed(lambda: _parse(folder)) for _ in range(RUNS)), grown, read]


def _parse(folder: Path) -> None:
    for name in ("nodes", "pods"):
        for page in pages_of(folder, name):
            json.loads(page)


def _timed(what: Callable[[], object]) -> float:
    began = time.process_time()
    what()
    return time.process_time() - began


def _ports(folder: Path) -> Any:
    """AWS' answers are there at once: groups of equal size that all launch one type. What no snapshot asks for is not
    there.
    """
    from leeward.model.instance_type import InstanceType
    from leeward.model.launch import LaunchSettings
    from leeward.model.subnet import Subnet
    from leeward.policy.document import ClusterPolicies, ClusterSettings, NodePolicy, Selector

    groups, instances = _members()
    types = {TYPE: InstanceType(name=TYPE, vcpus=8, memory_mib=32768, max_enis=4, ips_per_eni=15)}
    policy = NodePolicy(name="all", selector=Selector(groups=("*",)))
    policies = ClusterPolicies(settings=ClusterSettings(name="blue"), policies=(policy,))
    kubernetes = PagedKubernetes(folder)
    return SimpleNamespace(
        clusters=SimpleNamespace(kubernetes=lambda _: kubernetes, policies=lambda _: policies),
        groups=SimpleNamespace(of_clusters=lambda _: groups, hooks=lambda _: ()),
        instances=SimpleNamespace(describe=lambda _: instances),
        network=SimpleNamespace(subnets=lambda ids: {one: Subnet(id=one, zone=one[7:]) for one in ids}),
        launches=SimpleNamespace(
            settings=lambda _: LaunchSettings(image="ami-1", instance_type=TYPE),
            instance_types=lambda _: types,
            all_instance_types=lambda: types,
        ),
        nodegroups=SimpleNamespace(get=lambda *_: None),
        catalog=SimpleNamespace(read=lambda _: {}),
        price_list=SimpleNamespace(on_demand=lambda _: {TYPE: 0.384}, spot=lambda *_: {TYPE: {}}),
        claims=SimpleNamespace(open_instances=tuple),
    )


def _members() -> tuple[list["Group"], dict[str, "Instance"]]:
    """The groups and the instances behind the nodes."""
    from leeward.model.group import Group, GroupInstance
    from leeward.model.instance import CapacityType, Instance

    zones = raw_cluster.ZONES
    members = [
        GroupInstance(id=raw_cluster.instance_id(n), zone=zones[n % len(zones)], lifecycle="InService", type=TYPE)
        for n in range(NODES)
    ]
    sizes: dict[str, Any] = {"minimum": 0, "maximum": NODES, "desired": NODES // GROUPS}
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
    print(json.dumps(in_process(Path(sys.argv[1]))))
