"""A week of a cluster with defaults: terminations, and times in which pods did not leave, in hours after Monday."""

from datetime import UTC, datetime, timedelta

from leeward.cli.report.weekly import Stay, WeekFacts
from leeward.model.termination import Cause, CauseKind, Outcome, Replacement, Status, TerminationRecord
from tests.fakes.builders import a_subject

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
END = MONDAY + timedelta(days=7)


def at(hours, seconds=0):
    return MONDAY + timedelta(hours=hours, seconds=seconds)


def an_ended(number, kind, hours, *, deadline=None, drained=60, pods=5, saves=None, launched=False, **more):
    """A node that was claimed at that hour and drained so many seconds later; `deadline` in seconds after the hour."""
    instance = f"i-{number:017x}"
    cause = Cause(
        id=f"{kind.value}#{number}",
        kind=kind,
        at=at(hours),
        deadline=None if deadline is None else at(hours, deadline),
        saves=saves,
    )
    times = {"claimed": at(hours, 1), "begun": at(hours, 2), "draining": at(hours, 2)}
    if drained is not None:
        times["drained"] = at(hours, drained)
    record = {
        "subject": a_subject(instance, node=f"node-{number}"),
        "status": Status.CLOSED,
        "attempt": 1,
        "version": 1,
        "causes": (cause,),
        "times": {**times, "terminated": at(hours, 150), "closed": at(hours, 160)},
        "outcome": Outcome.TERMINATED,
        "pods_evicted": pods,
        "replacement": Replacement(launched=(f"i-new-{number}",)) if launched else None,
    }
    return TerminationRecord(**{**record, **more})


def a_stay(owner="pdb shop/api", *, instance="i-1", pod="shop/api-1", begin=1.0, end=2.0):
    return Stay(owner=owner, instance=instance, pod=pod, begin=at(begin), end=at(end))


def a_week(records=(), stays=(), missing=()):
    return WeekFacts(
        cluster="prod", begin=MONDAY, end=END, records=tuple(records), stays=tuple(stays), missing=tuple(missing)
    )


def a_full_week():
    """Every section of the page has something."""
    spot, drift, empty = CauseKind.SPOT_INTERRUPTION, CauseKind.DRIFTED, CauseKind.UNDERUTILIZED
    records = [
        *(an_ended(n, spot, 10 + n, deadline=120, drained=50 + n, launched=True) for n in range(8)),
        an_ended(8, spot, 30, deadline=120, drained=118, blocked_by=("shop/api-1: pdb shop/api",)),
        *(an_ended(n, drift, 40 + n, pods=9) for n in range(9, 14)),
        *(an_ended(n, empty, 100 + n, pods=2, saves=0.096) for n in range(14, 17)),
        an_ended(17, CauseKind.SCHEDULED_CHANGE, 120, deadline=86_400, drained=90),
        an_ended(18, drift, 130, outcome=Outcome.RETURNED_TO_SERVICE, failure="PodEvictionFailure: its time is over"),
    ]
    stays = [
        a_stay(),
        a_stay(pod="shop/api-2", begin=1.5, end=2.5),
        a_stay(instance="i-2", begin=4, end=4.25),
        a_stay("webhook guard.example.com", instance="i-3", pod="blog/x", begin=9, end=9.1),
    ]
    return a_week(records, stays, ["Blocked time is of the 200 longest of 240 drains."])
