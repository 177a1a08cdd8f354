"""Commands on a snapshot folder of 3,000 nodes and 60,000 pods as kubectl prints them: peak memory and CPU seconds of
each command's process. Targets: 600 MB, what any laptop or runner of CI has to spare, and 20 s.

The table of a command is not kept: what counts is reading the folder and the work."""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from bench import raw_cluster
from bench.memory import peak_megabytes

NODES, PODS, GROUPS = 3_000, 60_000, 10
SMALLEST = 30, 60  # nodes and pods with which a test runs the bench
MEGABYTES, SECONDS = 600, 20
TYPE = "m5.2xlarge"
NOW = "2026-05-01T12:00:00Z"
POLICY = """apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: all}
spec:
  selector: {groups: ["*"]}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s}
"""
COMMANDS = ("drift", "blockers", "top", "inspect budget", "plan")


def run(nodes: int = NODES, pods: int = PODS) -> bool:
    """Print the figures of each command; return whether all meet the targets."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write(folder, nodes, pods)
        size = sum(file.stat().st_size for file in folder.iterdir()) // 1_000_000
        print(
            f"a folder of {nodes:,} nodes and {pods:,} pods ({size} MB), at most {MEGABYTES} MB and {SECONDS} s each:"
        )
        met = [_print(command, *measured(folder, command)) for command in COMMANDS]
    return all(met)


def _print(command: str, megabytes: int, seconds: float) -> bool:
    print(f"  leeward {command}: {megabytes} MB, {seconds:.1f} s")
    return megabytes <= MEGABYTES and seconds <= SECONDS


def measured(folder: Path, command: str) -> tuple[int, float]:
    """Return (peak megabytes, CPU seconds) of the command in a process of its own. Raises CalledProcessError where it
    does not end well.
    """
    asked = [*command.split(), "--snapshot", str(folder), "--now", NOW, "-o", "json"]
    answer = subprocess.run(
        [sys.executable, "-m", "bench.folder", *asked], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    megabytes, seconds = json.loads(answer.stderr.splitlines()[-1])
    return int(megabytes), float(seconds)


def write(folder: Path, nodes: int = NODES, pods: int = PODS) -> None:
    """Write the files of a cluster whose groups launch one type, in three zones."""
    _write(folder / "nodes.json", "items", map(_printed, raw_cluster.nodes(nodes)))
    _write(folder / "pods.json", "items", map(_printed, raw_cluster.pods(pods, nodes)))
    for name in ("pdbs", "daemonsets"):
        _write(folder / f"{name}.json", "items", ())
    _write(folder / "auto-scaling-groups.json", "AutoScalingGroups", (_group(n, nodes) for n in range(GROUPS)))
    (folder / "instances.json").write_text(json.dumps({"Reservations": [{"Instances": list(_instances(nodes))}]}))
    subnets = ({"SubnetId": _subnet(zone), "AvailabilityZone": zone, **_free()} for zone in raw_cluster.ZONES)
    _write(folder / "subnets.json", "Subnets", subnets)
    (folder / "prices.json").write_text(json.dumps({"on-demand": {TYPE: 0.384}}))
    (folder / "policy.yaml").write_text(POLICY)


def _write(path: Path, key: str, elements: Iterable[Any]) -> None:
    """Write one element after the other: the list is larger than what this process should hold."""
    with path.open("w") as file:
        file.write(f'{{"{key}": [')
        rest = iter(elements)
        first = next(rest, None)
        for place, element in enumerate(chain([] if first is None else [first], rest)):
            file.write(f"{', ' if place else ''}{json.dumps(element, indent=4)}")
        file.write("]}")


def _printed(element: dict[str, Any]) -> dict[str, Any]:
    """Return the object as kubectl prints it: without managed fields, which it hides. A pod's text is 8 KB long."""
    del element["metadata"]["managedFields"]
    for container in element["spec"].get("containers", ()):
        container["livenessProbe"] = container["readinessProbe"]
        container["env"] += [{"name": f"FEATURE_{one}", "value": f"value-{one}"} for one in range(8)]
    return element


def _group(number: int, nodes: int) -> dict[str, Any]:
    members = [
        {"InstanceId": raw_cluster.instance_id(n), "LifecycleState": "InService", "AvailabilityZone": _zone(n)}
        for n in range(number, nodes, GROUPS)
    ]
    return {
        "AutoScalingGroupName": f"web-{number}",
        "MinSize": 0,
        "MaxSize": nodes,
        "DesiredCapacity": len(members),
        "AvailabilityZones": list(raw_cluster.ZONES),
        "VPCZoneIdentifier": ",".join(_subnet(zone) for zone in raw_cluster.ZONES),
        "Instances": [{**one, "InstanceType": TYPE, "HealthStatus": "Healthy"} for one in members],
    }


def _instances(nodes: int) -> Iterator[dict[str, Any]]:
    for number in range(nodes):
        yield {
            "InstanceId": raw_cluster.instance_id(number),
            "State": {"Name": "running"},
            "InstanceType": TYPE,
            "Placement": {"AvailabilityZone": _zone(number)},
            "SubnetId": _subnet(_zone(number)),
            "ImageId": "ami-1",
            "LaunchTime": raw_cluster.BORN,
        }


def _free() -> dict[str, Any]:
    return {"AvailableIpAddressCount": 8_000, "VpcId": "vpc-1"}


def _zone(number: int) -> str:
    return raw_cluster.ZONES[number % len(raw_cluster.ZONES)]


def _subnet(zone: str) -> str:
    return f"subnet-{zone}"


def main(arguments: list[str]) -> None:
    """Run the command, then write its peak megabytes and CPU seconds to standard error."""
    from leeward.cli.main import main as leeward

    code = leeward(arguments)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([peak_megabytes(), usage.ru_utime + usage.ru_stime]), file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
