"""Instances that an execution affected: those whose termination it requested, those launched for it, and, for an
upgrade, all that its group had in that time.

Decides from identities alone; the caller reads their data."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from leeward.disruption.record import DisruptionRecord
from leeward.model.execution import Execution, Machine, Step
from leeward.model.group import Group, ScalingActivity
from leeward.model.instance import Instance
from leeward.model.termination import Cause, CauseKind, TerminationRecord
from leeward.upgrade.record import UpgradeRecord

_BY_ATTEMPT = re.compile(r"(i-[0-9a-f]{8,17})-(\d+)", re.ASCII)


def instance_of(execution: Execution) -> str:
    """Return the instance that the execution terminates, from its input or its name; empty where neither names it."""
    given = execution.given.get("instance")
    named = _BY_ATTEMPT.fullmatch(execution.name)
    return given if isinstance(given, str) and given else named[1] if named else ""


def attempt_of(execution: Execution, steps: Sequence[Step] = ()) -> int:
    """Return the attempt of a termination: from its name, else from its claim's output; 0 where neither gives it."""
    named = _BY_ATTEMPT.fullmatch(execution.name)
    claimed = next((step.output.get("attempt") for step in steps if step.output.get("attempt")), 0)
    return int(named[2]) if named else int(claimed or 0)


def group_of(execution: Execution) -> str:
    """Return the group that the execution upgrades: one group, or the first of a list."""
    given, several = execution.given.get("group"), execution.given.get("groups")
    if given is None and isinstance(several, list) and several:
        given = several[0]
    return given if isinstance(given, str) else ""


def disruption_of(execution: Execution, steps: Sequence[Step]) -> tuple[str, int]:
    """Return (cluster, number of the run): a manually started one without a number has it in its first output."""
    documents = [execution.given, *(step.output for step in steps)]
    number = next(
        (int(one["disruption"]) for one in documents if isinstance(one.get("disruption"), int) and one["disruption"]), 0
    )
    return str(execution.given.get("cluster") or ""), number


def is_its_upgrade(record: UpgradeRecord, execution: Execution, end: datetime) -> bool:
    """Return whether the record is this execution's. A group has one upgrade at a time, and its record is the latest:
    the periods of both must overlap.
    """
    return record.began <= end and (record.ended is None or record.ended >= execution.started)


def moved(activities: Iterable[ScalingActivity], begin: datetime, end: datetime) -> tuple[str, ...]:
    """Return the instances that came or went in that time, in that order."""
    within = sorted((one for one in activities if begin <= one.at <= end), key=lambda one: one.at)
    return tuple(dict.fromkeys(name for one in within for name in (one.enters, one.leaves) if name))


def named_by_upgrade(record: UpgradeRecord | None) -> tuple[str, ...]:
    """Return the instances that the ledger names at this moment: an ended upgrade has settled it."""
    if record is None:
        return ()
    return tuple(dict.fromkeys((*record.under_way, *record.ahead, *record.given_up)))


def named_by_disruption(record: DisruptionRecord | None) -> tuple[str, ...]:
    """Return the instances to terminate, then those that were launched."""
    return (*record.nodes.values(), *record.launched) if record is not None else ()


def members(group: Group | None, instances: Mapping[str, Instance], end: datetime) -> tuple[str, ...]:
    """Return the members that the group has now and had by `end`."""
    there = [one.id for one in group.instances] if group is not None else []
    return tuple(name for name in there if name not in instances or instances[name].launched <= end)


def launched_for(records: Iterable[TerminationRecord]) -> tuple[str, ...]:
    """Return the instances that were launched as replacements."""
    return tuple(dict.fromkeys(new for one in records if one.replacement for new in one.replacement.launched))


def own_cause(cause: Cause, execution: Execution, group: str, cluster: str, number: int, instance: str) -> bool:
    """Return whether the execution itself is the source of the cause."""
    match execution.machine:
        case Machine.UPGRADE | Machine.MANAGED_UPGRADE:
            return cause.kind is CauseKind.UPGRADE and cause.id.startswith(f"upgrade#{group}#")
        case Machine.DISRUPTION:
            return cause.id == _disruption_cause(cluster, number, instance)
        case _:
            return False


def of_disruption(record: TerminationRecord, cluster: str, number: int) -> bool:
    """Return whether that run requested the termination, also when the run's own record no longer exists."""
    return any(cause.id == _disruption_cause(cluster, number, record.instance) for cause in record.all_causes)


def _disruption_cause(cluster: str, number: int, instance: str) -> str:
    """Return the id as `leeward.disruption.record.cause_id` makes it, without the record."""
    return f"disruption#{cluster}#{number}#{instance}"
