"""Time from event to tainted node on the local stack, cold start included in the first run. Target: p95 of 2 s plus the
queue's batching window of 1 s."""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from local.demo import ledger, scenario
from local.fleet import GroupPlan, build_group, build_network, instances_of
from local.stack import LocalStack
from local.workloads import apply_roles

RUNS = 20
TARGET_SECONDS = 2.0 + 1.0
WAIT_SECONDS = 60


def run() -> bool:
    """Deploy, warn twenty spot instances one after the other, print the spread."""
    with (
        tempfile.TemporaryDirectory(prefix="leeward-bench-") as directory,
        LocalStack(directory=Path(directory)) as stack,
    ):
        prepare(stack)
        seconds = measure(stack, RUNS)
    return report(seconds)


def prepare(stack: LocalStack) -> None:
    """A spot group with one instance for each run, and Leeward deployed."""
    build_group(stack, build_network(stack), GroupPlan(name=scenario.SPOT, size=RUNS, spot=True, maximum=2 * RUNS + 5))
    stack.deploy(scenario.settings(stack))
    apply_roles(stack)
    wanted = {member["InstanceId"] for member in instances_of(stack, scenario.SPOT)}
    until(lambda: sum(scenario.is_ready(node) for name, node in ledger.nodes(stack).items() if name in wanted) == RUNS)


def measure(stack: LocalStack, runs: int) -> list[float]:
    """Return the seconds from each event to its node's taint, seen through the Kubernetes API."""
    seconds = []
    for member in instances_of(stack, scenario.SPOT)[:runs]:
        instance = str(member["InstanceId"])
        began = time.monotonic()
        stack.emit(scenario.spot_warning(stack, instance))
        until(partial(_tainted, stack, instance))
        seconds.append(time.monotonic() - began)
    return seconds


def _tainted(stack: LocalStack, instance: str) -> bool:
    nodes = ledger.nodes(stack)
    return instance not in nodes or ledger.is_tainted(nodes[instance])


def report(seconds: list[float]) -> bool:
    """Print p50 and p95; return whether the target is met."""
    ordered = sorted(seconds)
    p95 = ordered[max(0, -(-95 * len(ordered) // 100) - 1)]
    p50 = statistics.median(ordered)
    print(f"spot warning to node tainted, {len(ordered)} runs on the local stack:")
    print(f"  p50 {p50:.2f} s, p95 {p95:.2f} s, slowest {ordered[-1]:.2f} s (target p95 {TARGET_SECONDS:.0f} s)")
    return p95 <= TARGET_SECONDS


def until(true: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    """Poll every 20 ms until the condition holds."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.02)
