"""`python -m simulation`: many seeds, one line each, and the sum; exit 1 when an invariant was broken."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from leeward.errors import InvalidInputError
from simulation import fleets
from simulation.faults import Faults
from simulation.outcome import Outcome
from simulation.timeline import Streams
from simulation.world import World


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when nothing was found, 1 for violations, 2 for a wrong command line."""
    options = _parser().parse_args(arguments)
    begun, outcomes = time.perf_counter(), []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        outcome = run(seed, options.hours, options.per_hour, Faults.none() if options.no_faults else Faults.all())
        outcomes.append(_kept(outcome))
        _say(outcome, options)
    _sum(outcomes, time.perf_counter() - begun)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def run(seed: int, hours: float, per_hour: float, faults: Faults) -> Outcome:
    """The world of one seed: its fleet, what arrives and what goes wrong all come from it."""
    streams = Streams(seed)
    fleet = fleets.generate(streams.stream("fleet plan"))
    arrivals = fleets.arrivals(fleet, streams.stream("arrivals"), hours, per_hour)
    return World(seed, fleet, faults, arrivals).run(hours)


def _kept(outcome: Outcome) -> Outcome:
    """Without its story, so that memory does not grow with the seeds."""
    return replace(outcome, story=())


def _say(outcome: Outcome, options: argparse.Namespace) -> None:
    if options.story:
        print("\n".join(outcome.story))
    if options.verbose or options.story or outcome.failed:
        print(
            f"seed {outcome.seed}: {outcome.events} events, {outcome.terminated} terminations, "
            f"{len(outcome.violations)} violations, history {outcome.digest[:16]}"
        )
    for problem in (*outcome.violations, *(f"unexpected {text}" for text in outcome.unexpected)):
        print(f"  {problem}")
    if outcome.failed:
        per_hour = f" --per-hour {options.per_hour:g}" + (" --no-faults" if options.no_faults else "")
        print(f"  replay: {outcome.replay(options.hours)}{per_hour}", flush=True)


def _sum(outcomes: Sequence[Outcome], seconds: float) -> None:
    faults: Counter[str] = Counter()
    arrivals: Counter[str] = Counter()
    for outcome in outcomes:
        faults.update(outcome.faults)
        arrivals.update(outcome.arrivals)
    days = sum(outcome.days for outcome in outcomes)
    print(f"seeds: {len(outcomes)}, {len(outcomes) * 60 / seconds:.1f} a minute")
    print(f"virtual days: {days:.1f}, {days * 86400 / seconds:.0f} times as fast as the wall clock")
    print(f"events: {sum(outcome.events for outcome in outcomes)}")
    print(f"executions: {sum(outcome.executions for outcome in outcomes)}")
    print(f"records closed: {sum(outcome.terminated for outcome in outcomes)}")
    for title, counts in (("arrivals", arrivals), ("faults", faults)):
        print(f"{title}: {sum(counts.values())}")
        for name, count in sorted(counts.items()):
            print(f"  {name}: {count}")
    print(f"dead letters: {sum(o.dead_letters for o in outcomes)}, redriven: {sum(o.redriven for o in outcomes)}")
    print(f"hooks of ours that timed out: {sum(outcome.hooks_timed_out for outcome in outcomes)}")
    print(f"invariant checks: {sum(outcome.checks for outcome in outcomes)}")
    print(f"unexpected errors: {sum(len(outcome.unexpected) for outcome in outcomes)}")
    print(f"violations: {sum(len(outcome.violations) for outcome in outcomes)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=_positive, default=20, help="how many")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=4.0, help="virtual hours with arrivals and faults (default 4)")
    parser.add_argument("--per-hour", type=float, default=30.0, help="arrivals in a virtual hour (default 30)")
    parser.add_argument("--no-faults", action="store_true", help="only arrivals")
    parser.add_argument("--story", action="store_true", help="print what happened")
    parser.add_argument("--verbose", action="store_true", help="a line for each seed")
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text}, expected a whole number from 1")
    return int(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InvalidInputError as error:
        sys.exit(f"simulation: {error}")
