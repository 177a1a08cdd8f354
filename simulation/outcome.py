"""Outcome of a run, for readers and for the command line."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from simulation.rule import Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of one run. `days` of virtual time, `events` of the timeline, `unexpected` errors that no product code
    raises on purpose.
    """

    seed: int
    days: float
    events: int
    checks: int
    faults: Mapping[str, int]
    arrivals: Mapping[str, int]
    violations: tuple[Violation, ...]
    unexpected: tuple[str, ...]
    executions: int
    terminated: int
    dead_letters: int
    redriven: int  # of the dead letters, those that were delivered too often
    hooks_timed_out: int  # of ours, by their group's default result
    digest: str
    story: tuple[str, ...]
    figures: Mapping[str, float] = field(default_factory=dict)  # of the disturbance (`moves.Moves`)
    disruptions: Mapping[str, int] = field(default_factory=dict)  # of disruption, by method and how they ended

    @property
    def failed(self) -> bool:
        """True if anything was wrong."""
        return bool(self.violations or self.unexpected)


def sums(counts: Iterable[Counter[str]]) -> dict[str, int]:
    """Return the counts of all together, by name."""
    return dict(sorted(sum(counts, Counter[str]()).items()))
