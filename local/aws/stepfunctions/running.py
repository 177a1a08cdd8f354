"""Execution of each thread, so that sleeping and waiting threads notice when their execution has ended."""

from __future__ import annotations

import contextvars
from typing import Any

current_execution: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar("execution", default=None)


class ExecutionEnded(SystemExit):
    """End of an execution by stop or time-out: the thread unwinds past Retry and Catch, and ends silently."""


def check() -> None:
    """Raise ``ExecutionEnded`` when this thread's execution no longer runs."""
    execution = current_execution.get()
    if execution is not None and execution["status"] != "RUNNING":
        raise ExecutionEnded
