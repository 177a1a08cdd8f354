"""A thousand spot warnings at once.

fn interruption in process against an emulated cluster of a thousand nodes: at most 10 s of its own work on one core
until all are tainted; calls a node and work a node do not grow with the storm. The whole chain runs in virtual time,
smooth and rough (each message three times, a fifth of all requests to AWS throttled), and both have to reach the same
end; and the whole chain runs for fifty on the local stack, printed without a target. LOCAL=0 omits the local stack, and
`HANDLED=10,100 CHAIN=100 LOCAL=5 python -m bench storm` is shorter.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import storm_limits, storm_local
from bench.calibration import calibration_seconds
from bench.storm_chain import Chain, Way, storm
from bench.storm_world import READY
from local import lifeline

SIZES = (10, 100, 1000)
TARGET_SECONDS = 10.0
GROWTH = 1.5  # work a node at 1,000 against 100
SHOWN = 5  # broken invariants in full
START_SECONDS = 60
FUNCTIONS = Path(__file__).resolve().parent.parent / "functions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """One storm in process; seconds and calls of all nodes together."""

    count: int
    cpu: float
    wall: float
    tainted: int
    failed: int
    aws: int
    kubernetes: int
    megabytes: int
    growth: int


def run() -> bool:
    """Print everything; return whether every target is met."""
    met = handler()
    met = chain(int(os.environ.get("CHAIN", "1000"))) and met
    met = storm_limits.run(os.environ.get("LIMITS", ""), breaks=os.environ.get("BREAKS") == "1") and met
    local = int(os.environ.get("LOCAL", str(storm_local.COUNT)))
    return (storm_local.run(local) if local else True) and met


def handler() -> bool:
    """Run storms of ten, a hundred and a thousand."""
    sizes = os.environ.get("HANDLED")
    rows = [handled(count) for count in (map(int, sizes.split(",")) if sizes else SIZES)]
    print("fn interruption in process, batches of 100, emulated Kubernetes API and AWS:")
    for row in rows:
        print(
            f"  {row.count:5} warnings: {row.tainted} tainted, {row.failed} to be delivered again,"
            f" {row.cpu:.2f} s of CPU ({row.cpu / row.count * 1000:.1f} ms a node), {row.wall:.1f} s in all;"
            f" calls a node: AWS {row.aws / row.count:.2f}, Kubernetes {row.kubernetes / row.count:.2f};"
            f" {row.megabytes} MB (+{row.growth})"
        )
    few, many = rows[-2:]
    growth = (many.cpu / many.count) / (few.cpu / few.count)
    print(
        f"  work a node, 1,000 against 100: {growth:.2f} x (target {GROWTH} x); target {TARGET_SECONDS:.0f} s of CPU,"
        f" of which the calibration loop takes {calibration_seconds(time.process_time):.2f} s beside this"
    )
    sys.stdout.flush()
    whole = all(row.tainted == row.count and not row.failed for row in rows)
    return whole and many.cpu <= TARGET_SECONDS and growth <= GROWTH


def handled(count: int) -> Handled:
    """Run one storm of so many nodes, in a process of its own beside one that emulates its environment."""
    with tempfile.TemporaryDirectory(prefix="leeward-bench-") as name:
        directory = Path(name)
        environment = {**os.environ, "PYTHONPATH": str(FUNCTIONS)}
        world = lifeline.start("bench.storm_world", name, str(count), log=directory / "log", environment=environment)
        try:
            _await(directory / READY)
            done = subprocess.run(
                [sys.executable, "-m", "bench.storm_handler", name, str(count)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
        finally:
            world.terminate()
            lifeline.release(world, 10)
    return Handled(count=count, **json.loads(done.stdout.splitlines()[-1]))


def _await(file: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not file.exists():
        if time.monotonic() > deadline:
            raise TimeoutError((file.parent / "log").read_text()[-2000:])
        time.sleep(0.1)


def chain(count: int) -> bool:
    """Run every variant in virtual time: all reach the same end, and none breaks an invariant."""
    print(f"the whole chain, {count:,} warnings in one second, virtual time:")
    found = [_reported(storm(count, way), way) for way in Way]
    return _alike(found) and all(_good(one, count) and not one.violations for one in found)


def _reported(found: Chain, way: Way) -> Chain:
    print(
        f"  {way.value}: last node tainted after {found.tainted:.0f} s, last one gone after {found.gone:.0f} s,"
        f" {found.executions} executions, messages lost {found.end.lost}, invariants broken {len(found.violations)},"
        f" {found.cpu:.0f} s of CPU"
    )
    for violation in found.violations[:SHOWN]:
        print(f"    {violation}")
    sys.stdout.flush()
    return found


def _alike(found: Sequence[Chain]) -> bool:
    same = all(one.end == found[0].end for one in found)
    print("  the same end" if same else f"  DIFFERENT ENDS: {[one.end for one in found]}")
    return same


def _good(found: Chain, count: int) -> bool:
    """Return whether every warned instance is terminated and replaced and nothing was lost."""
    end = found.end
    whole = (end.desired, end.in_service, end.left_tainted, end.waiting, end.lost) == (count, count, 0, 0, 0)
    return whole and dict(end.outcomes) == {"terminated": count}
