"""Entry points of the disruption room: `decide` on a schedule, `disrupt` for the steps of disruption-round."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.disruption import telemetry
from leeward.disruption.deciding import decide_once
from leeward.disruption.run import RoundRun
from leeward.disruption.steps import STEPS


def decide(_event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Every few minutes, and when an execution of disruption-round has died: whatever the call says, it looks itself.

    Raises LeewardError naming the clusters that could not be looked at, so that the alarm sees it.
    """
    found = decide_once(wiring.lambda_ports())
    return telemetry.decided(found)


def disrupt(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """`{"step", "run", "execution"?, "error"?, "cause"?}` -> the run document."""
    run = RoundRun.from_json(event.get("run") or {})
    result = STEPS[event["step"]](run, event, wiring.lambda_ports())
    telemetry.stepped(event["step"], result)
    return result.to_json()
