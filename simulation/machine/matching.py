"""Matching of Retry and Catch rules to an error, and the delay of a retry.

The rules are those of the Step Functions developer guide, "Handling errors in Step Functions workflows"."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from simulation.machine.execution import DATA_LIMIT, HEARTBEAT, RUNTIME, TASK_FAILED, TIMEOUT

Rule = Mapping[str, Any]  # a retrier or a catcher


def matches(names: Sequence[str], error: str) -> bool:
    """Return whether `ErrorEquals` covers an error.

    Nothing covers States.Runtime, and only its own name States.DataLimitExceeded. States.Timeout covers missed
    heartbeats; States.TaskFailed covers everything but time-outs.
    """
    if error == RUNTIME:
        return False
    if error in names:
        return True
    if error == DATA_LIMIT:
        return False
    timed_out = error in {TIMEOUT, HEARTBEAT}
    return "States.ALL" in names or (TIMEOUT if timed_out else TASK_FAILED) in names


def catcher_for(catchers: Sequence[Rule], error: str) -> Rule | None:
    """Return the first catcher that covers the error."""
    return next((catcher for catcher in catchers if matches(catcher["ErrorEquals"], error)), None)


def next_delay(retriers: Sequence[Rule], error: str, tried: dict[int, int], random: Random) -> float | None:
    """Return the seconds until the next try, which `tried` counts; None when the first retrier that covers it is used
    up.
    """
    for number, retrier in enumerate(retriers):
        if not matches(retrier["ErrorEquals"], error):
            continue
        times = tried.get(number, 0)
        if times >= retrier.get("MaxAttempts", 3):
            return None
        tried[number] = times + 1
        wait = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** times
        wait = min(wait, retrier.get("MaxDelaySeconds", wait))
        return random.uniform(0, wait) if retrier.get("JitterStrategy") == "FULL" else float(wait)
    return None
