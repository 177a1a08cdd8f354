"""Shutdown of the launcher: no new Lambda worker is started, and every running one is terminated and collected."""

from __future__ import annotations

from ministack.core import lambda_runtime

from local.aws.lambdas import workers


def end_workers() -> None:
    """Terminate all Lambda workers, waiting at most ministack's own grace period for all of them together."""
    workers.close()
    lambda_runtime.reset()
