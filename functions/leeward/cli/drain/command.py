"""`leeward drain`: the pods that leave a node, in order and by method, those that stay, and those that forbid the
drain; live, it starts the drain.

Decides how kubectl's flags become options and how a plan is printed; `leeward.termination.drain_plan` makes the plan.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from leeward.cli.confirmation import add_yes, check_can_ask, confirm
from leeward.cli.context import context_of
from leeward.cli.drain.effects import effect_of, total_of
from leeward.cli.drain.live import DrainRequest, RefusedError, follow, node_of, refusal_of, start
from leeward.cli.drain.targets import DrainTarget, targets_of
from leeward.cli.options import instant
from leeward.cli.output import emit
from leeward.cli.pause.shown import pause_lines
from leeward.cli.progress import Progress
from leeward.cli.tables import Table
from leeward.errors import InvalidInputError
from leeward.model.drain_options import BY_POLICY, NEVER, DrainOptions
from leeward.model.times import format_instant
from leeward.termination import deadlines
from leeward.termination.drain_plan import DrainPlan, PodRemoval, plan_drain
from leeward.termination.lone_pods import with_surges
from leeward.termination.volumes import drain_volumes

TRUE, FALSE = ("true", "t", "1", "True", "TRUE", "T"), ("false", "f", "0", "False", "FALSE", "F")  # pflag's words
COLUMNS = ("NODE", "POD", "ACTION", "WAVE", "GRACE", "WHY")
DESCRIPTION = """Shows how the pods of a node (or of all nodes of an Auto Scaling group) leave it: which are evicted,
wave by wave, what blocks them, which stay, and which forbid the drain. With --snapshot it never does more than that.
Live and without --dry-run it starts the node's termination: drain, settle, terminate, answer lifecycle hooks; with
--keep it ends with the drain, the instance stays in service and the node cordoned."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add kubectl's flags. An absent flag means that the policy decides."""
    parser.add_argument("node", metavar="NODE", nargs="?", help="name, short name or instance id of the node")
    parser.add_argument("--group", metavar="GROUP", help="all nodes of this Auto Scaling group instead")
    parser.add_argument("--watch", dest="wait", action="store_const", const=True, help="the same as --wait")
    _add_flag(parser, "--wait", "follow a live start to its end; Ctrl-C leaves it running (default: with -o table)")
    add_yes(parser)
    _add_flag(parser, "--dry-run", "only show the plan", more_true=("client", "server"), more_false=("none",))
    parser.add_argument(
        "--deadline",
        metavar="TIME",
        type=instant,
        help="when the node is terminated, RFC 3339: remaining pods are deleted at (TIME - their grace) in any case",
    )
    _add_flag(parser, "--keep", "keep the instance in service: drain its node and leave it cordoned")
    _add_flag(parser, "--force", "evict pods without a controller too (policy: drain.unmanagedPods)")
    _add_flag(parser, "--ignore-daemonsets", "leave DaemonSet pods on the node (default: true)")
    _add_flag(parser, "--delete-emptydir-data", "evict pods with emptyDir volumes too (policy: drain.localData)")
    _add_flag(parser, "--disable-eviction", "delete pods without asking PodDisruptionBudgets")
    parser.add_argument(
        "--grace-period", metavar="S", type=_seconds, help="seconds for each pod to end; negative: the pod's own"
    )
    parser.add_argument(
        "--skip-wait-for-delete-timeout",
        metavar="S",
        type=_seconds,
        help="leave pods that are more than S seconds past their deletion deadline (default: 60; 0: never)",
    )


def _add_flag(
    parser: argparse.ArgumentParser,
    flag: str,
    help_text: str,
    more_true: tuple[str, ...] = (),
    more_false: tuple[str, ...] = (),
) -> None:
    """Add a boolean flag as kubectl takes it: `--flag` or `--flag=true|false`, never `--flag false`."""
    where = flag.removeprefix("--").replace("-", "_")
    parser.add_argument(flag, dest=where, action="store_const", const=True, help=f"{help_text} [=true|false]")
    for value, words in ((True, (*TRUE, *more_true)), (False, (*FALSE, *more_false))):
        for word in words:
            parser.add_argument(f"{flag}={word}", dest=where, action="store_const", const=value, help=argparse.SUPPRESS)


