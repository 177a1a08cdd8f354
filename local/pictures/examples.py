"""Example whose report is in the documentation: the termination of a spot instance.

It is made up and follows from this file alone, so that a picture changes only with the report."""

from datetime import UTC, datetime, timedelta

from leeward.budgets.healthy_pods import HealthSample, to_json
from leeward.cli.report.building import build
from leeward.cli.report.facts import ReportFacts, SeenNode, Story
from leeward.cli.report.record import RunRecord
from leeward.model.execution import Execution, ExecutionStatus, Failure, Machine, Step
from leeward.model.group import ScalingActivity
from leeward.model.instance import CapacityType
from leeward.model.termination import (
    Cause,
    CauseKind,
    Outcome,
    Replacement,
    Status,
    Subject,
    TerminationRecord,
)

CLUSTER, GROUP, ZONE = "prod", "web-spot", "eu-west-1a"
WARNED = datetime(2026, 3, 4, 14, 7, 31, tzinfo=UTC)
OLD, NEW = "i-0a1f4c2d9be37701c", "i-0c77d0e52a6f41b98"
NODE, NEW_NODE = "ip-10-0-12-7.eu-west-1.compute.internal", "ip-10-0-31-114.eu-west-1.compute.internal"
HELD = "pdb shop/checkout (allows 0 now, 3 healthy of 3 wanted)"


def after(seconds: float) -> datetime:
    """Return the moment so many seconds after the warning."""
    return WARNED + timedelta(seconds=seconds)


def termination() -> RunRecord:
    """Return the record of a spot instance that EC2 takes; a budget holds one pod up for half a minute."""
    steps = _steps()
    execution = Execution(
        machine=Machine.TERMINATION,
        name=f"{OLD}-1",
        status=ExecutionStatus.SUCCEEDED,
        started=after(1.4),
        stopped=after(128),
        given={"instance": OLD, "attempt": 1},
    )
    launched = ScalingActivity(at=after(3), cause="", enters=NEW, ended=after(44))
    return build(
        ReportFacts(
            execution=execution,
            steps=steps,
            now=after(128),
            cluster=CLUSTER,
            group=GROUP,
            touched=(OLD, NEW),
            terminations={OLD: _record()},
            stories={OLD: (Story(attempt=1, steps=steps),)},
            activities={GROUP: (launched,)},
            nodes={
                NEW: SeenNode(name=NEW_NODE, instance=NEW, zone="eu-west-1b", created=after(30), ready=after(41)),
            },
        )
    )


def _record() -> TerminationRecord:
    warning = Cause(
        id="spot",
        kind=CauseKind.SPOT_INTERRUPTION,
        at=WARNED,
        deadline=after(120),
        reason="EC2 takes the spot instance two minutes after the warning",
    )
    times = {
        "claimed": 1.6,
        "replacement": 3,
        "tainted": 3.4,
        "draining": 3.4,
        "drained": 74,
        "terminating": 94,
        "terminated": 122,
        "closed": 127,
    }
    return TerminationRecord(
        subject=_subject(OLD, NODE, CapacityType.SPOT),
        status=Status.CLOSED,
        attempt=1,
        version=1,
        causes=(warning,),
        times={name: after(seconds) for name, seconds in times.items()},
        replacement=Replacement(launched=(NEW,), reason="eu-west-1b: fewest cores allocated"),
        outcome=Outcome.TERMINATED,
        pods_evicted=12,
    )


def _subject(instance: str, node: str, capacity: CapacityType) -> Subject:
    return Subject(
        instance=instance,
        cluster=CLUSTER,
        group=GROUP,
        zone=ZONE,
        subnet="subnet-0aa1",
        instance_type="m6i.xlarge",
        capacity_type=capacity,
        node=node,
    )


def _steps() -> tuple[Step, ...]:
    held = f"shop/checkout-6d9f-k2x: {HELD}"
    refused = {  # a drain reads the budgets of a namespace where an eviction is refused
        24: [
            *[(16, "shop/checkout", 3, 3, 4), (16, "shop/cart", 2, 1, 2)],
            *[(21, "shop/checkout", 3, 3, 4), (21, "shop/cart", 1, 1, 2)],
        ],
        44: [
            *[(36, "shop/checkout", 3, 3, 4), (36, "shop/cart", 1, 1, 2)],
            *[(43, "shop/checkout", 3, 3, 4), (43, "shop/cart", 2, 1, 2)],
        ],
    }
    why = "eu-west-1b: fewest cores allocated (38 cores; eu-west-1a 46 cores and eu-west-1c 44 cores)"
    return (
        _step("Claim", 1.4, 1.9, "replace", "spot_interruption", attempt=1),
        _step("AskForReplacement", 2, 3.1, "drain", f"launched {NEW} in {why}", tries=1),
        _step("Drain", 3.2, 14, "wait", "12 pods are terminating"),
        _step("Drain", 15, 24, "wait", held, healthy=_samples(refused[24])),
        _step("Drain", 35, 44, "wait", held, healthy=_samples(refused[44])),
        _step("Drain", 49, 58, "wait", "1 pod is terminating"),
        _step("Drain", 66, 74, "drained", "every pod that has to leave has left"),
        _step("Terminate", 94, 95, "answer", f"asked {GROUP} to terminate it"),
        _step("AnswerHooks", 95, 122, "remove", "EC2 says shutting-down"),
        _step("RemoveNode", 122, 124, "finish", f"removed {NODE}"),
        _step("Finish", 124, 127, "done", f"removed {NODE}"),
        _step("Terminated", 128, 128, "done", ""),
    )


def _step(state: str, begin: float, end: float, onward: str, why: str, *, tries: int = 0, **output: object) -> Step:
    failures = (Failure(at=after(begin + 0.3), error="ThrottledError", cause="Rate exceeded"),) if tries else ()
    document = {"next": onward, "why": why, **output}
    return Step(state=state, entered=after(begin), left=after(end), output=document, failures=failures)


def _samples(looks: list[tuple[int, str, int, int, int]]) -> dict[str, object]:
    """Return looks, each (seconds, budget, healthy, minimum, expected), as a step's output has them."""
    return to_json(
        HealthSample(at=after(seconds), workload=budget, healthy=healthy, minimum=minimum, expected=expected)
        for seconds, budget, healthy, minimum, expected in looks
    )
