"""Healthy pods of workloads at a moment, as the status of their PodDisruptionBudgets counts them, for reports.

A step samples only budgets that it has read for its own decision: no call is made for a report. The samples of a step
are part of its output, which Step Functions keeps with the history: the table holds none, and no later step reads them.
A step has at most MOST_BUDGETS of them with MOST_SAMPLES each: 15 KB with the longest names, of the 256 KB of an
output."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.times import format_instant, parse_instant

MOST_BUDGETS = 20
MOST_SAMPLES = 6  # of one budget in one step: it reads budgets every five seconds, for ten seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSample:
    """Status of a budget, `namespace/name`, at a moment: healthy pods, the fewest that it wants, and all it expects."""

    at: datetime
    budget: str
    healthy: int
    minimum: int
    expected: int


def samples_of(budgets: Iterable[PodDisruptionBudget], pods: Sequence[Pod], at: datetime) -> tuple[HealthSample, ...]:
    """Return a sample of each budget that selects one of the pods, those with the least room first. A budget whose
    status counts no pods yet has none.
    """
    counted = [budget for budget in budgets if budget.expected_pods > 0]
    chosen = sorted(
        (budget for budget in counted if any(budget.selects(pod) for pod in pods)),
        key=lambda budget: (budget.expected_pods - budget.desired_healthy, budget.key),
    )
    return tuple(
        HealthSample(
            at=at,
            budget=budget.key,
            healthy=budget.current_healthy,
            minimum=budget.desired_healthy,
            expected=budget.expected_pods,
        )
        for budget in chosen[:MOST_BUDGETS]
    )


def to_json(samples: Iterable[HealthSample]) -> dict[str, Any]:
    """Return `{budget: [minimum, expected, [[time, healthy], ...]]}`: the first budgets, and the last samples of each;
    minimum and expected are those of the last one.
    """
    found: dict[str, list[HealthSample]] = {}
    for sample in samples:
        if sample.budget in found or len(found) < MOST_BUDGETS:
            found.setdefault(sample.budget, []).append(sample)
    return {
        budget: [
            several[-1].minimum,
            several[-1].expected,
            [[format_instant(one.at), one.healthy] for one in several[-MOST_SAMPLES:]],
        ]
        for budget, several in found.items()
    }


def from_json(document: Mapping[str, Any]) -> tuple[HealthSample, ...]:
    """Return the samples in an output of a step; none for an output of another form."""
    try:
        return tuple(
            HealthSample(
                at=parse_instant(at), budget=budget, healthy=int(healthy), minimum=int(minimum), expected=int(expected)
            )
            for budget, (minimum, expected, samples) in document.items()
            for at, healthy in samples
        )
    except (AttributeError, TypeError, ValueError):
        return ()
