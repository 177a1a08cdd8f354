"""Answers from termination records to messages about their instances, so that AWS is not called: several messages each
announce the state changes and the hook of an instance that is leaving."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from leeward.model import well_known
from leeward.model.group import LifecycleHook
from leeward.model.instance import ENDED, Instance
from leeward.model.message import InterruptionMessage, LifecycleTermination, MessageKind, StateChange
from leeward.model.seen import SeenGroup
from leeward.model.termination import ABRUPT, CauseKind, Outcome, Status, TerminationRecord
from leeward.policy.document import NodePolicy
from leeward.termination.situation import group_fact, instance_fact

TAKEN = frozenset(
    {MessageKind.SPOT_INTERRUPTION, MessageKind.CAPACITY_RESERVATION}
)  # EC2 takes it, whatever its group's state


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Facts from the records. `instances`: those that need no call to EC2; `grouped`: those whose groups need no read,
    with `tags` and `hooks` by group; `nodes`: names of the Nodes, by instance; `open`: the records of open
    terminations.
    """

    instances: Mapping[str, Instance] = field(default_factory=dict)
    grouped: frozenset[str] = frozenset()
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hooks: Mapping[str, tuple[LifecycleHook, ...]] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    open: Mapping[str, TerminationRecord] = field(default_factory=dict)


def worth_reading(messages: Iterable[InterruptionMessage]) -> list[str]:
    """Return the instances whose records may answer."""
    announced = (message for message in messages if isinstance(message, StateChange | LifecycleTermination))
    return sorted({name for message in announced for name in message.instances})


def recorded(
    messages: Sequence[InterruptionMessage], records: Mapping[str, TerminationRecord], now: datetime
) -> Recorded:
    """Return the facts usable from the records: for each instance those with which every message of the batch about it
    can be decided.
    """
    instances: dict[str, Instance] = {}
    groups: dict[str, SeenGroup] = {}
    grouped: set[str] = set()
    for name, record in records.items():
        mine = [message for message in messages if name in message.instances]
        group = group_fact(record, now) or (record.seen.group if record.seen and _is_over(record) else None)
        if group is None or group.facts is None or not all(_of_group(record, group, message) for message in mine):
            continue
        grouped.add(name)
        groups[group.facts.name] = group
        if all(isinstance(message, LifecycleTermination) or _is_known(record, now) for message in mine):
            seen = instance_fact(record, now)
            announced_state = next((message.state for message in mine if isinstance(message, StateChange)), "running")
            instances[name] = _instance(record, seen.state if seen and not _is_over(record) else announced_state)
    return Recorded(
        instances=instances,
        grouped=frozenset(grouped),
        tags={name: group.facts.tags for name, group in groups.items() if group.facts},
        hooks={name: group.hooks for name, group in groups.items()},
        nodes={name: node for name in grouped if (node := records[name].subject.node)},
        open={name: record for name, record in records.items() if record.status is Status.OPEN},
    )


def by_name_alone(policies: Sequence[NodePolicy], group: str) -> bool:
    """Return whether the group's tags cannot affect which policy selects it."""
    for policy in policies:
        if policy.selector.names(group):
            return not policy.selector.tags
    return True


def _is_over(record: TerminationRecord) -> bool:
    return record.status is Status.CLOSED and record.outcome is Outcome.TERMINATED


def _stays(record: TerminationRecord) -> bool:
    """Return whether the termination keeps the instance: a hook that joins would end it, so its group is asked."""
    return record.keeps or record.reboot is not None


def _ends(record: TerminationRecord) -> bool:
    """Return whether something ends the instance, as far as the record knows: Leeward has requested it, or AWS has said
    so. A hook that is said to hold an instance that only drains is looked for in its group.
    """
    announced = (*ABRUPT, CauseKind.STATE_CHANGE, CauseKind.ASG_TERMINATE)
    return "terminating" in record.times or record.has(*announced)


def _of_group(record: TerminationRecord, group: SeenGroup, message: InterruptionMessage) -> bool:
    """Return whether the record knows enough of the group: for a terminate hook of it that joins an open termination
    whose instance ends, and for EC2's report that it has ended the instance. Any other state may be about a warm pool.
    """
    if isinstance(message, StateChange):
        return message.state in ENDED
    if not isinstance(message, LifecycleTermination) or message.hook.without_pods or _stays(record):
        return False
    if not _ends(record):
        return False
    known = any(hook.name == message.hook.hook for hook in group.hooks)
    same = group.facts is not None and group.facts.name == message.hook.group
    return record.status is Status.OPEN and known and same


def _is_known(record: TerminationRecord, now: datetime) -> bool:
    """Return whether EC2 need not confirm that it has ended the instance: it has reported so before, to a step or for
    an earlier message.
    """
    seen = instance_fact(record, now)
    return seen is not None and seen.state in ENDED


def _instance(record: TerminationRecord, state: str) -> Instance:
    subject = record.subject
    tags = {well_known.CLUSTER_TAG_PREFIX + subject.cluster: "owned"}
    return Instance(
        id=subject.instance,
        state=state,
        type=subject.instance_type,
        zone=subject.zone,
        subnet=subject.subnet,
        capacity_type=subject.capacity_type,
        tags=tags | ({well_known.GROUP_TAG: subject.group} if subject.group else {}),
        launched=datetime.min.replace(tzinfo=UTC),
        networks=subject.networks,
    )
