"""Lanes of workloads from the samples that the steps of an execution took: upgrades at every look, drains where an
eviction was refused or a second replica considered, runs at each validation.

A lane is a Deployment, or a PodDisruptionBudget: its status counts healthy pods, however many workloads it selects."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from leeward.budgets import healthy_pods
from leeward.budgets.healthy_pods import HealthSample
from leeward.cli.report.facts import ReportFacts
from leeward.cli.report.record import Sample, WorkloadLane

NEVER = datetime.min.replace(tzinfo=UTC)


def workload_lanes(facts: ReportFacts) -> tuple[WorkloadLane, ...]:
    """Return a lane for each budget and Deployment that a step has read, by its name."""
    found: dict[str, dict[HealthSample, None]] = {}
    for sample in sorted(_samples(facts), key=lambda one: one.at):
        if sample.at <= facts.end:
            found.setdefault(sample.workload, {})[sample] = None
    return tuple(_lane(workload, tuple(samples)) for workload, samples in sorted(found.items()))


def merged_lanes(lanes: Iterable[WorkloadLane]) -> tuple[WorkloadLane, ...]:
    """Merge lanes of several executions: those of one name become one, with the numbers of the one observed last."""
    found: dict[str, list[WorkloadLane]] = {}
    for lane in lanes:
        found.setdefault(lane.name, []).append(lane)
    return tuple(_merged(several) for _, several in sorted(found.items()))


def _merged(lanes: list[WorkloadLane]) -> WorkloadLane:
    samples = sorted((sample for lane in lanes for sample in lane.samples), key=lambda sample: sample.at)
    ends = [lane.until for lane in lanes if lane.until is not None]
    last = max(lanes, key=lambda lane: max((sample.at for sample in lane.samples), default=NEVER))
    return replace(last, samples=tuple(samples), until=max(ends) if len(ends) == len(lanes) else None)


def _samples(facts: ReportFacts) -> Iterator[HealthSample]:
    stories = (story.steps for several in facts.stories.values() for story in several)
    for steps in (facts.steps, *stories):
        for step in steps:
            yield from healthy_pods.from_json(step.output.get("healthy") or {})


def _lane(workload: str, samples: tuple[HealthSample, ...]) -> WorkloadLane:
    """Build a lane; of equal samples one after the other the first is kept, and the last one's time as its end."""
    changes = [
        Sample(at=one.at, ready=one.healthy)
        for before, one in zip((None, *samples), samples, strict=False)
        if before is None or before.healthy != one.healthy
    ]
    last = samples[-1]
    return WorkloadLane(
        name=workload, desired=last.expected, minimum=last.minimum, samples=tuple(changes), until=last.at
    )
