"""Terminations as other packages see them: an instance is claimed and its execution started, records of other nodes are
read, and nodes that no termination has claimed return to service.

Any number of claimants end with one open execution, awake. A step that reads the records of other nodes must not fail
for one of them, malformed or of a newer version. What it takes an unreadable record for is decided where it is read:
the assumption that harms least."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from leeward.cluster.joins import group_name
from leeward.errors import LeewardError, NewerRecordError, RecordChangedError, UnexpectedError
from leeward.isolation import attempt
from leeward.model.instance import Instance, cluster_of
from leeward.model.node import Node, disruption_taint
from leeward.model.termination import Cause, Status, Subject, TerminationRecord
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.ports.executions import Executions
from leeward.ports.kubernetes import Kubernetes
from leeward.ports.records import Claims
from leeward.termination.run import UNCLAIMED

PROBES = 20  # names that are tried in one call: with doubling steps enough for a million closed executions


def subject_of(instance: Instance, cluster: str, *, group: str | None, node: str | None = None) -> Subject:
    """Build the subject of a claim: the instance as it is now. `cluster`: where it was found, unless its tags name it;
    `group`: the one that lists it, None where none does; `node`: the name of its Node.
    """
    return Subject(
        instance=instance.id,
        cluster=cluster_of(instance.tags, [cluster]) or cluster,
        group=group_name(group, instance),
        zone=instance.zone,
        subnet=instance.subnet,
        instance_type=instance.type,
        capacity_type=instance.capacity_type,
        state=instance.state,
        networks=instance.networks,
        node=node,
    )


def is_open(instance: str, claims: Claims) -> bool:
    """Return whether a termination of the instance is open."""
    record = claims.read(instance)
    return record is not None and record.status is Status.OPEN


def request(subject: Subject, causes: Iterable[Cause], ports: Ports) -> None:
    """Claim the instance for all causes, at least one, then start its execution; an instance that has ended is left
    alone. The order of causes does not matter to a later reader: a termination that runs before the request
    of an offset has joined returns the offset. Idempotent by the causes' ids.
    """
    first, *others = causes
    claimed = ports.claims.claim(subject, first, first.at, also=others)
    for cause in others:
        if not claimed.knows(cause.id):
            claimed = ports.claims.claim(subject, cause, cause.at, claimed)
    if claimed.status is Status.OPEN:
        start(claimed, ports)


def start_unclaimed(subject: Subject, taken: datetime, executions: Executions) -> None:
    """Start the first execution for an instance that EC2 takes before the table has its record: it evicts pods from
    this input alone, and goes on with the record once that is written. Nothing happens where an earlier termination
    holds the name.
    """
    values = (subject.cluster, subject.group or "", subject.node or "", subject.policy, format_instant(taken))
    executions.start(subject.instance, 1, dict(zip(UNCLAIMED, values, strict=True)))


def start(record: TerminationRecord, ports: Ports) -> TerminationRecord:
    """Start the execution of the claim. An open execution is woken if a cause has joined: its pause may last minutes.
    If a closed one holds the name, the next attempt is begun. Step Functions keeps a closed name for 90 days, longer
    than the record lives, so that many of the next names may be taken as well: the steps double, and a free one is
    found within one call. Every claimant derives the name from the record. A repeat wakes the run once more, which only
    makes it read again. Raises RecordChangedError if other callers keep beginning attempts.
    """
    for probe in range(PROBES):
        if ports.executions.start(record.instance, record.attempt):
            if record.token and len(record.causes) > 1:
                ports.executions.wake(record.token)
            return record
        record = ports.claims.begin_attempt(record.instance, record.attempt, taken=2**probe if probe else 0)
        if record.status is Status.CLOSED:
            return record
    raise RecordChangedError(f"{record.instance}: {PROBES} attempts were begun by others meanwhile")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableRecords:
    """Existing records by instance."""

    read: Mapping[str, TerminationRecord] = field(default_factory=dict)
    unreadable: Mapping[str, LeewardError] = field(default_factory=dict)  # those that cannot be parsed, and why


def read_apart(instances: Iterable[str], claims: Claims) -> ReadableRecords:
    """Read the records in one call; where one of them cannot be parsed, in halves until it is alone. Raises the table's
    errors: an unknown record must not be taken for a missing one.
    """
    names = list(dict.fromkeys(instances))
    if not names:
        return ReadableRecords()
    together = attempt(lambda: claims.read_all(names))
    if not isinstance(together, LeewardError):
        return ReadableRecords(read=together)
    if not isinstance(together, NewerRecordError | UnexpectedError):
        raise together
    if len(names) == 1:
        return ReadableRecords(unreadable={names[0]: together})
    halves = [read_apart(part, claims) for part in (names[: len(names) // 2], names[len(names) // 2 :])]
    first, second = halves
    return ReadableRecords(read={**first.read, **second.read}, unreadable={**first.unreadable, **second.unreadable})


def untaint_unclaimed(node: Node, kubernetes: Kubernetes, ports: Ports) -> bool:
    """Remove our taint and cordon unless a termination of the instance is open; True if they were removed. A
    termination that is claimed between the read of its record and the write of the node finds the taint put back: until
    its drain begins, the scheduler would otherwise bind pods to a node that is about to leave. Raises ObjectGoneError.
    """
    if is_open(node.instance_id, ports.claims):
        return False
    taint = disruption_taint(ports.deployment)
    kubernetes.untaint(node, taint)
    if is_open(node.instance_id, ports.claims):
        kubernetes.taint(node, taint)
        return False
    return True
