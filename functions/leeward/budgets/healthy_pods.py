"""Healthy pods of workloads at a moment, as the status of their PodDisruptionBudgets or Deployments counts them, for
reports.

A step samples only objects that it has read for its own decision: no call is made for a report. The samples of a step
are part of its output, which Step Functions keeps with the history: the table holds none, and no later step reads them.
A step has at most MOST_WORKLOADS with MOST_SAMPLES each: 15 KB with the longest names, of the 256 KB of an output."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leeward.budgets.pdb import PdbIndex
from leeward.model.pod import Deployment, Pod, PodDisruptionBudget
from leeward.model.times import format_instant, parse_instant

MOST_WORKLOADS = 20
MOST_SAMPLES = 6  # of one budget in one step: it reads budgets every five seconds, for ten seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSample:
    """Status of a PodDisruptionBudget (`namespace/name`) or of a Deployment (`deployment namespace/name`) at a moment:
    healthy pods, the fewest that the budget wants (None: no budget), and all that are expected.
    """

    at: datetime
    workload: str
    healthy: int
    minimum: int | None
    expected: int


def samples_of(budgets: Iterable[PodDisruptionBudget], pods: Iterable[Pod], at: datetime) -> tuple[HealthSample, ...]:
    """Return a sample of each budget that selects one of the pods, those with the least room first. A budget whose
    status counts no pods yet has none.
    """
    index = PdbIndex(budget for budget in budgets if budget.expected_pods > 0)
    selecting = {budget.key: budget for pod in pods for budget in index.selecting(pod)}
    chosen = sorted(selecting.values(), key=lambda budget: (budget.expected_pods - budget.desired_healthy, budget.key))
    return tuple(
        HealthSample(
            at=at,
            workload=budget.key,
            healthy=budget.current_healthy,
            minimum=budget.desired_healthy,
            expected=budget.expected_pods,
        )
        for budget in chosen[:MOST_WORKLOADS]
    )


def sample_of(deployment: Deployment, at: datetime) -> HealthSample:
    """Return the sample of a Deployment: its available pods count as healthy."""
    return HealthSample(
        at=at,
        workload=f"deployment {deployment.key}",
        healthy=deployment.available,
        minimum=None,
        expected=deployment.replicas,
    )


def to_json(samples: Iterable[HealthSample]) -> dict[str, Any]:
    """Return `{workload: [minimum, expected, [[time, healthy], ...]]}`: the first workloads, and the last samples of
    each; minimum and expected are those of the last one.
    """
    found: dict[str, list[HealthSample]] = {}
    for sample in samples:
        if sample.workload in found or len(found) < MOST_WORKLOADS:
            found.setdefault(sample.workload, []).append(sample)
    return {
        workload: [
            several[-1].minimum,
            several[-1].expected,
            [[format_instant(one.at), one.healthy] for one in several[-MOST_SAMPLES:]],
        ]
        for workload, several in found.items()
    }


def from_json(document: Mapping[str, Any]) -> tuple[HealthSample, ...]:
    """Return the samples in an output of a step; none for an output of another form."""
    try:
        return tuple(
            HealthSample(
                at=parse_instant(at),
                workload=workload,
                healthy=int(healthy),
                minimum=None if minimum is None else int(minimum),
                expected=int(expected),
            )
            for workload, (minimum, expected, samples) in document.items()
            for at, healthy in samples
        )
    except (AttributeError, TypeError, ValueError):
        return ()
