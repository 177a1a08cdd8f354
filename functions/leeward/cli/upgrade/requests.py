"""`leeward upgrade start|pause|resume|abort|rollback GROUP --cluster NAME`: requests to the running state machine.

Decides nothing about upgrades: a start begins an execution, every other action writes a control request, which the
upgrade's execution reads within half a minute. Each may be repeated."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from leeward.cli.output import emit
from leeward.errors import InvalidInputError, RecordChangedError
from leeward.model.group import Group
from leeward.ports import Ports
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Upgrades
from leeward.upgrade.control import limits, with_control
from leeward.upgrade.lease import held, start_next, written
from leeward.upgrade.observation import described, existing_groups
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.start import ACTIONS as CONTROLS
from leeward.upgrade.start import following, parse_request

RACES = 5


def start(arguments: argparse.Namespace, ports: Ports) -> int:
    """Begin the upgrade, or continue one that an earlier start has left; a running one is named, and groups that follow
    are recorded there.
    """
    follows = existing_groups(following({"groups": [arguments.group, *arguments.then]}), ports.groups)
    group = described(arguments.group, ports.groups)
    then = f", then {', '.join(follows)}" if follows else ""
    record = ports.upgrades.read(arguments.group)
    if (
        record is not None
        and record.ended is None
        and held(record, ports.upgrade_executions, ports.managed_upgrade_executions)
    ):
        if follows:
            written(replace(record, then=follows), ports.upgrades)
        return _print_result(arguments, record.execution, f"it runs already{then}")
    name = _begin(group, record, _asked(arguments), ports.upgrade_executions, ports.managed_upgrade_executions)
    return _print_result(arguments, name, f"started{then}")


def control(arguments: argparse.Namespace, ports: Ports) -> int:
    """Pause, resume, abort or roll back. Where nothing runs, start an execution that does it; a pause needs none."""
    record = _requested(arguments.group, arguments.action, ports.upgrades)
    if record.ended is None and held(record, ports.upgrade_executions, ports.managed_upgrade_executions):
        later = f"; {limits(record)}" if limits(record) else ""
        return _print_result(arguments, record.execution, f"{arguments.action}: it is read within half a minute{later}")
    if arguments.action == "pause":
        return _print_result(arguments, "", "paused; nothing runs")
    name = _begin(
        described(arguments.group, ports.groups), record, {}, ports.upgrade_executions, ports.managed_upgrade_executions
    )
    return _print_result(arguments, name, f"{arguments.action} begun")


LIVE: Mapping[str, Callable[[argparse.Namespace, Ports], int]] = {"start": start, **dict.fromkeys(CONTROLS, control)}


def _requested(group: str, action: str, upgrades: Upgrades) -> UpgradeRecord:
    """Write the control request. Raises InvalidInputError for one that makes no sense now, RecordChangedError when
    others keep writing.
    """
    for _ in range(RACES):
        record = upgrades.read(group)
        if record is None:
            raise InvalidInputError(f"upgrade of {group}: found none, expected one to {action}")
        wanted = with_control(record, CONTROLS[action])
        if wanted == record:
            return record
        try:
            return written(wanted, upgrades)
        except RecordChangedError:
            continue
    raise RecordChangedError(f"upgrade of {group}: others wrote {RACES} times meanwhile; say it again")


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
    if len(found.keys() & {"ami", "launchTemplateVersion", "kubernetesVersion"}) > 1:
        raise InvalidInputError(
            "upgrade: found more than one target, expected one of --ami, --launch-template-version and "
            "--kubernetes-version at most"
        )
    parse_request(found)
    return found


def _print_result(arguments: argparse.Namespace, execution: str, said: str) -> int:
    document = {"group": arguments.group, "execution": execution or None, "said": said}
    named = f" (execution {execution})" if execution else ""
    emit(document, arguments.output, lambda: f"{arguments.group}: {said}{named}")
    return 0
