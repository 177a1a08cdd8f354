"""`make fuzz`: bring every target, or those named, to its goal, from where the last run has stopped.

Exit code 0: no input failed. 1: some did; each is in build/fuzz/failures. 2: a wrong command line."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz import progress
from fuzz.progress import Progress
from fuzz.runner import Result, Runner
from fuzz.target import Target
from fuzz.targets import TARGETS

TELL_EVERY = 10.0  # seconds
NO_END = 10**12


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    unknown = sorted(set(options.target) - TARGETS.keys())
    if unknown:
        print(f"--target: found {', '.join(unknown)}, expected some of {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    if options.again is not None:
        return _again(options.again)
    failed = 0
    for name in options.target or TARGETS:
        target = TARGETS[name]()
        try:
            failed += _run(target, options)
        finally:
            target.close()
    return 1 if failed else 0


def _run(target: Target[Any], options: argparse.Namespace) -> int:
    """Run one target, keep what failed, and return how many inputs of it ever failed with this seed."""
    replay = options.first is not None
    before = Progress() if replay else progress.load(target.name, options.seed)
    first = options.first if replay else before.inputs
    goal = first + (options.inputs or NO_END) if replay or options.inputs else round(target.goal * options.share)
    count = max(0, goal - first)
    if replay and options.inputs is None:
        count = 1
    told = _Told(target.name, before, goal)
    result = Runner(target, options.seed, each_second=told).run(first, count, options.seconds)
    after = before.plus(result)
    if not replay:
        progress.save(target.name, options.seed, after)
    for failure in result.failures:
        path = progress.keep(target.name, options.seed, failure)
        print(f"  {target.name} {failure.number}: {failure.kind} ({path})")
    told.finally_(after, result)
    return after.failed


class _Told:
    """Line about a run every ten seconds."""

    def __init__(self, name: str, before: Progress, goal: int) -> None:
        self._name, self._before, self._goal, self._last = name, before, goal, time.monotonic()

    def __call__(self, result: Result) -> None:
        if time.monotonic() - self._last >= TELL_EVERY:
            self._last = time.monotonic()
            self.finally_(self._before.plus(result), result)

    def finally_(self, after: Progress, result: Result) -> None:
        """Print the line."""
        print(
            f"{self._name}: {after.inputs:,} inputs of {self._goal:,}, {after.failed:,} failed, {result.rate:,.0f}/s, "
            f"slowest {after.slowest * 1000:.0f} ms (number {after.slowest_number})",
            flush=True,
        )


def _again(path: Path) -> int:
    """Read a kept input again, the small one, and print what happens."""
    document = json.loads(path.read_text())
    target = TARGETS[document["target"]]()
    runner = Runner(target, document["seed"])
    try:
        kind, trace, taken = runner.failure_of(document["smallest"])
    finally:
        target.close()
    print(f"{document['smallest']!r}\n{trace}{kind or 'it passes'} ({taken * 1000:.0f} ms)")
    return 1 if kind else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--target", action="append", default=[], help=f"one of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, help="replay from this number on, beside the kept progress")
    parser.add_argument("--inputs", type=int, help="with --first: how many (default 1); else: go on up to this number")
    parser.add_argument("--share", type=float, default=1.0, help="of each target's goal")
    parser.add_argument("--seconds", type=float, help="wall time for each target")
    parser.add_argument("--again", type=Path, metavar="FILE", help="read one kept failure again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
