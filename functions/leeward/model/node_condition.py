"""Conditions of a Node beside `Ready`, as the kubelet and the EKS node monitoring agent write them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leeward.model.raw_fields import instant, text

READY = "Ready"
PRESSURES = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure"})  # the kubelet's own, False on a healthy node


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCondition:
    """Condition of a Node. `status`: True, False or Unknown; `since`: its last transition, the Node's creation if the
    condition has none.
    """

    type: str
    status: str
    reason: str
    since: datetime


def monitored(conditions: Iterable[Mapping[str, Any]], created: datetime) -> tuple[NodeCondition, ...]:
    """Parse `status.conditions` without `Ready`, which the Node has in fields of its own, and without the kubelet's
    pressures while they are False: thousands of healthy Nodes are kept in memory.
    """
    return tuple(
        NodeCondition(
            type=kind,
            status=text(raw.get("status")),
            reason=text(raw.get("reason")),
            since=instant(raw.get("lastTransitionTime")) or created,
        )
        for raw in conditions
        if (kind := text(raw.get("type"))) not in {"", READY}
        if kind not in PRESSURES or raw.get("status") != "False"
    )
