"""Live drains: claim the instance for the operator, start its state machine, wake it if it sleeps, and follow it.

Decides which nodes may be terminated; the state machine decides how. Following reads the table's records alone, and
interrupting it stops no drain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from leeward.cli import following
from leeward.cli.drain.targets import DrainTarget
from leeward.cli.progress import Progress
from leeward.errors import TerminalError
from leeward.model.counts import count_of
from leeward.model.drain_options import DrainOptions
from leeward.model.termination import Cause, CauseKind, Outcome, Status, TerminationRecord, execution_name
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Claims
from leeward.termination import execution
from leeward.termination.execution import subject_of

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


def node_of(target: DrainTarget) -> tuple[str, str]:
    """Return (node, instance) of a target."""
    return target.node.name, target.node.instance_id


def start(target: DrainTarget, ports: Ports, request: DrainRequest) -> str:
    """Claim the instance, start its execution and return the execution's name.

    Idempotent: a second cause joins the first one's termination, and there is one execution. Raises RefusedError for a
    node that Leeward may not terminate.
    """
    reason = refusal_of(target, keep=request.options is not None and request.options.keep)
    if reason or target.instance is None:
        raise RefusedError(f"refused: {reason}")
    cause = Cause(
        id=f"manual#{format_instant(request.now)}",
        kind=CauseKind.MANUAL,
        at=request.now,
        deadline=request.deadline,
        reason="leeward drain",
        options=request.options,
    )
    record = ports.claims.claim(subject_of(target.instance, request.cluster, node=target.node.name), cause, request.now)
    record = execution.start(record, ports)
    if record.status is Status.CLOSED:
        raise RefusedError(f"refused: {target.node.name}: its termination has just ended; look again")
    return execution_name(record.instance, record.attempt)


def follow(nodes: Sequence[tuple[str, str]], clock: Clock, claims: Claims, progress: Progress) -> int:
    """Show every change of `nodes`, pairs (name, instance). Return 0 when every node is terminated or kept, 1 when
    one was returned to service or could not be terminated by now, 130 after a Ctrl-C, which leaves everything running.
    A call that fails for now is repeated.
    """
    left, failed = dict(nodes), False

    def show() -> int | None:
        nonlocal failed
        states = {name: look(claims.read(instance)) for name, instance in left.items()}
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
        return f"in service again: {record.failure or by_reboot or 'nothing wants it gone any more'}", False
    if "retry" in record.times and record.failure:
        return f"failed: {record.failure}; tried again at {format_instant(record.times['retry'])}", False
    phase = next((words for name, words in PHASES.items() if name in record.times), "waiting to begin")
    blocked = f", waits for {'; '.join(record.blocked_by)}" if record.blocked_by and phase == "draining" else ""
    return f"{phase}, {count_of(record.pods_evicted, 'pod')} evicted{blocked}", None
