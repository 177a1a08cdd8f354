"""Entry point of the upgrade package: the steps of node-group-upgrade and of managed-node-group-upgrade, and
executions of both that have died.

The planner is imported at the first call: an execution that has died is cleaned up without it."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.account_check import answers_account_check
from leeward.adapters.entry import entry_point
from leeward.adapters.initialization import initialize
from leeward.upgrade import telemetry
from leeward.upgrade.run import Run
from leeward.workflow.steps import take_step

ENDED = "Step Functions Execution Status Change"  # the detail-type of EventBridge's events


@entry_point("upgrade")
@answers_account_check
def upgrade(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Run one step: `{"step", "run", "execution"?, "error"?, "cause"?}` -> the run document. For EventBridge's event
    that an execution ended: restore what it left -> what was restored.
    """
    if event.get("detail-type") == ENDED:
        from leeward.upgrade.reconciler import handle_failed_execution

        return telemetry.died(handle_failed_execution(event["detail"], wiring.invocation_ports(context)))
    from leeward.upgrade.managed.steps import STEPS as MANAGED_STEPS
    from leeward.upgrade.steps import STEPS

    ports = wiring.invocation_ports(context)
    result = take_step(event, {**STEPS, **MANAGED_STEPS}, Run.from_json, ports)
    telemetry.stepped(event["step"], result)
    return result.to_json()


initialize()
