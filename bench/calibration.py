"""Loop whose time shows how fast this machine is now."""

import time
from collections.abc import Callable


def calibration_seconds(clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds for ten million additions on one core; with `time.process_time`, the seconds in which it had
    the core.
    """
    began, total = clock(), 0
    for number in range(10_000_000):
        total += number
    return clock() - began
