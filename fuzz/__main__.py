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
from fuzz.runner import Failure, Result, Runner
from fuzz.target import Target
from fuzz.targets import TARGETS

REPORT_EVERY = 10.0  # seconds


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
    """Run one target, keep what fails, and return how many inputs failed: of this run, and kept ones that still do."""
    replay = options.first is not None
    before = Progress() if replay else progress.load(target.name, options.seed)
    first = options.first if replay else before.inputs
    goal = first + (options.inputs or 1) if replay else options.inputs or round(target.goal * options.share)
    still = 0 if replay else sum(_still_fails(target, path) for path in progress.kept(target.name))
    run = _Run(target.name, options.seed, before, goal, kept=not replay)
    runner = Runner(target, options.seed, each_second=run.went_on, on_failure=run.failed)
    result = runner.run(first, max(0, goal - first), options.seconds)
    run.report(result)
    return still + result.failed


def _still_fails(target: Target[Any], path: Path) -> bool:
    """Return whether a kept input still fails; the file of one that passes is removed."""
    document = json.loads(path.read_text())
    kind, _, _ = Runner(target, document["seed"]).failure_of(document["value"])
    print(f"  {path}: {f'still {kind}' if kind else 'fixed'}", flush=True)
    if not kind:
        path.unlink()
    return bool(kind)


class _Run:
    """One run: its progress in a file, unless it is a replay, and a line about it every ten seconds."""

    def __init__(self, name: str, seed: int, before: Progress, goal: int, *, kept: bool) -> None:
        self._name, self._seed, self._before, self._goal, self._kept = name, seed, before, goal, kept
        self._reported = time.monotonic()

    def went_on(self, result: Result) -> None:
        """Record the progress of the run; a run that is killed resumes there."""
        if self._kept:
            progress.save(self._name, self._seed, self._before.plus(result))
        if time.monotonic() - self._reported >= REPORT_EVERY:
            self.report(result)

    def failed(self, failure: Failure) -> None:
        """Keep the input and name its file."""
        path = progress.keep(self._name, self._seed, failure)
        print(f"  {self._name} {failure.number}: {failure.kind} ({path})", flush=True)

    def report(self, result: Result) -> None:
        """Print the line."""
        self._reported = time.monotonic()
        sum_ = self._before.plus(result)
        print(
            f"{self._name}: {sum_.inputs:,} inputs of {self._goal:,}, {result.failed:,} failed, {result.rate:,.0f}/s, "
            f"slowest {sum_.slowest * 1000:.0f} ms (number {sum_.slowest_number})",
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
