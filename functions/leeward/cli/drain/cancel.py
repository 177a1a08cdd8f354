"""`leeward drain --cancel`: take drains back that only an operator has requested.

Decides which drains can still end so. The causes are taken out of the termination's record, and its execution, which is
woken, returns the node to service as after any termination that nothing requests any more: Leeward's taint goes, and
its cordon and label where they are noted as its own. Each step can be repeated. An execution that has just asked the
group to terminate the instance cannot be stopped; following it tells so."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leeward.cli.context import ClusterContext, context_of
from leeward.cli.drain.flags import is_followed, options_of
from leeward.cli.drain.live import follow, look
from leeward.cli.drain.targets import Selection, nodes_of
from leeward.cli.fixes import fix_lines
from leeward.cli.output import emit
from leeward.cli.progress import Progress
from leeward.cli.report.causes import NAMES
from leeward.errors import InvalidInputError, LeewardError
from leeward.model.counts import count_of
from leeward.model.node import Node
from leeward.model.termination import BY_POLICY, CauseKind, Outcome, Status, TerminationRecord, execution_name
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.termination import requests
from leeward.termination.decisions import is_cancelled

NOTHING = "no drain of it is in progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """Result for one node. `cancelled`: its drain ends, or has ended so; `execution`: the one that returns the node,
    None where nothing is left to do.
    """

    node: Node
    said: str
    cancelled: bool = False
    execution: str | None = None
    evicted: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the document that `docs/schema/drain.json` describes."""
        return {
            "node": self.node.name,
            "cancelled": self.cancelled,
            "execution": self.execution,
            "podsEvicted": self.evicted,
            "said": self.said,
        }


def cancel(arguments: argparse.Namespace, selection: Selection) -> int:
    """Cancel the drains of the selected nodes, print a line each, and follow them. Return 1 if a drain continues."""
    _check(arguments)
    context = context_of(arguments, "drain")
    nodes = nodes_of(context, selection)
    results = [_called_off(node, context, alone=len(nodes) == 1) for node in nodes]
    documents = [result.to_json() for result in results]
    emit(documents[0] if len(arguments.nodes) == 1 else documents, arguments.view, lambda: _report(results))
    failed = int(any(not result.cancelled for result in results))
    returning = {result.node.name: result.node.instance_id for result in results if result.execution is not None}
    if not (returning and is_followed(arguments)):
        return failed
    return max(failed, follow(returning, context.ports.clock, context.ports.claims, Progress(), look_back))


def _check(arguments: argparse.Namespace) -> None:
    """Check that nothing else was asked for. Raises InvalidInputError."""
    if arguments.snapshot is not None:
        raise InvalidInputError("drain --cancel: found --snapshot, expected --cluster NAME: it is live alone")
    if arguments.dry_run or options_of(arguments) != BY_POLICY:
        raise InvalidInputError("drain: found --cancel with flags of a drain, expected --cancel alone: it starts none")


def _called_off(node: Node, context: ClusterContext, *, alone: bool) -> Cancellation:
    """Cancel the drain of one node. The failure of one among others is said beside it, that of a node alone raised."""
    try:
        return call_off(node, context.ports, context.options)
    except LeewardError as error:
        if alone:
            raise
        return Cancellation(node=node, said=f"not cancelled: {error}")


def call_off(node: Node, ports: Ports, options: str) -> Cancellation:
    """Take the causes of the node's drain back and let its execution return the node to service. Idempotent: a drain
    that was cancelled before is said to be, and its execution is woken once more. `options`: those that name the
    cluster.
    """
    record = ports.claims.read(node.instance_id) if node.instance_id else None
    if record is None:
        return Cancellation(node=node, said=NOTHING)
    if record.status is Status.CLOSED:
        return _closed(node, record)
    if reason := _why_not(record, options):
        return Cancellation(node=node, said=reason, evicted=record.pods_evicted)
    for cause in record.causes:
        record = ports.claims.withdraw(record.instance, cause.id)
    if not is_cancelled(record):
        return Cancellation(node=node, said=f"came too late: {_why_not(record, options)}", evicted=record.pods_evicted)
    if not ports.executions.running(record.instance, record.attempt):
        record = requests.start(record, ports)
    elif record.token:
        ports.executions.wake(record.token)
    return Cancellation(
        node=node,
        said=f"drain cancelled, {_left(record)}",
        cancelled=True,
        execution=execution_name(record.instance, record.attempt),
        evicted=record.pods_evicted,
    )


def _left(record: TerminationRecord) -> str:
    """Return what cannot be undone."""
    pods = count_of(record.pods_evicted, "pod has left and is", "pods have left and are")
    return f"{pods} not moved back" if record.pods_evicted else "no pod had left"


def _why_not(record: TerminationRecord, options: str) -> str:
    """Return why an open termination cannot be cancelled, empty where it can."""
    if "terminating" in record.times:
        at = format_instant(record.times["terminating"])
        return f"TERMINATE of instance {record.instance} was requested at {at}, which cannot be undone"
    others = [cause.kind for cause in record.causes if cause.kind is not CauseKind.MANUAL]
    if not others:
        return ""
    kinds = ", ".join(NAMES[kind] for kind in dict.fromkeys(others))
    return f"not only a drain takes it ({kinds}), and --cancel ends nothing else{_ends(others[0], record, options)}"


def _ends(kind: CauseKind, record: TerminationRecord, options: str) -> str:
    """Return the command that ends another cause, empty where none does."""
    if kind is CauseKind.UPGRADE:
        return f"; leeward upgrade abort {record.subject.group} {options} ends the upgrade"
    if kind is CauseKind.EVACUATION:
        return f"; leeward zone return {record.subject.zone} {options} ends the evacuation"
    return ""


def _closed(node: Node, record: TerminationRecord) -> Cancellation:
    """Return what has become of a termination that is over."""
    closed = f" at {format_instant(record.times['closed'])}" if "closed" in record.times else ""
    if record.outcome is Outcome.KEPT and node.unschedulable:
        uncordon = f"kubectl uncordon {node.name} puts the node back into service"
        return Cancellation(node=node, said=f"its drain ended{closed} and its instance is kept, cordoned; {uncordon}")
    by_operator = any(cause.withdrawn and cause.kind is CauseKind.MANUAL for cause in record.earlier_causes)
    if record.outcome is Outcome.RETURNED_TO_SERVICE and not record.causes and by_operator:
        return Cancellation(
            node=node, cancelled=True, said=f"cancelled already, in service again{closed}", evicted=record.pods_evicted
        )
    return Cancellation(node=node, said=f"{NOTHING}: its last termination ended{closed}")


def look_back(record: TerminationRecord | None) -> tuple[str, bool | None]:
    """Return the state of a drain that was cancelled as a sentence, and the result: True in service again."""
    line, ended = look(record)
    if record is None or ended is None:
        return line, ended
    back = record.status is Status.CLOSED and record.outcome is Outcome.RETURNED_TO_SERVICE
    late = record.status is Status.CLOSED and record.outcome is Outcome.TERMINATED
    return f"{line}, the cancellation came too late" if late else line, back


def _report(results: Sequence[Cancellation]) -> list[str]:
    """Return a line for each node, and commands to copy below it."""
    return [line for result in results for line in fix_lines(result.node.name, result.said)]
