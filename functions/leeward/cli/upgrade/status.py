"""`leeward upgrade status`: the state of a group's upgrade, from its record and the cluster.

Decides what stands for the record where there is none; `leeward.upgrade.status` decides the status."""

import argparse
from dataclasses import replace

from leeward.cli.context import context_of
from leeward.cli.output import emit
from leeward.cli.upgrade.outcome import outcome_of
from leeward.cli.upgrade.tables import status_report
from leeward.errors import InvalidInputError
from leeward.model.group import Group
from leeward.model.visible import visible
from leeward.policy.document import NodePolicy
from leeward.ports import Ports
from leeward.ports.compute import LaunchSources
from leeward.ports.eks import KnownNodegroups
from leeward.termination.situation import UNSELECTED
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.observation import described, fresh_record, observe
from leeward.upgrade.record import UpgradeRecord, UpgradeRequest
from leeward.upgrade.run import is_held, is_running
from leeward.upgrade.status import Running, UpgradeStatus, status_of
from leeward.upgrade.targets import expected
from leeward.upgrade.waits import allowed
from leeward.workflow.executions import execution_name


def status(arguments: argparse.Namespace) -> int:
    """Print the status and return 0: the command only reports. With --watch follow it, and return 1 where it fails."""
    if arguments.watch and arguments.snapshot is not None:
        raise InvalidInputError("upgrade status --watch: found --snapshot, expected --cluster NAME: it is live alone")
    context = context_of(arguments, "upgrade", lambda _: None)  # a template that is judged by its tags changes no state
    context.group(arguments.group)
    found = group_status(arguments.group, context.cluster, context.ports)
    outcome = outcome_of(arguments.group, context, found)
    known = outcome.to_json() if context.folder is None else {}
    emit({**found.to_json(), **known}, arguments.view, lambda: status_report(arguments.group, found))
    if arguments.view.output.for_people:
        for line in outcome.lines():
            print(visible(line))
    if not arguments.watch:
        return 0
    from leeward.cli.upgrade.following import follow  # late: that module imports this one

    return follow(arguments.group, context)


def group_status(name: str, cluster: str, ports: Ports) -> UpgradeStatus:
    """Return the group's upgrade status from record and cluster; without a record, from the cluster alone: by the
    defaults where no policy selects the group. Raises InvalidInputError for a group that does not exist.
    """
    record = ports.upgrades.read(name)
    observation = observe(record or _unrecorded(described(name, ports.groups), cluster, ports), ports)
    runs = record is not None and record.ended is None
    return status_of(
        observation.preflight,
        record,
        allowed(record, observation, ports.clock) if record is not None and runs else None,
        running(name, record, ports) if ports.deployment else None,  # a snapshot folder is of no deployment
    )


def running(group: str, record: UpgradeRecord | None, ports: Ports) -> Running:
    """Return the execution that holds the group, or one that was started and has not claimed it yet: executions that
    the command line starts have the names of the next attempts.
    """
    if record is not None and is_held(record, ports.upgrade_executions, ports.managed_upgrade_executions):
        return Running(execution=record.execution, terminations=ports.claims.read_all(record.under_way))
    attempt = record.attempt if record is not None else 0
    names = (execution_name(group, attempt + more) for more in (1, 2, 3))
    name = next(
        (name for name in names if is_running(name, ports.upgrade_executions, ports.managed_upgrade_executions)), ""
    )
    return Running(execution=name, new=bool(name))


def _unrecorded(group: Group, cluster: str, ports: Ports) -> UpgradeRecord:
    """Return a record of the group as it stands: its nodes are old or new by the version that it launches from now."""
    policy = ports.clusters.policies(cluster).policy_of(group) or UNSELECTED
    record = fresh_record(group, cluster, policy, UpgradeRequest(), ports.clock)
    if group.launch.template is None:  # a launch configuration: pre-flight reports it
        return record
    return replace(
        record,
        target=_with_labels(expected(record, group, ports.templates), group, policy, ports.nodegroups, ports.launches),
    )


def _with_labels(
    target: UpgradeTarget, group: Group, policy: NodePolicy, nodegroups: KnownNodegroups, launches: LaunchSources
) -> UpgradeTarget:
    """Add what the labels of a managed group's new nodes name: the node group's own launch template, else the image."""
    if group.nodegroup is None:
        return target
    nodegroup = nodegroups.get(group.cluster or "", group.nodegroup, policy.template.ttl)
    launched = launches.settings(group)
    return replace(
        target,
        source=nodegroup.template if nodegroup is not None else None,
        image=launched.image if launched is not None else "",
    )
