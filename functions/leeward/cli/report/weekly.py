"""Weeks of a cluster in figures: nodes replaced by cause, deadlines kept, time blocked by owner, dollars saved.

Calculates from termination records and from the times at which pods did not leave; `weekly_facts.py` reads both."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from leeward.cli.report.causes import ORDER, main_kind
from leeward.model.blocked import BlockedLine
from leeward.model.deadlines import known_deadline
from leeward.model.termination import CauseKind, Outcome, TerminationRecord

_BUDGET = re.compile(r"pdb ([^\s,(]+)")
HOUR = timedelta(hours=1)
HOURS_A_MONTH = 730  # as AWS' price lists count


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """Time in which one pod did not leave its node, and the owner of what blocked it (see `owner_of`)."""

    owner: str
    instance: str
    pod: str
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekFacts:
    """Facts of the period from `begin` to `end`, as they were read at `end`. `missing`: a sentence for each fact that
    could not be read.
    """

    cluster: str
    begin: datetime
    end: datetime
    records: Sequence[TerminationRecord] = ()
    stays: Sequence[Stay] = ()
    missing: Sequence[str] = ()

    def contains(self, at: datetime) -> bool:
        """Return whether the moment is of the period; all of the second of its end is, as `now` has no fractions."""
        return self.begin <= at and at.replace(microsecond=0) <= self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One node that left in the period. `deadline`: when it had to be empty, None without one; `kept`: whether its pods
    had left by then, None where it never had to drain. `spare`: from the last pod to the deadline.
    """

    instance: str
    node: str
    group: str
    cause: CauseKind
    at: datetime
    pods: int
    launched: int
    drain: timedelta | None = None
    deadline: datetime | None = None
    kept: bool | None = None
    spare: timedelta | None = None
    saves: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseRow:
    """Nodes of one cause. `spare`: of those that kept their deadline, together; `least`: the smallest."""

    cause: CauseKind
    nodes: int
    launched: int
    pods: int
    kept: int
    missed: int
    spare: timedelta
    least: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRow:
    """Time for which one owner held nodes back, summed over nodes: two pods of one node at a time count once."""

    owner: str
    pods: int
    nodes: int
    blocked: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Nodes removed by consolidation whose saving is known. `rate`: dollars an hour; `so_far`: from each end until the
    end of the period.
    """

    nodes: int
    rate: float
    so_far: float

    @property
    def a_month(self) -> float:
        """Dollars in a month of 730 hours."""
        return self.rate * HOURS_A_MONTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """Figures of the period. `returned`: nodes that went back to service because their pods did not leave."""

    cluster: str
    begin: datetime
    end: datetime
    ended: tuple[Ended, ...]
    causes: tuple[CauseRow, ...]
    owners: tuple[OwnerRow, ...]
    savings: Savings
    returned: int
    missing: tuple[str, ...]

    @property
    def deadlines(self) -> tuple[int, int]:
        """Number of deadlines that were kept, and of all."""
        kept, missed = sum(row.kept for row in self.causes), sum(row.missed for row in self.causes)
        return kept, kept + missed

    @property
    def blocked(self) -> timedelta:
        """Time blocked by all owners together."""
        return sum((row.blocked for row in self.owners), timedelta())


def calculate(facts: WeekFacts) -> Weekly:
    """Calculate the figures. A node counts in the period in which it ended."""
    ended = tuple(sorted(_ended(facts), key=lambda one: (one.at, one.instance)))
    return Weekly(
        cluster=facts.cluster,
        begin=facts.begin,
        end=facts.end,
        ended=ended,
        causes=tuple(_cause_rows(ended)),
        owners=tuple(_owner_rows(facts)),
        savings=_savings(ended, facts.end),
        returned=sum(_returned(record, facts) for record in facts.records),
        missing=tuple(facts.missing),
    )


def ended_at(record: TerminationRecord) -> datetime | None:
    """Return when the instance ended, None while it has not."""
    if record.outcome is not Outcome.TERMINATED:
        return None
    return record.times.get("terminated") or record.times.get("closed")


def _ended(facts: WeekFacts) -> Iterable[Ended]:
    for record in facts.records:
        at, cause = ended_at(record), main_kind(cause.kind for cause in record.causes)
        if at is not None and cause is not None and facts.contains(at):
            yield _of_record(record, cause, at)


def _of_record(record: TerminationRecord, cause: CauseKind, at: datetime) -> Ended:
    subject, times = record.subject, record.times
    begun, drained = times.get("draining"), times.get("drained")
    noticed = min(one.at for one in record.causes)
    deadline = known_deadline(record, noticed)
    left = drained is not None and not any(BlockedLine.read(line).pod for line in record.blocked_by)
    kept = None if deadline is None or begun is None else left and drained is not None and drained <= deadline
    return Ended(
        instance=record.instance,
        node=subject.node or record.instance,
        group=subject.group or "",
        cause=cause,
        at=at,
        pods=record.pods_evicted,
        launched=len(record.replacement.launched) if record.replacement else 0,
        drain=drained - begun if drained is not None and begun is not None else None,
        deadline=deadline,
        kept=kept,
        spare=deadline - drained if kept and deadline is not None and drained is not None else None,
        saves=next((one.saves for one in record.causes if one.saves is not None), None),
    )


def _returned(record: TerminationRecord, facts: WeekFacts) -> bool:
    closed = record.times.get("closed")
    back = record.outcome is Outcome.RETURNED_TO_SERVICE and bool(record.failure)
    return back and closed is not None and facts.contains(closed)


def _cause_rows(ended: Sequence[Ended]) -> Iterable[CauseRow]:
    """Yield the rows, the most nodes first."""
    rows = []
    for cause in ORDER:
        nodes = [one for one in ended if one.cause is cause]
        spare = [one.spare for one in nodes if one.spare is not None]
        if nodes:
            rows.append(
                CauseRow(
                    cause=cause,
                    nodes=len(nodes),
                    launched=sum(one.launched for one in nodes),
                    pods=sum(one.pods for one in nodes),
                    kept=sum(one.kept is True for one in nodes),
                    missed=sum(one.kept is False for one in nodes),
                    spare=sum(spare, timedelta()),
                    least=min(spare, default=None),
                )
            )
    return sorted(rows, key=lambda row: -row.nodes)


def _owner_rows(facts: WeekFacts) -> Iterable[OwnerRow]:
    """Yield the rows, the longest time first; only the part of each stay within the period counts."""
    by_owner: dict[str, list[Stay]] = {}
    for stay in facts.stays:
        if stay.begin < facts.end and stay.end > facts.begin:
            by_owner.setdefault(stay.owner, []).append(stay)
    rows = [
        OwnerRow(
            owner=owner,
            pods=len({(stay.instance, stay.pod) for stay in stays}),
            nodes=len({stay.instance for stay in stays}),
            blocked=_together(stays, facts),
        )
        for owner, stays in by_owner.items()
    ]
    return sorted(rows, key=lambda row: (-row.blocked, row.owner))


def _together(stays: Sequence[Stay], facts: WeekFacts) -> timedelta:
    """Sum the union of the stays of each node."""
    total = timedelta()
    for instance in {stay.instance for stay in stays}:
        until = facts.begin
        for stay in sorted((one for one in stays if one.instance == instance), key=lambda one: one.begin):
            begin, end = max(stay.begin, until), min(stay.end, facts.end)
            total += max(end - begin, timedelta())
            until = max(until, end)
    return total


def _savings(ended: Sequence[Ended], until: datetime) -> Savings:
    known = [(one.saves, max(until - one.at, timedelta())) for one in ended if one.saves is not None]
    return Savings(
        nodes=len(known),
        rate=sum(rate for rate, _ in known),
        so_far=sum(rate * (span / HOUR) for rate, span in known),
    )


def owner_of(line: BlockedLine) -> str:
    """Return the owner of an obstacle: the PodDisruptionBudget, webhook or policy that the line names, else the pod
    itself.
    """
    budget = _BUDGET.search(line.why)
    if budget is not None:
        return f"pdb {budget[1]}"
    obstacle = line.obstacle
    if obstacle is not None:
        return obstacle.name if obstacle.stage.value == "server" else f"{obstacle.stage.value} {obstacle.name}"
    return f"pod {line.pod}"
