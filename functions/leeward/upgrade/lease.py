"""Lease of an upgrade: its record, held by one execution of two state machines.

node-group-upgrade replaces the nodes of self-managed groups, managed-node-group-upgrade supervises EKS, which rolls
managed node groups. Both take the same lease, so the execution that the record names may be one of either. An
execution of the wrong state machine passes the lease on to one of the other."""

from collections.abc import Mapping
from typing import Any

from leeward.errors import GroupBusyError
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Disruptions, Upgrades
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import Run
from leeward.workflow.executions import execution_name, start_first_free
from leeward.workflow.lease import LeaseLostError, write_version

MOST_NAMES = 100  # that are tried


def is_running(name: str, upgrade_executions: NamedExecutions, managed_upgrade_executions: NamedExecutions) -> bool:
    """Return whether the execution is open, in either state machine."""
    machines = (upgrade_executions, managed_upgrade_executions)
    return bool(name) and any(executions.running(name) for executions in machines)


def start_next(
    group: str,
    nodegroup: str | None,
    attempt: int,
    document: Mapping[str, Any],
    upgrade_executions: NamedExecutions,
    managed_upgrade_executions: NamedExecutions,
) -> str:
    """Start an execution for the attempt after this one, and return its name; the next attempts follow where that name
    is taken. `nodegroup`: EKS' name of a managed group, which has the other state machine. Idempotent while the
    execution is open. Raises RecordChangedError.
    """
    executions = upgrade_executions if nodegroup is None else managed_upgrade_executions
    names = (execution_name(group, attempt + number) for number in range(1, MOST_NAMES + 1))
    return start_first_free(executions, names, document)


def held(
    record: UpgradeRecord, upgrade_executions: NamedExecutions, managed_upgrade_executions: NamedExecutions
) -> bool:
    """Return whether an execution works on the upgrade."""
    return is_running(record.execution, upgrade_executions, managed_upgrade_executions)


def written(record: UpgradeRecord, upgrades: Upgrades) -> UpgradeRecord:
    """Write the record and return it. Raises RecordChangedError, and the step is run again."""
    return write_version(record, upgrades.write, f"upgrade of {record.group}")


def read(run: Run, upgrades: Upgrades) -> UpgradeRecord:
    """Return the record, if this execution still holds it. Raises LeaseLostError."""
    record = upgrades.read(run.group)
    if record is None or record.execution != run.execution:
        raise LeaseLostError(f"upgrade of {run.group}: execution {record.execution if record else '?'} has it now")
    return record


def wait_for_disruption(record: UpgradeRecord, disruptions: Disruptions) -> None:
    """Raise GroupBusyError while a run holds the group; the state machine retries it for an hour."""
    disruption = disruptions.read(record.cluster)
    if disruption is not None and disruption.open and record.group in disruption.groups:
        nodes = ", ".join(disruption.to_terminate)
        raise GroupBusyError(
            f"disruption run {disruption.number} ({disruption.method.value}) holds {record.group}: {nodes}"
        )
