"""`python -m simulation`: many seeds, one line each that fails, and the sum; exit 1 when an invariant was broken.

The first failing seed is run again and again with less in it, until its story is short."""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from leeward.errors import InvalidInputError
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.features import Feature, drawn
from simulation.finished import Finished
from simulation.fleets import FEWEST_NODES, MOST_NODES
from simulation.outcome import Outcome
from simulation.record import Recorder
from simulation.shortening import MOST_RUNS, Shortened, shorten
from simulation.summary import summary
from simulation.world import World

SHORTENED = Path(".local/simulation")
HOURS, PER_HOUR = 1.0, 30.0
SPARSELY = 0.3  # arrivals in an hour of a world that lasts weeks
DRAWN = "drawn"
REPORT_EVERY = 25  # seeds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Exit code 0 when nothing was found, 1 for violations, 2 for a wrong command line."""
    options = _parser().parse_args(arguments)
    if options.record:
        return _record(_cases(options)[0], options.record)
    if options.weeks:
        options.hours, options.per_hour = 168 * options.weeks, min(options.per_hour, SPARSELY)
    cases = _replayed(options.replay) if options.replay else _cases(options)
    begun, outcomes, shortened = time.perf_counter(), list[Outcome](), False
    finished = Finished(options.resume) if options.resume else None
    for number, case in enumerate(cases, start=1):
        outcome = _outcome(case, finished)
        outcomes.append(replace(outcome, story=()))  # so that memory does not grow with the seeds
        _say(case, outcome, options)
        if outcome.failed and options.shorten and not shortened and not options.replay:
            shortened = True
            _shorten(case, outcome, options.runs)
        if number % REPORT_EVERY == 0:
            _report(number, len(cases), outcomes, time.perf_counter() - begun)
    print("\n".join(summary(outcomes, time.perf_counter() - begun)))
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def _outcome(case: Case, finished: Finished | None) -> Outcome:
    """Return the outcome of a case: the recorded one, or that of running it, which is recorded."""
    if finished is None:
        return case.run()
    outcome = finished.outcome(case)
    if outcome is None:
        outcome = case.run()
        finished.add(case, outcome)
    return outcome


def run(seed: int, hours: float, per_hour: float, faults: Faults) -> Outcome:
    """Run the world of one seed: its fleet, its arrivals and its faults all come from it."""
    return Case(seed=seed, hours=hours, per_hour=per_hour, faults=faults).run()


def world_of(seed: int, hours: float, per_hour: float, faults: Faults, nodes: int | None = None) -> World:
    """Build the same world before it runs, for a caller that watches it."""
    return Case(seed=seed, hours=hours, per_hour=per_hour, faults=faults, nodes=nodes).world()


def _record(case: Case, path: Path) -> int:
    """Write one seed's run as a run record for `leeward report`."""
    world = case.world()
    recorder = Recorder(world, case.hours)
    outcome = world.run(case.hours)
    path.write_text(json.dumps(recorder.record().to_json()))
    print(f"record of seed {case.seed}: {path}")
    return 1 if outcome.failed else 0


def _cases(options: argparse.Namespace) -> Sequence[Case]:
    faults = Faults.none() if options.no_faults else Faults.all()
    return [
        Case(
            seed=seed,
            hours=options.hours,
            per_hour=options.per_hour,
            nodes=options.nodes,
            faults=faults,
            upgrades=options.upgrades,
            disruption=options.disruption,
            features=_features(options, seed),
        )
        for seed in range(options.first_seed, options.first_seed + options.seeds)
    ]


def _features(options: argparse.Namespace, seed: int) -> tuple[str, ...]:
    """Return the features that are named; `drawn` among the names adds those that the seed draws."""
    names = {name.strip() for name in options.features.split(",")} - {""}
    features = drawn(seed) if DRAWN in names else frozenset()
    try:
        return tuple(sorted(features | {Feature(name) for name in names - {DRAWN}}))
    except ValueError as error:
        expected = ", ".join(Feature)
        raise InvalidInputError(f"--features: found {options.features}, expected some of {expected}") from error


def _replayed(path: Path) -> Sequence[Case]:
    try:
        return [Case.from_json(path.read_text())]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"--replay {path}: found no readable file: {error}") from error
    except InvalidInputError as error:
        raise InvalidInputError(f"--replay {path}: {error}") from error


def _say(case: Case, outcome: Outcome, options: argparse.Namespace) -> None:
    if options.story or options.replay:
        print("\n".join(outcome.story))
    if options.verbose or options.story or outcome.failed:
        print(
            f"seed {outcome.seed}: {outcome.events} events, {outcome.terminated} terminations, "
            f"{len(outcome.violations)} violations, history {outcome.digest[:16]}"
        )
    for problem in (*outcome.violations, *(f"unexpected {text}" for text in outcome.unexpected)):
        print(f"  {problem}")
    if outcome.failed and not options.replay:
        print(f"  replay: {_command(case)}", flush=True)


