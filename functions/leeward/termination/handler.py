"""Entry points of the termination package: `terminate` (steps on AWS) and `reconciler`; `drain` is in
`drain_handler.py`."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.initialization import initialize
from leeward.ports import Ports
from leeward.termination import steps, telemetry
from leeward.termination.run import Run
from leeward.termination.steps import Step


def terminate(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Run one step: `{"step", "run", "execution"?, "error"?, "cause"?}` -> the run document."""
    return take_step(event, steps.STEPS, wiring.invocation_ports(context))


def reconcile(_event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Finish, once a minute, work that no Catch can finish."""
    from leeward.termination.reconciler import (
        reconcile_once,
    )  # late: the steps share this module and start cold without it

    found = reconcile_once(wiring.invocation_ports(context))
    telemetry.swept(found)
    return found.to_json()


def take_step(event: Mapping[str, Any], known: Mapping[str, Step], ports: Ports) -> dict[str, Any]:
    """Run one named step and log its result in one line."""
    run = Run.from_json(event.get("run") or {})
    result = known[event["step"]](run, event, ports)
    telemetry.stepped(event["step"], result)
    return result.to_json()


initialize()
