"""`leeward drain`: the pods that leave a node, in order and by method, those that stay, and those that forbid the
drain; live, it starts the drain.

Decides when a drain is started and how a plan is printed; `leeward.termination.drain_plan` makes the plan.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from leeward.cli.confirmation import check_can_ask, confirm
from leeward.cli.context import ClusterContext, context_of
from leeward.cli.drain.effects import effect_of, total_of
from leeward.cli.drain.flags import add_arguments, is_followed, keeps, options_of
from leeward.cli.drain.live import STARTED, DrainRequest, RefusedError, follow, refusal_of, runs_already, start
from leeward.cli.drain.targets import DrainTarget, Selection, targets_of
from leeward.cli.fixes import copied
from leeward.cli.following import INTERRUPTED
from leeward.cli.output import emit
from leeward.cli.pause.shown import pause_lines
from leeward.cli.progress import Progress
from leeward.cli.tables import Table
from leeward.errors import InvalidInputError, LeewardError
from leeward.model.termination import BY_POLICY, DrainOptions
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.termination import deadlines
from leeward.termination.drain_plan import DrainPlan, DrainTerms, PodRemoval, plan_drain, with_surges
from leeward.termination.settling import drain_volumes

__all__ = ("DESCRIPTION", "add_arguments", "run")
COLUMNS = ("NODE", "POD", "ACTION", "WAVE", "GRACE", "WHY")
DESCRIPTION = """Shows how the pods of nodes (named, with labels, or of an Auto Scaling group) leave them: which are
evicted, wave by wave, what blocks them, which stay, and which forbid the drain. Live and without --dry-run it starts
the termination of each node: drain, settle, TERMINATE, answer lifecycle hooks; with --keep it ends with the drain,
the instance stays in service and the node cordoned. A node that drains already is only followed.

