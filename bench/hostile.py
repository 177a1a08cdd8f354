"""Plan of a cluster with a hostile namespace: a few of its pods carry thousands of terms, tolerations, constraints or
ports, as the API server accepts them from the author of a pod. Target: 3 times the plan of the same cluster without.

The time is that of reading all pods from JSON objects and of the whole plan, in CPU seconds of one core. At the limit:
the same pods with lists as long as planning reads them (`leeward/model/pod_limits.py`)."""

import copy
import gc
import time
from collections.abc import Callable
from typing import Any

from bench import raw_cluster
from bench.disruption import PODS_A_NODE, a_snapshot
from leeward.disruption.plan import plan_disruption
from leeward.model import pod_limits

NODES = 80
RATIO = 3.0
HOST = "kubernetes.io/hostname"
Pod = dict[str, Any]
Hostile = Callable[[Pod, int, int], None]  # pod, its number, the length of its list


def _anti_affinity(pod: Pod, number: int, length: int) -> None:
    lines = [_line(f"k{n}-{number}", "NotIn", *map(str, range(5))) for n in range(length)]
    terms = [{"labelSelector": {"matchExpressions": [line]}, "topologyKey": HOST} for line in lines]
    pod["spec"]["affinity"] = {"podAntiAffinity": {pod_limits.REQUIRED: terms}}


def _node_affinity(pod: Pod, number: int, length: int) -> None:
    hosts = [_line(HOST, "NotIn", *(f"x{number}-{n}-{one}" for one in range(5))) for n in range(length)]
    terms = [{"matchExpressions": [host, _line(f"absent-{n}", "Exists")]} for n, host in enumerate(hosts)]
    pod["spec"]["affinity"] = {"nodeAffinity": {pod_limits.REQUIRED: {"nodeSelectorTerms": terms}}}


def _spread(pod: Pod, number: int, length: int) -> None:
    selectors = [{"matchExpressions": [_line(f"k{n}-{number}", "DoesNotExist")]} for n in range(length)]
    common = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    pod["spec"]["topologySpreadConstraints"] = [
        {**common, "topologyKey": f"k/{n}", "labelSelector": selector} for n, selector in enumerate(selectors)
    ]


def _tolerations(pod: Pod, number: int, length: int) -> None:
    one = {"operator": "Equal", "value": "x", "effect": "NoSchedule"}
    pod["spec"]["tolerations"] = [{"key": f"t{number}-{n}", **one} for n in range(length)]


def _host_ports(pod: Pod, number: int, length: int) -> None:
    address = f"10.{number % 256}"
    pod["spec"]["containers"][0]["ports"] = [
        {"containerPort": n, "hostPort": n, "hostIP": f"{address}.{n >> 8}.{n & 255}"} for n in range(1, length + 1)
    ]


SHAPES: dict[str, tuple[Hostile, int, int, int]] = {
    "anti-affinity terms": (_anti_affinity, 20, 200, pod_limits.POD_AFFINITY_TERMS),
    "spread constraints": (_spread, 20, 200, pod_limits.SPREAD_CONSTRAINTS),
    "node affinity terms": (_node_affinity, 100, 1_000, pod_limits.NODE_AFFINITY_TERMS),
    "tolerations": (_tolerations, 100, 5_000, pod_limits.TOLERATIONS),
    "host ports": (_host_ports, 100, 3_000, pod_limits.HOST_PORTS),
}  # name -> how, pods, length, length at the limit


def run() -> bool:
    """Print the ratio of each shape; return whether those of the hostile namespace meet the target."""
    print(f"plan of {NODES} nodes with {PODS_A_NODE} pods each and a hostile namespace, against the same without:")
    met: list[bool] = []
    for name, (_, pods, length, limit) in SHAPES.items():
        hostile, at_limit = ratio(name), ratio(name, at_limit=True)
        met.append(hostile <= RATIO)
        what = f"{pods} pods with {length:,} {name}: {hostile:.2f} x (target {RATIO:.0f} x)"
        print(f"  {what}; with {limit}, which is at the limit: {at_limit:.2f} x")
    return all(met)


def ratio(name: str, *, nodes: int = NODES, at_limit: bool = False) -> float:
    """Return the CPU time with the hostile pods against that without, each the better of two in turn."""
    ordinary, hostile = (_pods(nodes), _pods(nodes, name, at_limit=at_limit))
    seconds = [(_seconds(ordinary, nodes), _seconds(hostile, nodes)) for _ in range(2)]
    return min(with_them for _, with_them in seconds) / min(without for without, _ in seconds)


def _pods(nodes: int, name: str = "", *, at_limit: bool = False) -> list[Pod]:
    pods = [copy.deepcopy(pod) for pod in raw_cluster.pods(nodes * PODS_A_NODE, nodes)]
    if name:
        how, count, length, limit = SHAPES[name]
        for number, pod in enumerate(pods[:: max(1, len(pods) // count)][:count]):
            pod["metadata"]["labels"] = {"a": str(number)}
            how(pod, number, limit if at_limit else length)
    return pods


def _seconds(pods: list[Pod], nodes: int) -> float:
    gc.collect()
    began = time.process_time()
    plan_disruption(a_snapshot("half empty", nodes, pods))
    return time.process_time() - began


def _line(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
