"""Entry point of fn terminate: the steps of node-termination that call AWS alone; `drain` is in `drain_handler.py`."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.account_check import answers_account_check
from leeward.adapters.entry import entry_point
from leeward.adapters.initialization import initialize
from leeward.ports import Ports
from leeward.termination import steps, telemetry
from leeward.termination.run import Run
from leeward.workflow.steps import Step, take_step


@entry_point("termination")
@answers_account_check
def terminate(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Run one step: `{"step", "run", "execution"?, "error"?, "cause"?}` -> the run document."""
    return answer(event, steps.STEPS, wiring.invocation_ports(context))


def answer(event: Mapping[str, Any], known: Mapping[str, Step[Run]], ports: Ports) -> dict[str, Any]:
    """Run one step of either function and log its result in one line."""
    result = take_step(event, known, Run.from_json, ports)
    telemetry.stepped(event["step"], result)
    return result.to_json()


initialize()
