"""Run records with defaults: `a_record(nodes=[a_node()])`; times are seconds after noon."""

from datetime import UTC, datetime, timedelta

from leeward.cli.report.record import (
    Mark,
    MarkKind,
    NodeLane,
    Phase,
    RunRecord,
    Sample,
    Source,
    Span,
    WorkloadLane,
)

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def a_span(phase="ready", begin=0, end=60):
    return Span(phase=Phase(phase), begin=at(begin), end=at(end))


def a_node(name="node-a", spans=None, zone="us-east-1a", group="web", instance="i-0123456789abcdef0"):
    spans = [a_span()] if spans is None else spans
    return NodeLane(name=name, instance=instance, group=group, zone=zone, capacity_type="spot", spans=tuple(spans))


def a_workload(name="web", desired=3, minimum=2, ready=((0, 3),)):
    samples = tuple(Sample(at=at(seconds), ready=count) for seconds, count in ready)
    return WorkloadLane(name=name, desired=desired, minimum=minimum, samples=samples)


def a_mark(seconds=5, kind="event", text="a spot warning", node=None, workload=None, internal=False):
    return Mark(at=at(seconds), kind=MarkKind(kind), text=text, node=node, workload=workload, internal=internal)


def a_record(nodes=(), workloads=(), marks=(), start=0, end=60, source=Source.LOCAL, **more):
    return RunRecord(
        source=source,
        start=at(start),
        end=at(end),
        nodes=tuple(nodes),
        workloads=tuple(workloads),
        marks=tuple(sorted(marks, key=lambda mark: mark.at)),
        **more,
    )


def a_full_record():
    """Every phase, every kind of mark, a workload with and one without a PDB minimum."""
    phases = ("launching", "ready", "cordoned", "draining", "settling", "terminated")
    spans = [a_span(phase, begin=10 * index, end=10 * index + 10) for index, phase in enumerate(phases)]
    return a_record(
        nodes=[a_node(spans=spans), a_node(name="node-b", zone="us-east-1b", instance="i-0b")],
        workloads=[a_workload(ready=((0, 3), (31, 1), (40.5, 3))), a_workload(name="batch", minimum=None)],
        marks=[
            a_mark(5, "event", "a spot warning", node="node-a"),
            a_mark(31, "blocked", "PodDisruptionBudget web refused", workload="web"),
            a_mark(33, "fault", "the API server did not answer"),
            a_mark(21, "decision", "replacement asked for", node="node-a"),
        ],
    )
