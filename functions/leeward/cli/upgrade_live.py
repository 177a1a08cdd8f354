"""`leeward upgrade start|status|pause|resume|abort|rollback GROUP --cluster NAME`: requests to the running state
machine.

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
from leeward.upgrade.lease import held, is_running, start_next, written
from leeward.upgrade.observation import described, existing_groups, fresh_record, observe, policy_of
from leeward.upgrade.record import UpgradeRecord, UpgradeRequest
from leeward.upgrade.start import ACTIONS as WISHES
from leeward.upgrade.start import following, parse_request
from leeward.upgrade.status import Running, Status, status_of
from leeward.upgrade.templates import expected
from leeward.upgrade.waits import allowed
from leeward.workflow.executions import execution_name

RACES = 5


def live_ports(arguments: argparse.Namespace) -> Ports:
    """Build the ports with the caller's credentials. Raises InvalidInputError without --cluster."""
    if not arguments.cluster:
        raise InvalidInputError(f"upgrade {arguments.action}: found no --cluster, expected --cluster NAME")
    from leeward.adapters.wiring import command_line_ports  # late: offline needs no AWS library

    return command_line_ports(arguments.cluster, arguments.region, arguments.account)


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
        return _tell(arguments, record.execution, f"it runs already{then}")
    name = _begin(group, record, _asked(arguments), ports.upgrade_executions, ports.managed_upgrade_executions)
    return _tell(arguments, name, f"started{then}")


def control(arguments: argparse.Namespace, ports: Ports) -> int:
    """Pause, resume, abort or roll back. Where nothing runs, start an execution that does it; a pause needs none."""
    record = _wished(arguments.group, arguments.action, ports.upgrades)
    if record.ended is None and held(record, ports.upgrade_executions, ports.managed_upgrade_executions):
        later = f"; {limits(record)}" if limits(record) else ""
        return _tell(arguments, record.execution, f"{arguments.action}: it is read within half a minute{later}")
    if arguments.action == "pause":
        return _tell(arguments, "", "paused; nothing runs")
    name = _begin(
        described(arguments.group, ports.groups), record, {}, ports.upgrade_executions, ports.managed_upgrade_executions
    )
    return _tell(arguments, name, f"{arguments.action} begun")


def live_status(name: str, cluster: str, ports: Ports) -> Status:
    """Return the group's upgrade status from record and cluster; without a record, from the cluster alone."""
    record = ports.upgrades.read(name)
    probe = record
    if probe is None:
        group = described(name, ports.groups)
        policy = policy_of(cluster, group, ports.clusters)
        if policy is None:
            raise InvalidInputError(f"upgrade: found {group.name}, which no policy selects; expected a selected group")
        probe = fresh_record(group, cluster, policy, UpgradeRequest(), ports.clock)
        probe = replace(probe, target=expected(probe, group, ports.templates))
    observation = observe(probe, ports)
    runs = record is not None and record.ended is None
    return status_of(
        observation.preflight,
        record,
        allowed(probe, observation, ports) if runs else None,
        running(name, record, ports),
    )


def running(group: str, record: UpgradeRecord | None, ports: Ports) -> Running:
    """Return the execution that holds the group, or one that was started and has not claimed it yet: executions that
    the command line starts have the names of the next attempts.
    """
    if (
        record is not None
        and record.ended is None
        and held(record, ports.upgrade_executions, ports.managed_upgrade_executions)
    ):
        return Running(execution=record.execution, terminations=ports.claims.read_all(record.under_way))
    attempt = record.attempt if record is not None else 0
    names = (execution_name(group, attempt + more) for more in (1, 2, 3))
    name = next(
        (name for name in names if is_running(name, ports.upgrade_executions, ports.managed_upgrade_executions)), ""
    )
    return Running(execution=name, new=bool(name))


LIVE: Mapping[str, Callable[[argparse.Namespace, Ports], int]] = {"start": start, **dict.fromkeys(WISHES, control)}


def _wished(group: str, action: str, upgrades: Upgrades) -> UpgradeRecord:
    """Write the control request. Raises InvalidInputError for one that makes no sense now, RecordChangedError when
    others keep writing.
    """
    for _ in range(RACES):
        record = upgrades.read(group)
        if record is None:
            raise InvalidInputError(f"upgrade of {group}: found none, expected one to {action}")
        wanted = with_control(record, WISHES[action])
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


def _tell(arguments: argparse.Namespace, execution: str, said: str) -> int:
    document = {"group": arguments.group, "execution": execution or None, "said": said}
    named = f" (execution {execution})" if execution else ""
    emit(document, arguments.output, lambda: f"{arguments.group}: {said}{named}")
    return 0
