"""Entry point of the upgrade package: the steps of node-group-upgrade and of managed-node-group-upgrade, and
executions of both that have died.

The planner is imported at the first call: an execution that has died is cleaned up without it."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.account_check import answers_account_check
from leeward.adapters.entry import entry_point
from leeward.adapters.initialization import initialize
from leeward.telemetry import Telemetry, scopes_of
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from leeward.workflow.steps import log_step, take_step

ENDED = "Step Functions Execution Status Change"  # the detail-type of EventBridge's events
GROUPS_UPGRADED = "GroupsUpgraded"
UPGRADES_FAILED = "UpgradesFailed"
telemetry = Telemetry("upgrade")


@entry_point("upgrade")
@answers_account_check
def upgrade(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Run one step: `{"step", "run", "execution"?, "error"?, "cause"?}` -> the run document. For EventBridge's event
    that an execution ended: restore what it left -> what was restored.
    """
    if event.get("detail-type") == ENDED:
        from leeward.upgrade.reconciler import handle_failed_execution

        return died(handle_failed_execution(event["detail"], wiring.invocation_ports(context)))
    from leeward.upgrade.managed.steps import STEPS as MANAGED_STEPS
    from leeward.upgrade.steps import STEPS

    ports = wiring.invocation_ports(context)
    result = take_step(event, {**STEPS, **MANAGED_STEPS}, UpgradeRun.from_json, ports)
    stepped(event["step"], result)
    return result.to_json()


def stepped(step: str, result: UpgradeRun) -> None:
    """Write one line a step; a metric when an upgrade has come to an end."""
    log_step(telemetry, step, result)
    ended = result.next in {UpgradeNext.UPGRADED, UpgradeNext.ROLLED_BACK}
    name = GROUPS_UPGRADED if ended else UPGRADES_FAILED if step == "note-failure" else None
    if name is not None:
        telemetry.count({name: 1}, *scopes_of(result.cluster, result.group))


def died(outcome: str) -> dict[str, str]:
    """Write one line for an execution that ended where nothing could catch it; its alarm is Step
    Functions' own metric.
    """
    telemetry.warning(outcome)
    return {"why": outcome}


initialize()
