"""A loop whose time tells how fast this machine is today."""

import time


def calibration_seconds() -> float:
    """Seconds for ten million additions on one core."""
    began, total = time.perf_counter(), 0
    for number in range(10_000_000):
        total += number
    return time.perf_counter() - began