--cancel takes a drain back until the termination is requested: no further pod is evicted, and the node returns to
service."""
THEN: Mapping[str, str] = MappingProxyType(
    {
        "terminate": "drain, then terminate",
        "keep": "drain, then keep it cordoned",
        "wait": "wait: pods forbid the drain",
        "remove-node": "remove the Node: its instance is gone",
    }
)
"""Sentence about the end of a node's drain, by `then` of the document."""


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, and, live and without --dry-run, start. Return 1 when a pod or a node refuses."""
    selection = _selection(arguments)
    if arguments.cancel:
        from leeward.cli.drain.cancel import cancel  # late: most drains are not taken back

        return cancel(arguments, selection)
    dry = arguments.dry_run or arguments.snapshot is not None
    if not dry and arguments.deadline is not None and arguments.deadline <= arguments.now:
        passed = f"found {format_instant(arguments.deadline)}, which has passed, expected a time ahead"
        raise InvalidInputError(f"drain --deadline: {passed} (--disable-eviction deletes the pods at once)")
    arguments.view.check(COLUMNS)
    if not dry and arguments.cluster is not None:
        does = "evicts the pods" if arguments.keep else "terminates the instance"
        check_can_ask(arguments, "drain", f"{does} (--dry-run shows the plan)")
    context = context_of(arguments, "drain")
    targets = targets_of(context, selection, planned=dry)
    plans = [_plan(target, arguments) for target in targets]
    keep = keeps(arguments)
    documents = [to_json(target, plan, arguments.now, keep=keep) for target, plan in zip(targets, plans, strict=True)]
    reasons = [] if dry else [reason for target in targets if (reason := refusal_of(target, keep=keep))]
    blocked = bool(reasons) or any(plan.refuse for plan in plans)
    if dry or blocked:
        _print(arguments, documents, pause_lines(context, arguments.now))
        if reasons:
            raise RefusedError(f"refused: {'; '.join(reasons)}; nothing was started (--dry-run shows the plan)")
        return int(blocked)
    request = _request(arguments)
    _confirm(arguments, context, request, list(zip(targets, plans, strict=True)))
    begun: dict[str, str] = {}
    for target, document in zip(targets, documents, strict=True):
        document.update(_started(target, context.ports, request, alone=len(targets) == 1))
        if document["execution"] is not None:
            begun[target.node.name] = target.node.instance_id
    followed = bool(begun) and is_followed(arguments)
    _print(arguments, documents, below=_next_commands(begun, context) if begun and not followed else ())
    failed = int(len(begun) < len(targets))
    return max(failed, _follow(begun, context)) if followed else failed


def _selection(arguments: argparse.Namespace) -> Selection:
    """Return the nodes that the call names. Raises InvalidInputError where it names none, or in two ways."""
    chosen = arguments.group is not None or bool(arguments.selector)
    if bool(arguments.nodes) == chosen:
        found = "both NODE and --group or -l" if chosen else "neither NODE nor --group nor -l"
        raise InvalidInputError(f"drain: found {found}, expected one of them (see leeward drain --help)")
    return Selection(names=arguments.nodes, group=arguments.group, labels=arguments.selector)


def _confirm(
    arguments: argparse.Namespace,
    context: ClusterContext,
    request: DrainRequest,
    planned: Sequence[tuple[DrainTarget, DrainPlan]],
) -> None:
    """Ask, unless every node is drained already. Raises DeclinedError."""
    new = [(target, plan) for target, plan in planned if not runs_already(target.record, request)]
    if not new or arguments.yes:
        return
    cluster = len(context.ports.clusters.kubernetes(context.cluster).nodes()) if len(new) > 1 else 0
    effects = [effect_of(target, plan, keep=request.keeps) for target, plan in new]
    confirm(arguments, [*total_of([plan for _, plan in new], cluster), *effects])


def _started(target: DrainTarget, ports: Ports, request: DrainRequest, *, alone: bool) -> dict[str, Any]:
    """Start the drain of one node. The failure of one among others is said beside it, that of a node alone raised."""
    try:
        begun = start(target, ports, request)
    except LeewardError as error:
        if alone:
            raise
        return {"execution": None, "said": f"not started: {error}"}
    return {"execution": begun.execution, "said": begun.said}


def _follow(nodes: Mapping[str, str], context: ClusterContext) -> int:
    progress = Progress()
    code = follow(nodes, context.ports.clock, context.ports.claims, progress)
    if code == INTERRUPTED:
        progress.say(f"to take it back: leeward drain {' '.join(nodes)} {context.options} --cancel")
    return code


def _next_commands(nodes: Mapping[str, str], context: ClusterContext) -> list[str]:
    """Return how to follow drains, and how to take them back."""
    drain = f"leeward drain {' '.join(nodes)} {context.options}"
    return ["to follow, and to take back:", copied(f"{drain} --watch"), copied(f"{drain} --cancel")]


def _request(arguments: argparse.Namespace) -> DrainRequest:
    """Build the request; a call without flags leaves everything to the policy."""
    options = replace(options_of(arguments), deadline=None)
    return DrainRequest(
        cluster=arguments.cluster,
        deadline=arguments.deadline,
        options=None if options == BY_POLICY else options,
        now=arguments.now,
    )


def _plan(target: DrainTarget, arguments: argparse.Namespace) -> DrainPlan:
    options, now = _options(target, arguments), arguments.now
    deadline = _deadline(target, options.deadline, now)
    plan = plan_drain(
        node=target.node,
        pods=target.pods,
        budgets=target.budgets,
        daemon_sets=target.daemon_sets,
        terms=DrainTerms(policy=target.policy, now=now, deadline=deadline, options=options),
    )
    return with_surges(plan, target.surged, target.budgets)


def _options(target: DrainTarget, arguments: argparse.Namespace) -> DrainOptions:
    """Combine the flags with an open drain's deadline: that deadline, set by an earlier call, can only be tightened."""
    options, known = options_of(arguments), target.record.options if target.record else None
    given = [moment for moment in (options.deadline, known.deadline if known else None) if moment is not None]
    return replace(options, deadline=min(given, default=None))


