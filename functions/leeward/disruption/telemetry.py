"""Log lines and metrics of the disruption package, each name declared once (docs/reference/metrics.md lists them)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from leeward.disruption.run import DisruptionNext, DisruptionRun
from leeward.errors import LeewardError
from leeward.telemetry import Telemetry, scopes_of
from leeward.workflow.steps import log_step

if TYPE_CHECKING:  # keeps the search for candidates out of the cold start of fn disrupt
    from leeward.disruption.controller import PlannerResult

DISRUPTIONS_DONE = "DisruptionsDone"
DISRUPTIONS_GIVEN_UP = "DisruptionsGivenUp"
PLANS_TIMED_OUT = "PlansTimedOut"
NODES_BLOCKED_BY_PODS = "NodesBlockedByPods"
NODES_DISRUPTED = "NodesDisrupted"
DOLLARS_SAVED = "DollarsSavedPerHour"

telemetry = Telemetry("disruption")


def decided(result: PlannerResult) -> dict[str, Any]:
    """Write one line per call and count metrics; return the result as JSON. Raises LeewardError if a cluster could not
    be read: an alarm watches the function's errors.
    """
    (telemetry.warning if result.errors else telemetry.info)("decided", result.to_json())
    for cluster, count in Counter(entry.partition(": ")[0] for entry in result.timed_out).items():
        telemetry.count({PLANS_TIMED_OUT: count}, {"cluster": cluster})
    for cluster, nodes in result.blocked.items():
        blocked = {node for names in nodes.values() for node in names}
        telemetry.count({NODES_BLOCKED_BY_PODS: len(blocked)}, {"cluster": cluster})
    if result.errors:
        raise LeewardError("; ".join(result.errors))
    return result.to_json()


def stepped(step: str, result: DisruptionRun) -> None:
    """Write one line per step; when a run has ended, count it, its nodes and the dollars an hour that it saves."""
    log_step(telemetry, step, result)
    name = {DisruptionNext.DONE: DISRUPTIONS_DONE, DisruptionNext.GIVEN_UP: DISRUPTIONS_GIVEN_UP}.get(result.next)
    if name is None:
        return
    ends, scopes = result.ends, scopes_of(result.cluster)
    telemetry.count({name: 1, NODES_DISRUPTED: sum(ends.nodes.values())}, *scopes)
    telemetry.count({DOLLARS_SAVED: ends.savings}, *scopes, unit="None")
    for group in sorted({*ends.nodes, *ends.saved}):
        scope = {"cluster": result.cluster, "group": group}
        telemetry.count({NODES_DISRUPTED: ends.nodes.get(group, 0)}, scope)
        telemetry.count({DOLLARS_SAVED: ends.saved.get(group, 0.0)}, scope, unit="None")
