"""Lanes of workloads from the samples that the steps of an execution took: upgrades of every look, drains where an
eviction was refused, runs at each validation.

A lane is a PodDisruptionBudget: its status counts healthy pods, however many workloads it selects."""

from collections.abc import Iterator

from leeward.budgets import healthy_pods
from leeward.budgets.healthy_pods import HealthSample
from leeward.cli.report.facts import Facts
from leeward.cli.report.record import Sample, WorkloadLane


def workload_lanes(facts: Facts) -> tuple[WorkloadLane, ...]:
    """Return a lane for each budget that a step has read, by its name."""
    found: dict[str, dict[HealthSample, None]] = {}
    for sample in sorted(_samples(facts), key=lambda one: one.at):
        if sample.at <= facts.end:
            found.setdefault(sample.budget, {})[sample] = None
    return tuple(_lane(budget, tuple(samples)) for budget, samples in sorted(found.items()))


def _samples(facts: Facts) -> Iterator[HealthSample]:
    stories = (story.steps for several in facts.stories.values() for story in several)
    for steps in (facts.steps, *stories):
        for step in steps:
            yield from healthy_pods.from_json(step.output.get("healthy") or {})


def _lane(budget: str, samples: tuple[HealthSample, ...]) -> WorkloadLane:
    """Build a lane; of equal samples one after the other the first is kept, and the last one's time as its end."""
    changes = [
        Sample(at=one.at, ready=one.healthy)
        for before, one in zip((None, *samples), samples, strict=False)
        if before is None or before.healthy != one.healthy
    ]
    last = samples[-1]
    return WorkloadLane(name=budget, desired=last.expected, minimum=last.minimum, samples=tuple(changes), until=last.at)
