"""Summary of many runs, in lines for readers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from simulation.moves import AGAIN, CALM, CALM_AGAIN, EVICTED, LAUNCHES, LONGEST, MINUTES, TAINTED
from simulation.outcome import Outcome


def summary(outcomes: Sequence[Outcome], seconds: float) -> Iterator[str]:
    """Yield seeds, virtual time, arrivals and faults by kind, checks, violations. `seconds` of the wall clock they
    took.
    """
    days = sum(outcome.days for outcome in outcomes)
    yield f"seeds: {len(outcomes)}, {len(outcomes) * 60 / seconds:.1f} a minute"
    yield f"virtual days: {days:.1f}, {days * 86400 / seconds:.0f} times as fast as the wall clock"
    yield f"events: {sum(outcome.events for outcome in outcomes)}"
    yield f"executions: {sum(outcome.executions for outcome in outcomes)}"
    yield f"records closed: {sum(outcome.terminated for outcome in outcomes)}"
    yield from _counted("arrivals", [outcome.arrivals for outcome in outcomes])
    if any(outcome.disruptions for outcome in outcomes):
        yield from _counted("disruption runs", [outcome.disruptions for outcome in outcomes])
    yield from _counted("faults", [outcome.faults for outcome in outcomes])
    yield from _disturbed([outcome.figures for outcome in outcomes])
    yield f"dead letters: {sum(o.dead_letters for o in outcomes)}, redriven: {sum(o.redriven for o in outcomes)}"
    yield f"hooks of ours that timed out: {sum(outcome.hooks_timed_out for outcome in outcomes)}"
    yield f"invariant checks: {sum(outcome.checks for outcome in outcomes)}"
    yield f"unexpected errors: {sum(len(outcome.unexpected) for outcome in outcomes)}"
    broken = Counter(violation.rule for outcome in outcomes for violation in outcome.violations)
    yield f"violations: {broken.total()}"
    for rule, count in sorted(broken.items()):
        yield f"  {rule.value}: {count}"


def _disturbed(figures: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Yield the figures of the disturbance: sums, shares of them, and the worst seed."""
    whole: Counter[str] = Counter()
    for seed in figures:
        whole.update({name: round(value) for name, value in seed.items()})
    yield f"pods evicted: {whole[EVICTED]}, of these moved within the hour: {_share(whole[AGAIN], whole[EVICTED])}"
    yield f"  for nothing urgent: {whole[CALM]}, of these moved so before: {_share(whole[CALM_AGAIN], whole[CALM])}"
    yield f"launches: {whole[LAUNCHES]} for {whole[TAINTED]} nodes that were under our taint"
    mean = whole[MINUTES] / max(whole[TAINTED], 1)
    longest = max((seed.get(LONGEST, 0) for seed in figures), default=0)
    yield f"minutes under our taint: {mean:.1f} on average, {longest:.0f} at most"


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / max(whole, 1):.1f} %)"


def _counted(title: str, counts: Sequence[Mapping[str, int]]) -> Iterator[str]:
    whole: Counter[str] = Counter()
    for one in counts:
        whole.update(one)
    yield f"{title}: {whole.total()}"
    for name, count in sorted(whole.items()):
        yield f"  {name}: {count}"