def _deadline(target: DrainTarget, asked: datetime | None, now: datetime) -> datetime | None:
    """Return when the node is terminated unconditionally: the earliest of the requested deadline and that of the policy
    or of the open termination.
    """
    record, grace = target.record, target.policy.termination_grace_period
    known = now + grace if grace is not None else None
    if record is not None:
        started = record.times.get("draining", now)
        known = deadlines.node_deadline(record, target.policy, started, now, ours_hold=False)
    return min((moment for moment in (asked, known) if moment is not None), default=None)


def to_json(target: DrainTarget, plan: DrainPlan, now: datetime, *, keep: bool = False) -> dict[str, Any]:
    """Return the document that `docs/schema/drain.json` describes."""
    over = target.gone or (plan.deadline is not None and plan.deadline <= now)
    volumes = drain_volumes(plan, target.volumes, waits=not over and bool(target.policy.volume_detach_timeout))
    return {
        "node": plan.node.name,
        "deadline": _instant(plan.deadline),
        "evict": [
            {
                "pod": eviction.pod.key,
                "wave": eviction.wave,
                "how": eviction.removal.value,
                "graceSeconds": eviction.grace_seconds,
                "blockedBy": list(eviction.blocked_by),
            }
            for eviction in plan.evict
        ],
        "leave": [{"pod": left.pod.key, "why": left.reason} for left in plan.leave],
        "refuse": [{"pod": refused.pod.key, "why": refused.reason} for refused in plan.refuse],
        "volumes": [
            {"attachment": one.attachment, "pod": one.pod.key if one.pod else None, "wait": one.wait} for one in volumes
        ],
        "then": "remove-node" if target.gone else "wait" if plan.refuse else "keep" if keep else "terminate",
    }


def _instant(moment: datetime | None) -> str | None:
    return format_instant(moment) if moment else None


def _print(
    arguments: argparse.Namespace,
    documents: list[dict[str, Any]],
    above: Sequence[str] = (),
    below: Sequence[str] = (),
) -> None:
    result = documents[0] if len(arguments.nodes) == 1 else documents
    emit(result, arguments.view, lambda: [*above, *_report(documents), *below])


def _report(documents: list[dict[str, Any]]) -> list[Table | str]:
    """Build a line for each node, then one table of all pods."""
    table = Table(COLUMNS, optional=("GRACE", "WAVE"), kind="node", empty="" if documents else "no nodes")
    lines = []
    for document in documents:
        deadline = f", deadline {document['deadline']}" if document["deadline"] else ""
        lines.append(f"{document['node']}: {_said(document, deadline)}")
        _add_rows(table, document)
    return [*lines, table]


def _said(document: dict[str, Any], deadline: str) -> str:
    """Return what follows for the node, and, live, what has come of the request."""
    said, execution = document.get("said", ""), document.get("execution")
    then = f"{THEN[document['then']]}{deadline}"
    if said == STARTED:
        return f"{said} {execution}: {then}"
    return f"{said}{f' (execution {execution})' if execution else ''}" if said else then


def _add_rows(table: Table, document: dict[str, Any]) -> None:
    node = document["node"]
    for eviction in document["evict"]:
        grace = "its own" if eviction["graceSeconds"] is None else f"{eviction['graceSeconds']}s"
        notes = ["after a second replica is ready"] if eviction["how"] == PodRemoval.SURGE else []
        notes += [f"blocked by {', '.join(eviction['blockedBy'])}"] if eviction["blockedBy"] else []
        table.add(node, eviction["pod"], eviction["how"], eviction["wave"], grace, ", ".join(notes))
    for what in ("refuse", "leave"):
        for entry in document[what]:
            table.add(node, entry["pod"], what, None, None, entry["why"])
    for volume in document["volumes"]:
        waits = "waited for" if volume["wait"] else "not waited for"
        table.add(node, volume["pod"], "volume", None, None, f"{volume['attachment']}: {waits}")
