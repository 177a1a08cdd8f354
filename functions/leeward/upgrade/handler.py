"""Entry point of the upgrade room: the steps of node-group-upgrade."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.upgrade import telemetry
from leeward.upgrade.run import Run
from leeward.upgrade.steps import STEPS


def upgrade(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """`{"step", "run", "execution"?, "error"?, "cause"?}` -> the run document."""
    run = Run.from_json(event.get("run") or {})
    result = STEPS[event["step"]](run, event, wiring.lambda_ports())
    telemetry.stepped(event["step"], result)
    return result.to_json()
