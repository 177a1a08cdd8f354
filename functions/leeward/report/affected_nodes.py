"""Which instances an execution touched: those that it told to go, those that came for it, and, of an upgrade, all that
its group had meanwhile.

Decides from identities alone; what is read of them, and how, is the caller's business."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from leeward.disruption.record import RoundRecord
from leeward.model.execution import Execution, Machine, Step
from leeward.model.group import Group, ScalingActivity
from leeward.model.instance import Instance
from leeward.model.termination import Cause, CauseKind, TerminationRecord
from leeward.upgrade.record import UpgradeRecord

_BY_ATTEMPT = re.compile(r"(i-[0-9a-f]{8,17})-(\d+)", re.ASCII)


def instance_of(execution: Execution) -> str:
    """Whose termination it is, as its input or its name says; empty where neither does."""
    given = execution.given.get("instance")
    named = _BY_ATTEMPT.fullmatch(execution.name)
    return given if isinstance(given, str) and given else named[1] if named else ""


def attempt_of(execution: Execution, steps: Sequence[Step] = ()) -> int:
    """Of a termination: as named, else as its claim said; 0 where nothing tells."""
    named = _BY_ATTEMPT.fullmatch(execution.name)
    claimed = next((step.output.get("attempt") for step in steps if step.output.get("attempt")), 0)
    return int(named[2]) if named else int(claimed or 0)


def group_of(execution: Execution) -> str:
    """Whose upgrade it is: one group, or the first of a list."""
    given, several = execution.given.get("group"), execution.given.get("groups")
    if given is None and isinstance(several, list) and several:
        given = several[0]
    return given if isinstance(given, str) else ""


def round_of(execution: Execution, steps: Sequence[Step]) -> tuple[str, int]:
    """(cluster, number of the round): one started by hand without a number says it in its first answer."""
    told = [execution.given, *(step.output for step in steps)]
    number = next((int(one["round"]) for one in told if isinstance(one.get("round"), int) and one["round"]), 0)
    return str(execution.given.get("cluster") or ""), number


def is_its_upgrade(record: UpgradeRecord, execution: Execution, end: datetime) -> bool:
    """A group has one upgrade at a time, and its record the latest: it is this execution's if both were at one time."""
    return record.began <= end and (record.ended is None or record.ended >= execution.started)


def moved(activities: Iterable[ScalingActivity], begin: datetime, end: datetime) -> tuple[str, ...]:
    """Instances that came or went in the meantime, in that order."""
    within = sorted((one for one in activities if begin <= one.at <= end), key=lambda one: one.at)
    return tuple(dict.fromkeys(name for one in within for name in (one.enters, one.leaves) if name))


def named_by_upgrade(record: UpgradeRecord | None) -> tuple[str, ...]:
    """What the ledger names at this moment: an ended one has settled it."""
    if record is None:
        return ()
    return tuple(dict.fromkeys((*record.under_way, *record.debts, *record.places, *record.given_up)))


def named_by_round(record: RoundRecord | None) -> tuple[str, ...]:
    """Those that were to go, then those that were launched."""
    return (*record.nodes.values(), *record.launched) if record is not None else ()


def members(group: Group | None, instances: Mapping[str, Instance], end: datetime) -> tuple[str, ...]:
    """Those that the group has now and had by then."""
    there = [one.id for one in group.instances] if group is not None else []
    return tuple(name for name in there if name not in instances or instances[name].launched <= end)


def launched_for(records: Iterable[TerminationRecord]) -> tuple[str, ...]:
    """What was launched in their stead."""
    return tuple(dict.fromkeys(new for one in records if one.replacement for new in one.replacement.launched))


def own_cause(cause: Cause, execution: Execution, group: str, cluster: str, number: int, instance: str) -> bool:
    """Whether the execution itself brought it."""
    match execution.machine:
        case Machine.UPGRADE:
            return cause.kind is CauseKind.UPGRADE and cause.id.startswith(f"upgrade#{group}#")
        case Machine.ROUND:
            return cause.id == _round_cause(cluster, number, instance)
        case _:
            return False


def of_round(record: TerminationRecord, cluster: str, number: int) -> bool:
    """Whether it was told to go by that round, also when the round's own record is not there any more."""
    return any(cause.id == _round_cause(cluster, number, record.instance) for cause in record.all_causes)


def _round_cause(cluster: str, number: int, instance: str) -> str:
    """As `leeward.disruption.record.cause_id` makes it, without the record."""
    return f"round#{cluster}#{number}#{instance}"