def _seconds(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected whole seconds")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, and, live and without --dry-run, start. Return 1 when a pod or a node refuses."""
    if (arguments.node is None) == (arguments.group is None):
        found = "neither NODE nor" if arguments.node is None else "both NODE and"
        raise InvalidInputError(f"drain: found {found} --group, expected one of them (see leeward drain --help)")
    dry = arguments.dry_run or arguments.snapshot is not None
    if not dry and arguments.deadline is not None and arguments.deadline <= arguments.now:
        passed = f"found {format_instant(arguments.deadline)}, which has passed, expected a time ahead"
        raise InvalidInputError(f"drain --deadline: {passed} (--disable-eviction deletes the pods at once)")
    arguments.view.check(COLUMNS)
    if not dry and arguments.cluster is not None:
        does = "evicts the pods" if arguments.keep else "terminates the instance"
        check_can_ask(arguments, "drain", f"{does} (--dry-run shows the plan)")
    context = context_of(arguments, "drain")
    targets = targets_of(context, node=arguments.node, group=arguments.group)
    plans = [_plan(target, arguments) for target in targets]
    keep = _keeps(arguments)
    documents = [to_json(target, plan, arguments.now, keep=keep) for target, plan in zip(targets, plans, strict=True)]
    reasons = [] if dry else [reason for target in targets if (reason := refusal_of(target, keep=keep))]
    blocked = bool(reasons) or any(plan.refuse for plan in plans)
    if dry or blocked:
        _print(arguments, documents, pause_lines(context, arguments.now))
        if reasons:
            raise RefusedError(f"refused: {'; '.join(reasons)}; nothing was started (--dry-run shows the plan)")
        return int(blocked)
    effects = [effect_of(target, plan, keep=keep) for target, plan in zip(targets, plans, strict=True)]
    confirm(arguments, [*total_of(plans), *effects])
    for target, document in zip(targets, documents, strict=True):
        document["execution"] = start(target, context.ports, _request(arguments))
    _print(arguments, documents)
    followed = arguments.view.output.for_people if arguments.wait is None else arguments.wait
    return (
        follow([node_of(target) for target in targets], context.ports.clock, context.ports.claims, Progress())
        if followed
        else 0
    )


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
    options = _options(target, arguments)
    plan = plan_drain(
        node=target.node,
        pods=target.pods,
        budgets=target.budgets,
        daemon_sets=target.daemon_sets,
        policy=target.policy,
        now=arguments.now,
        deadline=_deadline(target, options.deadline, arguments.now),
        options=options,
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


def options_of(arguments: argparse.Namespace) -> DrainOptions:
    """Read kubectl's flags; as there, a negative grace period is the pod's own, a skip time-out of 0 skips no pod."""
    grace, skip = arguments.grace_period, arguments.skip_wait_for_delete_timeout
    return DrainOptions(
        evict_unmanaged=arguments.force,
        delete_local_data=arguments.delete_emptydir_data,
        ignore_daemon_sets=arguments.ignore_daemonsets is not False,
        disable_eviction=arguments.disable_eviction is True,
        grace_seconds=None if grace is None or grace < 0 else grace,
        skip_wait_for_delete=None if skip is None else (timedelta(seconds=skip) if skip > 0 else NEVER),
        keep=_keeps(arguments),
        deadline=arguments.deadline,
    )


def _keeps(arguments: argparse.Namespace) -> bool:
    return arguments.keep is True


def to_json(target: DrainTarget, plan: DrainPlan, now: datetime, *, keep: bool = False) -> dict[str, Any]:
    """Return the document that docs/command-line.md and `docs/schema/drain.json` describe."""
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


def _print(arguments: argparse.Namespace, documents: list[dict[str, Any]], above: Sequence[str] = ()) -> None:
    result = documents if arguments.group is not None else documents[0]
    emit(result, arguments.view, lambda: [*above, *_report(documents)])


def _report(documents: list[dict[str, Any]]) -> list[Table | str]:
    """Build a line for each node, then one table of all pods."""
    table = Table(COLUMNS, optional=("GRACE", "WAVE"), kind="node", empty="" if documents else "no nodes")
    lines = []
    for document in documents:
        deadline = f", deadline {document['deadline']}" if document["deadline"] else ""
        execution = f", started {document['execution']}" if "execution" in document else ""
        lines.append(f"{document['node']}: then {document['then']}{deadline}{execution}")
        _add_rows(table, document)
    return [*lines, table]


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
