"""Log lines and metrics of the upgrade package, each name declared once (docs/reference/metrics.md lists them)."""

from leeward.telemetry import Telemetry, scopes_of
from leeward.upgrade.run import Next, Run
from leeward.workflow.steps import log_step

GROUPS_UPGRADED = "GroupsUpgraded"
UPGRADES_FAILED = "UpgradesFailed"
telemetry = Telemetry("upgrade")


def stepped(step: str, result: Run) -> None:
    """Write one line a step; a metric when an upgrade has come to an end."""
    log_step(telemetry, step, result)
    ended = result.next in {Next.UPGRADED, Next.ROLLED_BACK}
    name = GROUPS_UPGRADED if ended else UPGRADES_FAILED if step == "note-failure" else None
    if name is not None:
        telemetry.count({name: 1}, *scopes_of(result.cluster, result.group))


def died(outcome: str) -> dict[str, str]:
    """Write one line for an execution that ended where nothing could catch it; its alarm is Step
    Functions' own metric.
    """
    telemetry.warning(outcome)
    return {"why": outcome}
