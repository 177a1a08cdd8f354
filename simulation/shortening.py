"""Shortener of the story of a failing world: fewer arrivals, fewer kinds of faults, fewer hours, fewer nodes, as long
as the same rule still breaks. Greedy and deterministic; it tries a bounded number of worlds.

Arrivals are reduced by delta debugging: remove a half, then a quarter, in the end each single one. Source: Zeller and
Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.outcome import Outcome
from simulation.rule import Rule

MOST_RUNS = 200
MORE_ENTRIES = 2  # times those of the failing run: a shorter world that has more is none
FEWEST = 5  # nodes: smaller fleets are worlds of their own
LEAST_HOURS = 0.1

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """Smallest world found in which `rule` still breaks; `runs` worlds were tried for it."""

    case: Case
    rule: Rule
    outcome: Outcome
    runs: int


def shorten(case: Case, failed: Outcome, say: Say, most_runs: int = MOST_RUNS) -> Shortened | None:
    """Search from a case that has failed. None where it broke no rule (an unexpected error has no rule), or does not
    break it again.
    """
    if not failed.violations:
        return None
    return _Shortener(failed.violations[0].rule, most_runs, failed.events * MORE_ENTRIES, say).run(case)


class _Shortener:
    """One search."""

    def __init__(self, rule: Rule, most_runs: int, limit: int, say: Say) -> None:
        self._rule, self._left, self._limit, self._say = rule, most_runs, limit, say
        self._runs = 0

    def run(self, case: Case) -> Shortened | None:
        """Try each reduction in turn, arrivals once more at the end: without some faults fewer of them are needed."""
        best = replace(case, arrivals=case.planned())
        if not self._breaks(best):
            return None
        smaller = (self._less_time, self._fewer_nodes, self._fewer_arrivals)
        for way in (self._fewer_arrivals, self._fewer_faults, self._fewer_features, *smaller):
            best = way(best)
        outcome = best.run(enough=lambda violation: violation.rule is self._rule, limit=self._limit)
        return Shortened(case=best, rule=self._rule, outcome=outcome, runs=self._runs)

    def _fewer_arrivals(self, case: Case) -> Case:
        size = max(len(case.planned()) // 2, 1)
        while case.arrivals and self._left > 0:
            taken = next((smaller for smaller in _without_a_part(case, size) if self._breaks(smaller)), None)
            if taken is not None:
                case = taken
                self._say(f"{len(case.planned())} arrivals are enough")
            elif size == 1:
                break
            else:
                size = max(size // 2, 1)
        return case

    def _fewer_faults(self, case: Case) -> Case:
        if self._breaks(calm := replace(case, faults=Faults.none())):
            self._say("no faults are needed")
            return calm
        for field in fields(Faults):
            if getattr(case.faults, field.name) == getattr(Faults(), field.name):
                continue
            without = replace(case, faults=case.faults.without(field.name))
            if self._breaks(without):
                case = without
                self._say(f"not needed: {field.name}")
        return case

    def _fewer_features(self, case: Case) -> Case:
        for name in case.features:
            without = replace(case, features=tuple(one for one in case.features if one != name))
            if self._breaks(without):
                case = without
                self._say(f"not needed: {name}")
        return case

    def _less_time(self, case: Case) -> Case:
        while case.hours / 2 >= LEAST_HOURS:
            shorter = replace(case, hours=case.hours / 2)
            if not self._breaks(shorter):
                break
            case = shorter
            self._say(f"{case.hours:g} hours are enough")
        return case

    def _fewer_nodes(self, case: Case) -> Case:
        nodes = case.size
        for fewer in sorted({FEWEST, FEWEST * 2, nodes // 4, nodes // 2}):
            smaller = replace(case, nodes=fewer)
            if FEWEST <= fewer < nodes and self._breaks(smaller):
                self._say(f"{fewer} nodes are enough")
                return smaller
        return case

    def _breaks(self, case: Case) -> bool:
        """Return whether the rule breaks there as well; false once the runs are used up."""
        if self._left <= 0:
            return False
        self._left -= 1
        self._runs += 1
        outcome = case.run(enough=lambda violation: violation.rule is self._rule, limit=self._limit)
        return any(violation.rule is self._rule for violation in outcome.violations)


def _without_a_part(case: Case, size: int) -> Iterator[Case]:
    """Yield the case once without each stretch of so many arrivals, the latest first: a late arrival rarely matters."""
    arrivals = case.planned()
    for start in reversed(range(0, len(arrivals), size)):
        yield replace(case, arrivals=arrivals[:start] + arrivals[start + size :])
