"""JSON of `leeward plan`: commands, nodes with price and use, and a summary of both.

Decides what the document says; `docs/schema/plan.json` describes it, `leeward.cli.plan_tables` prints it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from leeward.disruption.alternatives import RefusedTarget
from leeward.disruption.command import Command, DisruptionPlan, MethodName, MethodVerdict
from leeward.model.node import Node
from leeward.model.quantity import CPU, MEMORY
from leeward.snapshot.cluster import ClusterSnapshot

HOURS_A_MONTH = 730  # as AWS counts in its pricing calculator
_PDB = re.compile(r"(?P<one>pdb \S+) prevents|(?P<many>pdb .+) all select")
_POD = re.compile(r"pod \S+/\S+(?= )")


class NodeUse:
    """Requests of the pods on each node, DaemonSet pods too, and the node's allocatable amounts."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._offers = {spec.name: spec.allocatable for spec in snapshot.node_specs}
        self._requests: dict[str, dict[str, int]] = {}
        for pod in snapshot.pod_specs:
            if pod.node:
                requests = self._requests.setdefault(pod.node, {CPU: 0, MEMORY: 0})
                for resource in requests:
                    requests[resource] += pod.needs.asked(resource)

    def cores(self, node: str) -> dict[str, float]:
        """Return the CPU in cores."""
        return self._of(node, CPU, 1000)

    def memory(self, node: str) -> dict[str, float]:
        """Return the memory in bytes."""
        return self._of(node, MEMORY, 1)

    def _of(self, node: str, resource: str, parts: int) -> dict[str, float]:
        requested = self._requests.get(node, {}).get(resource, 0)
        return {"requested": requested / parts, "allocatable": self._offers.get(node, {}).get(resource, 0) / parts}


def to_json(
    plan: DisruptionPlan,
    snapshot: ClusterSnapshot,
    *,
    listed: Collection[str],
    asked: MethodName | None = None,
    cheaper_types: float | None = None,
    refused: Iterable[RefusedTarget] = (),
) -> dict[str, Any]:
    """Return the document that `docs/schema/plan.json` describes. `listed`: the nodes that
    count; commands on no such node are left out. `asked`: the one method that was asked for. `cheaper_types`:
    dollars an hour that they would save on listed nodes; `refused`: groups whose nodes refuse pods.
    """
    commands = [command for command in plan.commands if any(node in listed for node in command.nodes)]
    nodes = [(snapshot.node(name), verdicts) for name, verdicts in plan.verdicts.items() if name in listed]
    use = NodeUse(snapshot)
    entries = [_node(node, verdicts, snapshot, use) for node, verdicts in nodes if node is not None]
    leaving = {name for command in commands for name in command.nodes}
    staying = sorted(set(plan.verdicts) & set(listed) - leaving) if asked is not MethodName.UNHEALTHY else []
    return {
        "method": plan.method.value if plan.method else None,
        "summary": {
            **_totals([node for name in sorted(listed) if (node := snapshot.node(name))], commands, snapshot),
            "laterRuns": _may_go_on(plan, staying),
            "cheaperTypesPerMonth": None if cheaper_types is None else round(cheaper_types * HOURS_A_MONTH, 2),
            "notConsidered": not_considered(plan.verdicts, staying, asked or MethodName.CONSOLIDATION),
        },
        "commands": [command_json(command) for command in commands],
        "refusedTargets": [found for one in refused if (found := _refused(one, listed))["nodes"]],
        "nodes": entries,
    }


def _refused(refused: RefusedTarget, listed: Collection[str]) -> dict[str, Any]:
    return {
        "group": refused.group,
        "nodes": [name for name in refused.nodes if name in listed],
        "pod": refused.pod,
        "reason": refused.reason,
        "fix": refused.fix or None,
    }


def _totals(nodes: Sequence[Node], commands: Sequence[Command], snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return the number of nodes and their dollars a month, now and after the commands; null: a price is unknown."""
    prices = [snapshot.price_of(node) for node in nodes]
    savings = [command.savings for command in commands]
    now = None if None in prices else sum(price or 0.0 for price in prices) * HOURS_A_MONTH
    saved = None if None in savings else sum(saving or 0.0 for saving in savings) * HOURS_A_MONTH
    after = len(nodes) - sum(len(one.nodes) for one in commands) + sum(len(one.replacements) for one in commands)
    return {
        "nodes": {"now": len(nodes), "after": after},
        "pricePerMonth": {
            "now": None if now is None else round(now, 2),
            "after": None if now is None or saved is None else round(now - saved, 2),
        },
    }


def _may_go_on(plan: DisruptionPlan, names: Iterable[str]) -> bool:
    """Return whether a later run may remove one of these nodes by the method that acts."""
    verdicts = (plan.verdicts[name].get(plan.method) for name in names) if plan.commands and plan.method else ()
    return any(verdict is not None and verdict.candidate and not verdict.stays for verdict in verdicts)


def not_considered(
    verdicts: Mapping[str, Mapping[MethodName, MethodVerdict]], names: Iterable[str], method: MethodName
) -> list[dict[str, Any]]:
    """Return the causes for which the method did not consider nodes, each with its nodes: most nodes first."""
    causes: dict[str, dict[str, Any]] = {}
    for name in names:
        verdict = verdicts[name].get(method)
        if verdict is not None and not verdict.candidate:
            blocking = object_of(verdict.reason)
            cause: dict[str, Any] = {"object": blocking, "reason": verdict.reason, "nodes": []}
            causes.setdefault(blocking or verdict.reason, cause)["nodes"].append(name)
    return sorted(causes.values(), key=lambda cause: (-len(cause["nodes"]), cause["object"] or cause["reason"]))


def object_of(reason: str) -> str | None:
    """Return the object that a reason names, a PodDisruptionBudget or a pod; None where it names none."""
    budget, pod = _PDB.match(reason), _POD.match(reason)
    if budget is not None:
        return budget["one"] or budget["many"]
    return pod[0] if pod is not None else None


def command_json(command: Command) -> dict[str, Any]:
    return {
        "decision": command.decision.value,
        "nodes": list(command.nodes),
        "replacements": [
            {
                "group": one.group,
                "instanceTypes": list(one.types),
                "zones": list(one.zones),
                "capacityType": one.capacity.value if one.capacity else None,
                "pricePerHour": one.price,
            }
            for one in command.replacements
        ],
        "savingsPerHour": command.savings,
        "disruptionCost": round(command.cost, 6),
        "score": command.score,
        "reason": command.reason,
        "placements": [{"pod": pod, "node": node} for pod, node in sorted(command.placements.items())],
    }


def _node(
    node: Node, verdicts: Mapping[MethodName, MethodVerdict], snapshot: ClusterSnapshot, use: NodeUse
) -> dict[str, Any]:
    group, capacity = snapshot.group_of(node), snapshot.capacity_of(node)
    return {
        "node": node.name,
        "group": group.name if group else None,
        "instanceType": snapshot.type_of(node) or None,
        "zone": snapshot.zone_of(node) or None,
        "capacityType": capacity.value if capacity else None,
        "pricePerHour": snapshot.price_of(node),
        "cpu": use.cores(node.name),
        "memory": use.memory(node.name),
        "verdicts": [
            {"method": name.value, "candidate": verdict.candidate, "reason": verdict.reason}
            for name, verdict in verdicts.items()
        ],
    }
