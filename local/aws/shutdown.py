"""The end of the launcher: every Lambda worker process is ended and collected."""

from __future__ import annotations

from ministack.core import lambda_runtime


def end_workers() -> None:
    """Terminate all Lambda workers, waiting at most ministack's own grace period for all of them together."""
    lambda_runtime.reset()
