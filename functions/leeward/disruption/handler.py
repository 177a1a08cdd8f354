"""Entry points of the disruption package: `plan_disruptions` on a schedule, `disrupt` for the steps of disruption.

Two functions share this module; each imports its own half at its first call."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.account_check import answers_account_check
from leeward.adapters.entry import entry_point
from leeward.adapters.initialization import initialize
from leeward.disruption import telemetry
from leeward.disruption.run import DisruptionRun
from leeward.workflow.steps import take_step


@entry_point("disruption")
@answers_account_check
def plan_disruptions(_event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Decide every few minutes, and when an execution of disruption has died. The event is ignored: the function
    reads the state itself.

    Raises LeewardError naming the clusters that could not be read, so that the alarm sees it.
    """
    from leeward.disruption.controller import decide_once

    result = decide_once(wiring.invocation_ports(context))
    return telemetry.decided(result)


@entry_point("disruption")
@answers_account_check
def disrupt(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Run one step: `{"step", "run", "execution"?, "error"?, "cause"?}` -> the run document."""
    from leeward.disruption.steps import STEPS

    result = take_step(event, STEPS, DisruptionRun.from_json, wiring.invocation_ports(context))
    telemetry.stepped(event["step"], result)
    return result.to_json()


initialize()
