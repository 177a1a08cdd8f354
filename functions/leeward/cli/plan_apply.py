"""`leeward plan --apply`: start the disruption run of the commands that the plan shows.

Decides when a run may begin and what is asked first. It begins as one of the disruption planner does: its record claims
the cluster with one conditional write, and its execution has a name derived from the record. What was shown may be
minutes old when it is confirmed, so the commands are validated on a new observation first; the run does so once more
before it touches a node."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leeward.cli.confirmation import check_can_ask, confirm
from leeward.cli.context import ClusterContext
from leeward.cli.output import emit, tell
from leeward.cli.tables import Report
from leeward.disruption.command import Command, DisruptionPlan, MethodName
from leeward.disruption.observation import observe
from leeward.disruption.plan import validate
from leeward.disruption.record import DisruptionRecord
from leeward.disruption.run import restart, start
from leeward.errors import InvalidInputError, LeewardError, TerminalError
from leeward.model.counts import count_of
from leeward.ports import Ports
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.workflow.executions import execution_name

MOST_NAMED = 5  # nodes of a command, in the question
VERB = "plan --apply"


class RefusedRunError(TerminalError):
    """Reason why no run was started; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request for a run. `plan`: with the commands shown alone; `last`: the cluster's run as it was read before;
    `document`: the plan's JSON.
    """

    plan: DisruptionPlan
    snapshot: ClusterSnapshot
    last: DisruptionRecord | None
    document: dict[str, Any]


def check_apply(arguments: argparse.Namespace) -> None:
    """Check the options that --apply excludes or needs, before anything is read. Raises InvalidInputError."""
    if not arguments.apply:
        if arguments.watch:
            raise InvalidInputError("plan: found --watch without --apply, expected both: only a run can be followed")
        return
    if arguments.what_if is not None:
        raise InvalidInputError(
            f"plan: found --apply and --what-if {arguments.what_if}, expected one of them: such a plan is not that of "
            "the policies in force, and its run would drop every command (leeward policy apply switches a method on)"
        )
    if arguments.method == MethodName.UNHEALTHY:
        raise InvalidInputError(
            "plan: found --apply with --method unhealthy, expected another method: the minute reconciler replaces "
            "these nodes itself, as soon as the policy's times have passed"
        )
    if arguments.snapshot is not None:
        raise InvalidInputError(f"{VERB}: found --snapshot, expected --cluster NAME: it is live alone")
    if arguments.cluster is not None:
        check_can_ask(arguments, VERB, "drains and terminates the nodes of the plan (without --apply it only shows it)")


def last_run(context: ClusterContext) -> DisruptionRecord | None:
    """Return the record of the cluster's last run. Raises RefusedRunError where there is no deployment to ask."""
    try:
        return context.ports.disruptions.read(context.cluster)
    except TerminalError as error:
        raise RefusedRunError(
            f"refused: the records of runs cannot be read, so no run can be started ({error}); "
            "leeward doctor checks the deployment"
        ) from error


def apply(
    arguments: argparse.Namespace, context: ClusterContext, request: Request, report: Callable[[], Report]
) -> int:
    """Print the plan, ask, start the run and print it. Return 1 where the run may not begin, else 0, or what following
    it returns.
    """
    for_people = arguments.view.output.for_people
    if for_people:
        emit(request.document, arguments.view, report)
    reason = _refusal_of(request)
    if reason:
        return _refuse(arguments, request, reason)
    confirm(arguments, [effect_of(command) for command in request.plan.commands])
    try:
        run = begin(observed_again(request, context), context.ports)
    except RefusedRunError as error:
        return _refuse(arguments, request, str(error))
    if for_people:
        print(f"run {run['number']} of {context.cluster}: {run['said']} (execution {run['execution']})")
    else:
        emit({**request.document, "run": run}, arguments.view, report, request.plan.warnings)
    if not arguments.watch:
        return 0
    from leeward.cli.plan_following import follow  # late: only a run that is followed needs it

    return follow(context.cluster, run["number"], context.ports)


def _refuse(arguments: argparse.Namespace, request: Request, reason: str) -> int:
    """Report the reason, in the document or, beside a table, on standard error; return 1."""
    if arguments.view.output.for_people:
        tell(f"not started: {reason}")
    else:
        run = {"started": False, "number": None, "execution": None, "said": reason}
        emit({**request.document, "run": run}, arguments.view, lambda: f"not started: {reason}", request.plan.warnings)
    return 1


