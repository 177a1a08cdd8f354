"""`leeward upgrade start|pause|resume|abort|rollback GROUP --cluster NAME`: requests to the running state machine.

Decides when pre-flight and a question come before. A start begins an execution, every other action writes a control
request, which the upgrade's execution reads within half a minute. Each may be repeated."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from leeward.cli.confirmation import confirm
from leeward.cli.context import ClusterContext
from leeward.cli.output import emit
from leeward.cli.upgrade.following import follow
from leeward.cli.upgrade.plan import check_targets
from leeward.cli.upgrade.preflight import effect_of, planned, print_blocked
from leeward.errors import InvalidInputError, RecordChangedError
from leeward.model.group import Group
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Upgrades
from leeward.upgrade.control import limits, with_control
from leeward.upgrade.preflight.findings import blocking
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import is_held, start_next, written
from leeward.upgrade.start import ACTIONS as CONTROLS
from leeward.upgrade.start import following, parse_request

RACES = 5


def start(arguments: argparse.Namespace, context: ClusterContext) -> int:
    """Begin the upgrade, or continue one that an earlier start has left; a running one is named, and groups that follow
    are recorded there. Return 1 where pre-flight finds a blocker: nothing is begun then.
    """
    ports = context.ports
    groups = [context.group(name) for name in (arguments.group, *arguments.then)]
    follows = following({"groups": [group.name for group in groups]})
    then = f", then {', '.join(follows)}" if follows else ""
    record = ports.upgrades.read(arguments.group)
    if _runs(record, ports.upgrade_executions, ports.managed_upgrade_executions):
        if follows:
            written(replace(record, then=follows), ports.upgrades)
        said = _print_result(arguments, record.execution, f"it runs already{then}")
        return follow(arguments.group, context) if arguments.watch else said
    asked = _asked(arguments) | _by(ports.caller)
    plans = [] if _under_way(record) else [planned(arguments, context, group.name, record) for group in groups]
    blocked = [plan for plan in plans if blocking(plan.findings, frozenset(arguments.override))]
    if blocked:
        return print_blocked(arguments, blocked)
    confirm(
        arguments, [effect_of(plan) for plan in plans] or [f"{arguments.group}: continue the upgrade that was left"]
    )
    name = _begin(groups[0], record, asked, ports.upgrade_executions, ports.managed_upgrade_executions)
    said = _print_result(arguments, name, f"started{then}")
    return follow(arguments.group, context) if arguments.watch else said


def _runs(
    record: UpgradeRecord | None, upgrade_executions: NamedExecutions, managed_upgrade_executions: NamedExecutions
) -> TypeGuard[UpgradeRecord]:
    """Return whether an execution holds the upgrade."""
    return record is not None and is_held(record, upgrade_executions, managed_upgrade_executions)


def _under_way(record: UpgradeRecord | None) -> bool:
    """Return whether an earlier start got so far that the state machine alone can judge what is left."""
    return record is not None and record.resumable and (record.prepared or bool(record.launched))


def control(arguments: argparse.Namespace, context: ClusterContext) -> int:
    """Pause, resume, abort or roll back. Where nothing runs, start an execution that does it; a pause needs none."""
    ports, group = context.ports, context.group(arguments.group)
    _check_request(arguments, ports.upgrades)
    if arguments.asks:
        confirm(arguments, [f"{group.name}: {EFFECTS[arguments.action]}"])
    record = _requested(arguments.group, arguments.action, ports.caller, ports.upgrades)
    if _runs(record, ports.upgrade_executions, ports.managed_upgrade_executions):
        later = f"; {limits(record)}" if limits(record) else ""
        return _print_result(arguments, record.execution, f"{arguments.action}: it is read within half a minute{later}")
    if arguments.action == "pause":
        return _print_result(arguments, "", "paused; nothing runs")
    asked = {"cluster": arguments.cluster, **_by(ports.caller)}  # another account may have a group of the same name
    name = _begin(group, record, asked, ports.upgrade_executions, ports.managed_upgrade_executions)
    return _print_result(arguments, name, f"{arguments.action} begun")


EFFECTS: Mapping[str, str] = {
    "abort": "end the upgrade: old nodes that do not drain yet return to service, surplus new nodes are TERMINATED",
    "rollback": "drain and TERMINATE every node of the new version, after nodes of the earlier version have come",
}


def _check_request(arguments: argparse.Namespace, upgrades: Upgrades) -> None:
    """Check that the request applies now, before a question. Raises InvalidInputError."""
    record = upgrades.read(arguments.group)
    if record is None:
        raise _no_upgrade(arguments.group, arguments.action)
    with_control(record, CONTROLS[arguments.action])


def _no_upgrade(group: str, action: str) -> InvalidInputError:
    verb = action.replace("rollback", "roll back")
    return InvalidInputError(
        f"upgrade of {group}: found none that was begun, expected one to {verb}; leeward upgrade start begins one"
    )


def _by(caller: str) -> dict[str, str]:
    """Return the part of an execution's input that names the caller, for the notifications."""
    return {"by": caller} if caller else {}


def _requested(group: str, action: str, caller: str, upgrades: Upgrades) -> UpgradeRecord:
    """Write the control request. Raises InvalidInputError for one that makes no sense now, RecordChangedError when
    others keep writing.
    """
    for _ in range(RACES):
        record = upgrades.read(group)
        if record is None:
            raise _no_upgrade(group, action)
        wanted = with_control(record, CONTROLS[action])
        if wanted == record:
            return record
        try:
            return written(replace(wanted, requested_by=caller or record.requested_by), upgrades)
        except RecordChangedError:
            continue
    raise RecordChangedError(f"upgrade of {group}: others wrote {RACES} times in between; repeat the request")


def _begin(
    group: Group,
    record: UpgradeRecord | None,
    asked: Mapping[str, Any],
    upgrade_executions: NamedExecutions,
    managed_upgrade_executions: NamedExecutions,
) -> str:
    """Start an execution of the group's state machine and return its name: the next attempt whose name is free."""
    attempt = record.attempt if record is not None else 0
    return start_next(
        group.name,
        group.nodegroup,
        attempt,
        {"group": group.name, **asked},
        upgrade_executions,
        managed_upgrade_executions,
    )


def _asked(arguments: argparse.Namespace) -> dict[str, Any]:
    given = {
        "cluster": arguments.cluster,
        "ami": arguments.ami,
        "launchTemplateVersion": arguments.launch_template_version,
        "kubernetesVersion": arguments.kubernetes_version,
        "then": arguments.then,
        "force": arguments.force,
        "override": [code.value for code in arguments.override],
    }
    found = {name: value for name, value in given.items() if value}
    check_targets(arguments)
    parse_request(found)
    return found


def _print_result(arguments: argparse.Namespace, execution: str, said: str) -> int:
    document = {"group": arguments.group, "execution": execution or None, "said": said}
    named = f" (execution {execution})" if execution else ""
    emit(document, arguments.view, lambda: f"{arguments.group}: {said}{named}")
    return 0