def _command(case: Case) -> str:
    nodes = f" --nodes {case.nodes}" if case.nodes else ""
    faults = " --no-faults" if case.faults == Faults.none() else ""
    per_hour = f" --per-hour {case.per_hour:g}"
    hours = f" --hours {case.hours:g}" + (f" --upgrades {case.upgrades:g}" if case.upgrades else "")
    hours += " --disruption" if case.disruption else ""
    hours += f' --features "{", ".join(case.features)}"'
    return f"python -m simulation --seeds 1 --first-seed {case.seed}{hours}{per_hour}{nodes}{faults} --story"


def _report(done: int, all_: int, outcomes: Sequence[Outcome], seconds: float) -> None:
    broken = sum(len(outcome.violations) for outcome in outcomes)
    print(
        f"{done} of {all_} seeds, {done * 60 / seconds:.1f} a minute, {broken} violations", file=sys.stderr, flush=True
    )


def _shorten(case: Case, outcome: Outcome, runs: int) -> None:
    print(f"shortening the story of seed {case.seed}", file=sys.stderr, flush=True)
    found = shorten(case, outcome, lambda line: print(f"  {line}", file=sys.stderr, flush=True), runs)
    if found is None:
        print("  not shortened: no invariant, or not the same one, breaks again")
        return
    SHORTENED.mkdir(parents=True, exist_ok=True)
    path = SHORTENED / f"seed-{case.seed}.json"
    path.write_text(found.case.to_json())
    print("\n".join(_reported(found)))
    print(f"  replay: python -m simulation --replay {path}", flush=True)


def _reported(found: Shortened) -> Sequence[str]:
    case, none = found.case, Faults()
    kinds = [name for name in Faults.__slots__ if getattr(case.faults, name) != getattr(none, name)]
    arrivals = case.planned()
    return [
        f"shortened in {found.runs} runs: {found.rule.value}",
        f"  {case.hours:g} hours, {case.size} nodes, {len(arrivals)} arrivals, faults: {', '.join(kinds) or 'none'}",
        *(f"  at {arrival.at_seconds:.0f} s: {arrival.kind.value}" for arrival in arrivals),
        *(f"  {line}" for line in found.outcome.story),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    add = parser.add_argument
    add("--seeds", type=_whole(1), default=20, help="how many (default 20)")
    add("--first-seed", "--seed", type=_whole(0), default=1, help="the first of them, or the one to record")
    add("--hours", type=_above_nothing, default=HOURS, help=f"virtual hours with arrivals and faults ({HOURS:g})")
    add(
        "--weeks",
        type=_above_nothing,
        default=0,
        help="instead of hours, with few arrivals: maintenance two weeks ahead",
    )
    add("--per-hour", type=_above_nothing, default=PER_HOUR, help=f"arrivals in a virtual hour ({PER_HOUR:g})")
    add("--upgrades", type=_above_nothing, default=0, help="upgrades of node groups begun in a virtual hour (0)")
    add("--disruption", action="store_true", help="runs of expiration, drift, emptiness and consolidation as well")
    add(
        "--features",
        default=DRAWN,
        help="of the worlds, by name, with commas between; drawn (the default): as each seed says",
    )
    add("--nodes", type=_whole(FEWEST_NODES, MOST_NODES), help="in each fleet (as each seed says)")
    add("--no-faults", action="store_true", help="only arrivals")
    add("--story", action="store_true", help="print what happened")
    add("--verbose", action="store_true", help="a line for each seed")
    add("--shorten", action=argparse.BooleanOptionalAction, default=True, help="the story of the first failing seed")
    add("--runs", type=_whole(1), default=MOST_RUNS, help=f"how many shorter worlds to try ({MOST_RUNS})")
    add("--record", type=Path, metavar="FILE", help="write the first seed's run for `leeward report`")
    add("--resume", type=Path, metavar="FILE", help="record finished seeds there, and run only those that it lacks")
    add("--replay", type=Path, metavar="FILE", help="run a shortened world again and print its story")
    return parser


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    expected = f"a whole number from {least}" + (f" to {most}" if most else "")

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"found {text}, expected {expected}")
        return int(text)

    return parse


def _above_nothing(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"found {text}, expected a number above 0")
    return number


if __name__ == "__main__":
    gc.freeze()  # what is imported stays, and few objects of a world are in cycles
    gc.set_threshold(50_000, 20, 20)
    try:
        sys.exit(main())
    except InvalidInputError as error:
        print(f"simulation: {error}", file=sys.stderr)
        sys.exit(2)
