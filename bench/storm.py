"""A thousand spot warnings at once.

fn interruption in process against an emulated cluster of a thousand nodes: at most 10 s of its own work on one core
until all are tainted; calls a node and work a node do not grow with the storm. The whole chain in virtual time, smooth
and rough (each message three times, a fifth of all calls to AWS throttled), which have to end alike; and the whole
chain for fifty on the local stack, printed without a target. `CHAIN=100 LOCAL=0 python -m bench storm` is shorter."""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench import storm_local
from bench.storm_chain import Chain, storm
from bench.storm_world import READY
from local import lifeline

SIZES = (10, 100, 1000)
TARGET_SECONDS = 10.0
GROWTH = 1.5  # work a node at 1,000 against 100
START_SECONDS = 60
FUNCTIONS = Path(__file__).resolve().parent.parent / "functions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """One storm in process; seconds, calls of all of it."""

    count: int
    cpu: float
    wall: float
    marked: int
    failed: int
    aws: int
    kubernetes: int
    megabytes: float
    growth: float


def run() -> bool:
    """Print everything; whether every target is met."""
    met = handler()
    met = chain(int(os.environ.get("CHAIN", "1000"))) and met
    if os.environ.get("LOCAL") != "0":
        met = storm_local.run() and met
    return met


def handler() -> bool:
    """Ten, a hundred, a thousand."""
    rows = [_handle(count) for count in SIZES]
    print("fn interruption in process, batches of 100, emulated Kubernetes API and AWS:")
    for row in rows:
        print(
            f"  {row.count:5} warnings: {row.marked} tainted, {row.failed} to be delivered again,"
            f" {row.cpu:.2f} s of CPU ({row.cpu / row.count * 1000:.1f} ms a node), {row.wall:.1f} s in all;"
            f" calls a node: AWS {row.aws / row.count:.2f}, Kubernetes {row.kubernetes / row.count:.2f};"
            f" {row.megabytes:.0f} MB (+{row.growth:.0f})"
        )
    few, many = rows[-2:]
    growth = (many.cpu / many.count) / (few.cpu / few.count)
    print(f"  work a node, 1,000 against 100: {growth:.2f} x (target {GROWTH} x); target {TARGET_SECONDS:.0f} s of CPU")
    sys.stdout.flush()
    whole = all(row.marked == row.count and not row.failed for row in rows)
    return whole and many.cpu <= TARGET_SECONDS and growth <= GROWTH


def _handle(count: int) -> Handled:
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
    """Both ways in virtual time."""
    smooth, rough = storm(count), storm(count, rough=True)
    print(f"the whole chain, {count:,} warnings in one second, virtual time:")
    _shown("every call answered", smooth)
    _shown("each message three times, a fifth of the calls throttled", rough)
    same = smooth.end == rough.end
    print(f"  {'both end in the same state' if same else f'DIFFERENT ENDS: {smooth.end} {rough.end}'}")
    sys.stdout.flush()
    return same and _good(smooth, count) and _good(rough, count)


def _good(found: Chain, count: int) -> bool:
    """Everybody is gone and replaced, nothing was lost, no invariant broken."""
    end = found.end
    whole = (end.desired, end.in_service, end.marked, end.waiting, end.lost) == (count, count, 0, 0, 0)
    return whole and dict(end.outcomes) == {"terminated": count} and not found.violations


def _shown(how: str, found: Chain) -> None:
    print(
        f"  {how}: last node tainted after {found.tainted:.0f} s, last one gone after {found.gone:.0f} s,"
        f" {found.executions} executions, messages lost {found.end.lost}, invariants broken {found.violations},"
        f" {found.cpu:.0f} s of CPU"
    )
