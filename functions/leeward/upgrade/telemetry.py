"""Log lines and metrics of the upgrade room, each name declared once (docs/operations.md lists them)."""

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

from leeward.upgrade.run import Next, Run

GROUPS_UPGRADED = "GroupsUpgraded"
UPGRADES_FAILED = "UpgradesFailed"

logger = Logger(service="upgrade")
metrics = Metrics(namespace="Leeward", service="upgrade")


def stepped(step: str, result: Run) -> None:
    """One line a step; a metric when an upgrade has come to an end."""
    logger.info(result.why or result.next.value, extra={"step": step, **result.to_json()})
    ended = result.next in {Next.UPGRADED, Next.ROLLED_BACK}
    name = GROUPS_UPGRADED if ended else UPGRADES_FAILED if step == "note-failure" else None
    if name is not None:
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=1)
        metrics.flush_metrics()


def died(said: str) -> dict[str, str]:
    """One line for an execution that ended where nothing could catch it; its alarm is Step Functions' own metric."""
    logger.warning(said)
    return {"why": said}
