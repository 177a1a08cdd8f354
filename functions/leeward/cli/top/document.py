"""JSON of `leeward top`: a summary, and every node with use, price, state and blockers.

Decides what the document says; `docs/schema/top.json` describes it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from leeward.cli.plan_document import HOURS_A_MONTH
from leeward.cli.top.nodes import MILLI, NodeState, TopFacts, TopNode
from leeward.model.times import format_instant


def to_json(nodes: Sequence[TopNode], facts: TopFacts) -> dict[str, Any]:
    """Return the document that `docs/schema/top.json` describes."""
    prices = [one.price for one in nodes if one.price is not None]
    hourly = round(sum(prices), 6) if len(prices) == len(nodes) else None
    states = Counter(one.state for one in nodes)
    return {
        "summary": {
            "nodes": len(nodes),
            "pricePerHour": hourly,
            "pricePerMonth": None if hourly is None else round(hourly * HOURS_A_MONTH, 2),
            "cpu": _use([one.cpu for one in nodes], MILLI),
            "memory": _use([one.memory for one in nodes], 1),
            "pods": sum(one.pods[0] for one in nodes),
            "pendingPods": facts.pending,
            "states": {state.value: states[state] for state in NodeState if states[state]},
        },
        "nodes": [_node(one) for one in nodes],
        "warnings": list(facts.warnings),
    }


def _node(one: TopNode) -> dict[str, Any]:
    return {
        "node": one.node.name,
        "instance": one.node.instance_id or None,
        "group": one.group,
        "zone": one.zone or None,
        "instanceType": one.instance_type or None,
        "capacityType": one.capacity.value if one.capacity else None,
        "pricePerHour": one.price,
        "cpu": _use([one.cpu], MILLI),
        "memory": _use([one.memory], 1),
        "pods": {"running": one.pods[0], "allocatable": one.pods[1]},
        "state": one.state.value,
        "blockers": list(one.blockers),
        "created": format_instant(one.node.created),
    }


def _use(amounts: Sequence[tuple[int, int]], parts: int) -> dict[str, float]:
    requested, allocatable = (sum(amount[place] for amount in amounts) / parts for place in (0, 1))
    return {"requested": requested, "allocatable": allocatable}
