"""Time-outs and pauses of single states: JSONata expressions are evaluated, everything is scaled by one clock.

Retry delays honour MaxDelaySeconds and JitterStrategy. Token waits are in ``tokens``, executions in ``executions``.
"""

from __future__ import annotations

import contextvars
import functools
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ministack.services import stepfunctions as machine

from local.aws.lambdas import workers
from local.aws.pins import expect_parameters
from local.aws.stepfunctions import running
from local.aws.stepfunctions.clock import ScaledClock

_TIMED_FIELDS = ("TimeoutSeconds", "HeartbeatSeconds")
_DEFAULT_BACKOFF = 2.0


def install(clock: ScaledClock, jitter: random.Random) -> None:
    """Patch the waits, the task time-outs and the retry delays."""
    expect_parameters("ministack", machine._execute_task, "state_def", "raw_input", "execution", "ctx")
    expect_parameters("ministack", machine._invoke_resource_with_timeout, "resource", "input_data", "timeout")
    expect_parameters("ministack", machine._scaled_sleep, "seconds")
    expect_parameters("ministack", machine._sleep_until, "iso_ts")
    expect_parameters("ministack", machine._find_matching_retrier, "retriers", "error", "retry_counts")
    expect_parameters("ministack", machine._error_matches, "error_equals", "error")
    machine._execute_task = _evaluating(machine._execute_task)
    machine._scaled_sleep = lambda seconds: clock.sleep(seconds, running.check)
    machine._sleep_until = lambda timestamp: clock.sleep(_seconds_until(timestamp), running.check)
    machine._invoke_resource_with_timeout = functools.partial(_invoke_in_time, clock)
    machine._find_matching_retrier = _delaying(machine._find_matching_retrier, jitter)
    machine._error_matches = _matching(machine._error_matches)


def _evaluating(original: Callable[..., Any]) -> Callable[..., Any]:
    """Evaluate TimeoutSeconds and HeartbeatSeconds when the task is entered: they may be expressions."""

    @functools.wraps(original)
    def execute_task(state_def: dict[str, Any], raw_input: Any, execution: dict[str, Any], ctx: dict[str, Any]) -> Any:
        running.check()
        timed = {
            name: machine._jsonata_state_field(state_def, name, "number", raw_input, ctx)
            for name in _TIMED_FIELDS
            if isinstance(state_def.get(name), str)
        }
        for name in _TIMED_FIELDS:
            if f"{name}Path" in state_def:
                timed[name] = machine._resolve_path_or_ctx(state_def[f"{name}Path"], raw_input, ctx)
        return original({**state_def, **timed}, raw_input, execution, ctx)

    return execute_task


def _invoke_in_time(clock: ScaledClock, resource: str, input_data: Any, timeout: float) -> Any:
    """Run a task; after its time-out it continues without effect, as a Lambda does, and the state fails."""
    outcome: list[tuple[bool, Any]] = []
    done = threading.Event()

    def work() -> None:
        workers.patience.set(workers.PATIENCE_SECONDS)
        try:
            outcome.append((True, machine._invoke_resource(resource, input_data)))
        except Exception as failure:
            outcome.append((False, failure))
        finally:
            done.set()

    threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    deadline = clock.now() + float(timeout)
    while not done.wait(clock.slice_until(deadline)):
        running.check()
        if clock.now() >= deadline:
            raise machine._ExecutionError("States.Timeout", "")
    succeeded, value = outcome[0]
    if not succeeded:
        raise value
    return value


def _delaying(original: Callable[..., Any], jitter: random.Random) -> Callable[..., Any]:
    """Return the matching retrier, with the delay of this very attempt as its constant interval."""

    @functools.wraps(original)
    def find(retriers: Sequence[Mapping[str, Any]], error: str, retry_counts: Mapping[int, int]) -> Any:
        retrier, index = original(retriers, error, retry_counts)
        if retrier is None:
            return retrier, index
        growth = float(retrier.get("BackoffRate", _DEFAULT_BACKOFF)) ** retry_counts.get(index, 0)
        delay = min(
            float(retrier.get("IntervalSeconds", 1)) * growth, float(retrier.get("MaxDelaySeconds", 31_622_400))
        )
        if retrier.get("JitterStrategy") == "FULL":
            delay = jitter.uniform(0, delay)
        return {**retrier, "IntervalSeconds": delay, "BackoffRate": 1}, index

    return find


def _matching(original: Callable[..., bool]) -> Callable[..., bool]:
    """Match an error: ``States.Timeout`` covers missed heartbeats, and ``States.TaskFailed`` covers no time-out."""

    @functools.wraps(original)
    def matches(error_equals: Sequence[str], error: str) -> bool:
        if error != "States.HeartbeatTimeout":
            return original(error_equals, error)
        return bool({"States.ALL", "States.Timeout", error} & set(error_equals))

    return matches


def _seconds_until(timestamp: str) -> float:
    try:
        target = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except (ValueError, AttributeError):
        return 0.0
    return max(0.0, (target - datetime.now(UTC)).total_seconds())
