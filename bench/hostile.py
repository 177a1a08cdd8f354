"""Plan of a cluster with a hostile namespace: a few of its pods carry thousands of terms, tolerations, constraints or
ports, as the API server accepts them from the author of a pod. Target: 3 times the plan of the same cluster without.

The time is that of reading all pods from JSON objects and of the whole plan, in CPU seconds of one core. At the limit:
the same pods with lists as long as planning reads them (`leeward/model/pod_limits.py`). `WITHIN` are the lists of that
length that cost the most, with the target of the others: rules about every pod of the cluster, by labels that few
other pods have in common."""

import copy
import cProfile
import gc
import pstats
import time
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from bench import raw_cluster
from bench.disruption import PODS_A_NODE, a_snapshot
from leeward.disruption.plan import plan_disruption
from leeward.model import pod_limits

NODES = 80
RATIO = 3.0
HOST = "kubernetes.io/hostname"
KEYS = (HOST, *(f"topology.kubernetes.io/{part}" for part in ("zone", "region")), "kubernetes.io/arch")
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


def _preferred_affinity(pod: Pod, number: int, length: int) -> None:
    terms = [{"weight": 1, "podAffinityTerm": _about_all(number, n, HOST)} for n in range(length)]
    pod["spec"]["affinity"] = {"podAffinity": {pod_limits.PREFERRED: terms}}


def _required_affinity(pod: Pod, number: int, length: int) -> None:
    terms = [_about_all(number, n, KEYS[n % len(KEYS)]) for n in range(length)]
    pod["spec"]["affinity"] = {"podAffinity": {pod_limits.REQUIRED: terms}}


def _about_all(number: int, n: int, key: str) -> dict[str, Any]:
    line = _line(f"k{number}-{n}", "NotIn", *map(str, range(8)))
    return {"labelSelector": {"matchExpressions": [line]}, "namespaceSelector": {}, "topologyKey": key}


def _hard_spread(pod: Pod, number: int, length: int) -> None:
    common = {"maxSkew": 1_000, "whenUnsatisfiable": "DoNotSchedule"}
    selectors = [{"matchExpressions": [_line("a", "NotIn", f"{number}-{n}")]} for n in range(length)]
    pod["spec"]["topologySpreadConstraints"] = [
        {**common, "topologyKey": KEYS[n % len(KEYS)], "labelSelector": each} for n, each in enumerate(selectors)
    ]


def _spread_over_nothing(pod: Pod, number: int, length: int) -> None:
    _spread(pod, number, length)
    for constraint in pod["spec"]["topologySpreadConstraints"]:
        constraint["whenUnsatisfiable"] = "DoNotSchedule"


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
TERMS, CONSTRAINTS = pod_limits.POD_AFFINITY_TERMS, pod_limits.SPREAD_CONSTRAINTS
WITHIN: dict[str, tuple[Hostile, int, int, int]] = {
    "preferred affinity to all": (_preferred_affinity, 5, TERMS, 40),
    "preferred affinity to all, more pods": (_preferred_affinity, 20, TERMS, 40),
    "required affinity to all": (_required_affinity, 20, TERMS, 40),
    "hard spread of all": (_hard_spread, 20, CONSTRAINTS, 40),
    "hard spread over nothing": (_spread_over_nothing, 50, CONSTRAINTS, 30),
}  # name -> how, pods, length, nodes


def run(nodes: int = NODES, shapes: Collection[str] = (*SHAPES, *WITHIN)) -> bool:
    """Print the ratio of each of the shapes, on at most so many nodes; return whether those of the hostile namespace
    meet the target.
    """
    print(f"plan of {nodes} nodes with {PODS_A_NODE} pods each and a hostile namespace, against the same without:")
    met: list[bool] = []
    for name in (name for name in SHAPES if name in shapes):
        _, pods, length, limit = SHAPES[name]
        hostile, at_limit = ratio(name, nodes=nodes), ratio(name, nodes=nodes, at_limit=True)
        met.append(hostile <= RATIO)
        what = f"{pods} pods with {length:,} {name}: {hostile:.2f} x (target {RATIO:.0f} x)"
        print(f"  {what}; with {limit}, which is at the limit: {at_limit:.2f} x")
    print("the same with lists within the limits:")
    for name in (name for name in WITHIN if name in shapes):
        _, pods, length, usual = WITHIN[name]
        count = min(nodes, usual)
        within = ratio_within(name, count)
        met.append(within <= RATIO)
        print(f"  {pods} pods with {length} terms of {name}, {count} nodes: {within:.2f} x (target {RATIO:.0f} x)")
    return all(met)


def ratio(name: str, *, nodes: int = NODES, at_limit: bool = False) -> float:
    """Return the CPU time with the hostile pods against that without, each the better of two in turn."""
    how, count, length, limit = SHAPES[name]
    return _ratio(nodes, _hostile(_pods(nodes), how, count, limit if at_limit else length))


def ratio_within(name: str, nodes: int) -> float:
    """Return the same for a shape of `WITHIN`."""
    how, count, length, _ = WITHIN[name]
    return _ratio(nodes, _hostile(_pods(nodes), how, count, length))


def calls_within(name: str, *, nodes: int) -> float:
    """Return how many calls of functions a plan of fewer nodes makes, against the same without the hostile pods. Their
    share of all pods is the same.
    """
    how, count, length, all_nodes = WITHIN[name]
    hostile = _hostile(_pods(nodes), how, -(-count * nodes // all_nodes), length)
    return _calls(hostile, nodes) / _ordinary_calls(nodes)


def _ratio(nodes: int, hostile: list[Pod]) -> float:
    ordinary = _pods(nodes)
    seconds = [(_seconds(ordinary, nodes), _seconds(hostile, nodes)) for _ in range(2)]
    return min(with_them for _, with_them in seconds) / min(without for without, _ in seconds)


def _pods(nodes: int) -> list[Pod]:
    return [copy.deepcopy(pod) for pod in raw_cluster.pods(nodes * PODS_A_NODE, nodes)]


def _hostile(pods: list[Pod], how: Hostile, count: int, length: int) -> list[Pod]:
    for number, pod in enumerate(pods[:: max(1, len(pods) // count)][:count]):
        pod["metadata"]["labels"] = {"a": str(number)}
        how(pod, number, length)
    return pods


def _seconds(pods: list[Pod], nodes: int) -> float:
    gc.collect()
    began = time.process_time()
    plan_disruption(a_snapshot("half empty", nodes, pods))
    return time.process_time() - began


@cache
def _ordinary_calls(nodes: int) -> float:
    return _calls(_pods(nodes), nodes)


def _calls(pods: list[Pod], nodes: int) -> float:
    profile = cProfile.Profile()
    profile.runcall(plan_disruption, a_snapshot("half empty", nodes, pods))
    return float(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def _line(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
