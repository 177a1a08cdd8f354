"""Lease of an upgrade: its record, held by one execution of one of two state machines.

Decides whether an execution still holds the lease and which execution follows it; `workflow.lease` decides how the
record is written. node-group-upgrade replaces the nodes of self-managed groups; managed-node-group-upgrade
supervises EKS, which rolls managed node groups. Both use the same lease, so the record may name an execution of
either. An execution of the wrong state machine passes the lease on to one of the other."""

from collections.abc import Mapping
from typing import Any

from leeward.errors import GroupBusyError
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Disruptions, Upgrades
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import Run
from leeward.workflow.executions import execution_name, start_first_free
from leeward.workflow.lease import LeaseLostError, write_version

MAX_NAMES_TRIED = 100  # for the next execution


def is_running(name: str, upgrade_executions: NamedExecutions, managed_upgrade_executions: NamedExecutions) -> bool:
    """Return whether an execution of this name runs in either state machine; False for an empty name."""
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
    """Start the execution of the attempt after this one, and return its name; a name that is taken is skipped.

    `nodegroup`: name of the managed node group, whose state machine is the other one; None: self-managed. `document`:
    input of the execution. Idempotent while the execution runs. Raises RecordChangedError.
    """
    executions = upgrade_executions if nodegroup is None else managed_upgrade_executions
    names = (execution_name(group, attempt + number) for number in range(1, MAX_NAMES_TRIED + 1))
    return start_first_free(executions, names, document)


def held(
    record: UpgradeRecord, upgrade_executions: NamedExecutions, managed_upgrade_executions: NamedExecutions
) -> bool:
    """Return whether the execution that the record names runs."""
    return is_running(record.execution, upgrade_executions, managed_upgrade_executions)


def written(record: UpgradeRecord, upgrades: Upgrades) -> UpgradeRecord:
    """Write the record and return it with its new version. Raises RecordChangedError; the step is then run again."""
    return write_version(record, upgrades.write, f"upgrade of {record.group}")


def read(run: Run, upgrades: Upgrades) -> UpgradeRecord:
    """Return the record of the run's upgrade. Raises LeaseLostError if another execution holds it now."""
    record = upgrades.read(run.group)
    if record is None or record.execution != run.execution:
        raise LeaseLostError(f"upgrade of {run.group}: execution {record.execution if record else '?'} has it now")
    return record


def wait_for_disruption(record: UpgradeRecord, disruptions: Disruptions) -> None:
    """Raise GroupBusyError while a disruption run holds the group; the state machine retries for an hour."""
    disruption = disruptions.read(record.cluster)
    if disruption is not None and disruption.open and record.group in disruption.groups:
        nodes = ", ".join(disruption.to_terminate)
        raise GroupBusyError(
            f"disruption run {disruption.number} ({disruption.method.value}) holds {record.group}: {nodes}"
        )