def _refusal_of(request: Request) -> str | None:
    """Return the reason why the run may not begin now; None where it may, or is under way already."""
    last, plan = request.last, request.plan
    paused = request.snapshot.policies.pauses.voluntary()
    if paused:
        return f"{paused} (to end the pause: leeward resume --cluster {request.snapshot.policies.settings.name})"
    if last is not None and last.open and not _is_same(last, plan.commands):
        execution = f" (execution {last.execution})" if last.execution else ""
        return f"run {last.number}{execution} is under way, and a cluster has one at a time: {last.summary}"
    if plan.method is MethodName.UNHEALTHY:  # of --validate
        return "it is no plan of a disruption run: the minute reconciler replaces unhealthy nodes itself"
    if plan.method is None or not plan.commands:
        return "there is nothing to do"
    return None


def observed_again(request: Request, context: ClusterContext) -> Request:
    """Return the request on the cluster as it is after the question: the last run, budgets, PodDisruptionBudgets, pods,
    prices and a pause are read again. Raises RefusedRunError where a command does not hold as it was shown, or the run
    may not begin any more.
    """
    plan, last = request.plan, context.ports.disruptions.read(context.cluster)
    now = replace(request, last=last, snapshot=observe(context.cluster, context.ports, last))
    reason = _refusal_of(now)
    if reason:
        raise RefusedRunError(reason)
    if last is not None and last.open:  # of the same commands: it has validated them
        return now
    valid = validate(now.snapshot, plan.method, plan.commands, more=lambda: False)
    same = {_decision_of(command) for command in valid.commands}
    changed = next((command for command in plan.commands if _decision_of(command) not in same), None)
    if changed is None:
        return now
    verdicts = [valid.verdicts[name] for name in changed.nodes if name in valid.verdicts]
    reasons = dict.fromkeys(one.reason for by in verdicts for method, one in by.items() if method is plan.method)
    raise RefusedRunError(
        f"the cluster has changed since the plan was shown: {', '.join(changed.nodes)}: "
        f"{'; '.join(reasons) or 'not there any more'}; plan again"
    )


def _decision_of(command: Command) -> tuple[object, ...]:
    """Return what must not have changed: savings and zones may differ, the run takes those of its own validation."""
    return command.decision, command.nodes, tuple(one.group for one in command.replacements)


def effect_of(command: Command) -> str:
    """Return what one command does, in a line for the question before it."""
    named = ", ".join(command.nodes[:MOST_NAMED])
    more = len(command.nodes) - MOST_NAMED
    nodes = f"{count_of(len(command.nodes), 'node')} ({named}{f' and {more} more' if more > 0 else ''})"
    groups = ", ".join(sorted({one.group for one in command.replacements}))
    first = f"launch {count_of(len(command.replacements), 'node')} of {groups}, then " if groups else ""
    return f"{command.decision.value}: {first}drain and TERMINATE {nodes}: {command.reason}"


def begin(request: Request, ports: Ports) -> dict[str, Any]:
    """Claim the nodes, start the execution, and return the document's `run`. Idempotent: an open run of the same
    commands is named, and its execution is started where none works on it. Raises RefusedRunError where another run
    was faster.
    """
    from leeward.disruption.controller import claim  # late: a plan that is only shown needs no planner

    plan, last = request.plan, request.last
    if last is not None and last.open:
        name = (
            restart(last, ports.disruption_executions, ports.clock)
            or last.execution
            or execution_name(last.cluster, last.number, 1)
        )
        return _started(last, name, "it is under way already")
    record = claim(plan, request.snapshot, last, ports.disruptions, ports.clock, ports.caller or "leeward plan --apply")
    if record is None:
        raise RefusedRunError("another run of the cluster has begun meanwhile, or no command fits into one; plan again")
    try:
        name = start(record, ports.disruption_executions)
    except LeewardError as error:
        raise type(error)(
            f"run {record.number} is recorded, but this call could not start its execution: {error}; the minute "
            "reconciler starts it"
        ) from error
    left = len(plan.commands) - len(record.commands)
    return _started(record, name, f"started without the last {count_of(left, 'command')}" if left > 0 else "started")


def _started(record: DisruptionRecord, execution: str, said: str) -> dict[str, Any]:
    return {"started": True, "number": record.number, "execution": execution, "said": said}


def _is_same(record: DisruptionRecord, commands: Sequence[Command]) -> bool:
    """Return whether the run carries out these commands: a repeated call then names it."""
    return [one.nodes for one in record.commands] == [one.nodes for one in commands]
