"""Live drains: claim the instance for the operator, start its state machine, wake it if it sleeps, and follow it.

Decides which nodes may be terminated; the state machine decides how. Following reads the table's records alone, and
interrupting it stops no drain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from leeward.cli import following
from leeward.cli.drain.targets import DrainTarget
from leeward.cli.progress import Progress
from leeward.cli.report.causes import NAMES
from leeward.errors import TerminalError
from leeward.model.counts import count_of
from leeward.model.termination import (
    BY_POLICY,
    Cause,
    CauseKind,
    DrainOptions,
    Outcome,
    Status,
    TerminationRecord,
    execution_name,
)
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Claims
from leeward.termination import requests
from leeward.termination.decisions import is_cancelled, why_cancelled
from leeward.termination.requests import subject_of

PHASES: Mapping[str, str] = MappingProxyType(
    {
        "removed": "Node removed",
        "terminated": "terminated",
        "terminating": "terminating",
        "drained": "settling",
        "draining": "draining",
        "tainted": "cordoned",
    }
)
POLL_SECONDS = 2.0
STARTED = "started"
Look = Callable[[TerminationRecord | None], tuple[str, bool | None]]  # the state as a sentence, and how it ended


class RefusedError(TerminalError):
    """Refusal of a command; nothing was changed."""


def refusal_of(target: DrainTarget, *, keep: bool = False) -> str | None:
    """Return the reason why Leeward may not terminate this node, or, with `keep`, not drain it alone. None: it may."""
    if keep and target.gone:
        return f"{target.node.name}: its instance has ended, there is nothing to keep"
    if keep and target.record is not None and not target.record.keeps:
        return f"{target.node.name}: its termination is under way, and --keep does not end it"
    if target.instance is None:
        return f"{target.node.name}: EC2 knows no instance {target.node.instance_id!r} behind it"
    if target.selected is None:
        return f"{target.node.name}: no policy selects its group {target.group!r}, so Leeward leaves it alone"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """Parameters of one call. `options` None: none of kubectl's flags was given, so the policy decides."""

    cluster: str
    deadline: datetime | None
    options: DrainOptions | None
    now: datetime

    @property
    def keeps(self) -> bool:
        """True if it asks for a drain alone."""
        return self.options is not None and self.options.keep

    @property
    def cause(self) -> Cause:
        """Cause that it adds to the termination of a node."""
        return Cause(
            id=f"manual#{format_instant(self.now)}",
            kind=CauseKind.MANUAL,
            at=self.now,
            deadline=self.deadline,
            reason="leeward drain",
            options=self.options,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStart:
    """Result of a request for one node. `said`: started, joined, or that it runs already."""

    execution: str
    said: str


def runs_already(record: TerminationRecord | None, request: DrainRequest) -> bool:
    """Return whether an open drain of an operator does what the request asks for: there is nothing to add to it. A
    termination for another cause is joined, and so is one that other flags, another deadline or a longer way shall end.
    """
    if record is None or not record.has(CauseKind.MANUAL) or (record.keeps and not request.keeps):
        return False
    asked = replace(request.options or BY_POLICY, deadline=request.deadline)
    return asked in {replace(BY_POLICY, keep=record.keeps), record.options}


def under_way(record: TerminationRecord) -> str:
    """Return since when a termination is in progress, why, and its stage."""
    since = format_instant(record.times["claimed"]) if "claimed" in record.times else "its claim"
    kinds = ", ".join(dict.fromkeys(NAMES[cause.kind] for cause in record.causes))
    return f"since {since}{f' ({kinds})' if kinds else ''}: {look(record)[0]}"


def start(target: DrainTarget, ports: Ports, request: DrainRequest) -> DrainStart:
    """Claim the instance and start its execution.

    Idempotent: a second cause joins the first one's termination, and there is one execution; a request that adds
    nothing to it changes nothing. Raises RefusedError for a node that Leeward may not terminate.
    """
    reason = refusal_of(target, keep=request.keeps)
    if reason or target.instance is None:
        raise RefusedError(f"refused: {reason}")
    known = ports.claims.read(target.instance.id)
    record = known if known is not None and known.status is Status.OPEN else None
    if record is not None and runs_already(record, request):
        if ports.executions.running(record.instance, record.attempt):
            said = f"runs already {under_way(record)}"
            return DrainStart(execution=execution_name(record.instance, record.attempt), said=said)
        started = requests.start(record, ports)
    else:
        subject = subject_of(target.instance, request.cluster, group=target.group, node=target.node.name)
        started = requests.start(ports.claims.claim(subject, request.cause, request.now), ports)
    if started.status is Status.CLOSED:
        raise RefusedError(f"refused: {target.node.name}: its termination has just ended; look again")
    name = execution_name(started.instance, started.attempt)
    said = STARTED if record is None else f"joined the termination in progress {under_way(record)}"
    return DrainStart(execution=name, said=said)


def follow(
    nodes: Mapping[str, str], clock: Clock, claims: Claims, progress: Progress, judged: Look | None = None
) -> int:
    """Show every change of `nodes`, name -> instance, as `judged` (default: `look`) tells it. Return 0 when every node
    has ended as it was to, 1 when one was returned to service or could not be terminated by now, 130 after a Ctrl-C,
    which leaves everything running. A call that fails for now is repeated.
    """
    left, failed, judge = dict(nodes), False, judged or look

    def show() -> int | None:
        nonlocal failed
        states = {name: judge(claims.read(instance)) for name, instance in left.items()}
        progress.show({name: line for name, (line, _) in states.items()}, clock.now())
        for name, (_, ended) in states.items():
            if ended is not None:
                del left[name]
                failed = failed or not ended
        return None if left else int(failed)

    return following.follow(show, lambda: list(left), clock, progress, POLL_SECONDS)


def look(record: TerminationRecord | None) -> tuple[str, bool | None]:
    """Return the state as a sentence, and the result: True terminated or kept, False failed or in service, None if it
    is under way.
    """
    if record is None:
        return "nothing is written down about it any more", False
    if record.status is Status.CLOSED:
        if record.outcome is Outcome.KEPT:
            return f"drained and cordoned, its instance is kept, {count_of(record.pods_evicted, 'pod')} evicted", True
        if record.outcome is Outcome.TERMINATED:
            return f"gone, {count_of(record.pods_evicted, 'pod')} evicted", True
        by_reboot = "it was rebooted" if record.outcome is Outcome.REBOOTED else ""
        return f"in service again: {record.failure or by_reboot or _cancelled(record)}", False
    if "retry" in record.times and record.failure:
        return f"failed: {record.failure}; tried again at {format_instant(record.times['retry'])}", False
    phase = next((words for name, words in PHASES.items() if name in record.times), "waiting to begin")
    phase = "returning to service" if is_cancelled(record) else phase
    blocked = f", waits for {'; '.join(record.blocked_by)}" if record.blocked_by and phase == "draining" else ""
    return f"{phase}, {count_of(record.pods_evicted, 'pod')} evicted{blocked}", None


def _cancelled(record: TerminationRecord) -> str:
    """Return why no cause requests the termination any more, where a cause was taken back."""
    withdrawn = any(cause.withdrawn for cause in record.earlier_causes)
    return why_cancelled(record) if withdrawn else "nothing wants it gone any more"
