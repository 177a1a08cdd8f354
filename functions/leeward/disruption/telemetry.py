"""Log lines and metrics of the disruption room, each name declared once (docs/operations.md lists them)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

from leeward.disruption.run import Next, RoundRun
from leeward.errors import LeewardError

if TYPE_CHECKING:  # the rounds' steps start cold without the search for candidates
    from leeward.disruption.deciding import Decided

ROUNDS_DONE = "RoundsDone"
ROUNDS_GIVEN_UP = "RoundsGivenUp"

logger = Logger(service="disruption")
metrics = Metrics(namespace="Leeward", service="disruption")


def decided(found: Decided) -> dict[str, Any]:
    """One line a call. Raises LeewardError for clusters that could not be looked at: an alarm watches for it."""
    (logger.warning if found.errors else logger.info)("decided", extra=found.to_json())
    if found.errors:
        raise LeewardError("; ".join(found.errors))
    return found.to_json()


def stepped(step: str, result: RoundRun) -> None:
    """One line a step; a metric when a round has come to an end."""
    logger.info(result.why or result.next.value, extra={"step": step, **result.to_json()})
    name = {Next.DONE: ROUNDS_DONE, Next.GIVEN_UP: ROUNDS_GIVEN_UP}.get(result.next)
    if name is not None:
        _count(name)


def _count(name: str) -> None:
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=1)
    metrics.flush_metrics()
