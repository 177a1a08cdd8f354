"""Steps of node-termination that call AWS alone: claim, terminate, answer, finish, note a failure.

Each reads the record again, does at most one thing that is idempotent, and returns the run document. Killed anywhere,
the step can be run again: a termination first checks whether it has begun, and completing an answered hook again
changes nothing."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from leeward.cluster.membership import holding
from leeward.errors import (
    AccessDeniedError,
    AwsUnavailableError,
    InvalidInputError,
    LeewardError,
    NewerRecordError,
    RecordChangedError,
    TerminalError,
    ThrottledError,
)
from leeward.model.capacity import NoOffset, Offset, SurgeInstance
from leeward.model.instance import ENDED, Instance, cluster_of
from leeward.model.lifecycle import ENDING, RETAINED, role_of
from leeward.model.termination import (
    ABRUPT,
    TAKEN,
    Cause,
    CauseKind,
    Outcome,
    Status,
    TerminationRecord,
    execution_name,
)
from leeward.model.times import format_instant
from leeward.model.visible import quoted
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.records import Claims
from leeward.retry import retry
from leeward.termination import decisions
from leeward.termination.capacity_ledger import only_surplus, passed_on, to_offset
from leeward.termination.heartbeats import AT_EVERY_CHANCE, record_heartbeat
from leeward.termination.hook_completion import WHY_RETAINED, answer_hooks
from leeward.termination.ledger_settlement import (
    is_written_off,
    offsets_later,
    request_offsets,
    return_to_owners,
    settle,
)
from leeward.termination.maximum_size import put_back
from leeward.termination.requests import start, subject_of
from leeward.termination.run import Next, Run, carrying, current, noted, reread
from leeward.termination.situation import RUNNING, Freshness, Situation, instance_fact, survey
from leeward.workflow.steps import Step

UNANSWERED = (AccessDeniedError, AwsUnavailableError, ThrottledError)
PAUSES_BEFORE_DRAIN = (1.0, 2.0)  # seconds between requests for a termination, while pods of an instance wait
LONGEST_WHY = 500


def claim(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Check whether this execution holds the claim (first state). An execution started manually claims for the
    operator, starts the execution of the claim's name and hands over to it.
    """
    name = str(call.get("execution") or "")
    run, record = _record_if_read(run, ports)
    if record is None and run.taken:
        until = format_instant(ports.clock.now() + decisions.GIVE_UP_AFTER)
        why = "EC2 takes it, and the table has no record of it yet: its pods leave first"
        return replace(run, next=Next.DRAIN, until=until, why=why)
    manual = run.attempt == 0
    if record is None or (manual and name != execution_name(record.instance, record.attempt)):
        record = _claim_manually(run.instance, name, ports)
    run, ports = run.naming(record.subject), ports.of_cluster(record.subject.cluster)
    if record.status is Status.CLOSED:
        return _hand_over(run, record)
    if name != execution_name(record.instance, record.attempt):
        return _hand_over(run, start(record, ports))
    now = ports.clock.now()
    until = format_instant(now + decisions.GIVE_UP_AFTER)
    begun = replace(run, attempt=record.attempt, version=record.version, until=until).taken_by(record, now)
    if decisions.in_storm(record):
        storm = replace(
            begun, next=Next.DRAIN, why="one of many that EC2 takes: it drains before AWS is asked anything"
        )
        return carrying(storm, record, ports.claims)
    ended, record = _ended(record, ports)
    begun = carrying(begun, record, ports.claims)
    if ended and not record.launching:
        return replace(begun, next=Next.GONE, why=f"EC2 says {ended}: nothing runs there any more")
    return replace(begun, next=Next.REPLACE, why=", ".join(cause.kind.value for cause in record.causes))


def _record_if_read(run: Run, ports: Ports) -> tuple[Run, TerminationRecord | None]:
    """Return the record. An instance that EC2 takes has none while the table is away, or its record is of a newer
    version.
    """
    try:
        return reread(run, ports)
    except (AwsUnavailableError, NewerRecordError, ThrottledError):
        if not run.taken:
            raise
        return run, None


def _ended(record: TerminationRecord, ports: Ports) -> tuple[str, TerminationRecord]:
    """Return EC2's state of an instance on which nothing runs any more, or an empty string if something runs; and the
    record with what was seen. A recent claim holds the state that EC2 reported. If AWS throttles the call for an
    instance that EC2 takes, the next step evicts its pods first.
    """
    known = instance_fact(record, ports.clock.now())
    if known is not None and known.state == RUNNING:
        return "", record
    if known is not None and known.state in ENDED:
        return known.state, record
    try:
        situation = survey(record, ports)
    except UNANSWERED:
        if not record.has(*ABRUPT):
            raise
        return "", record
    return situation.state if situation.ended else "", situation.record


def terminate(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Ask the group to terminate the instance. If it does not take the request before the drain of an instance that EC2
    takes, the pods leave first; it is asked again then.
    """
    if run.next is not Next.TERMINATE_FIRST or not run.taken:
        return _ask_group(run, ports)
    try:
        return retry(lambda: _ask_group(run, ports), ports.clock, PAUSES_BEFORE_DRAIN)
    except UNANSWERED as error:
        run = noted(run, ports, {"refused": ports.clock.now()})[0]
        return replace(run, next=Next.DRAIN, why=f"its pods leave first: {error}"[:LONGEST_WHY])


def _ask_group(run: Run, ports: Ports) -> Run:
    """Ask the group to terminate the instance: with decrement if it has to offset a surge instance, else
    without, so that the group replaces it. An instance that is already leaving is left alone: nothing is offset twice.
    So is one that has returned to its warm pool: the group keeps it. One whose root volume the group replaces is ended
    only if EC2 takes it: for any other cause the run waits until the group is done. An instance that the group retains
    is ended for a manual drain alone: its owner knows which hook was abandoned, and why.
    """
    run, record = current(run, ports, unless=_may_be_withdrawn)
    situation = survey(record, ports, Freshness.WORK)
    record = situation.record
    surges = to_offset(record)
    if not situation.looked and (situation.unusual or (surges and only_surplus(record))):
        situation = survey(record, ports)
    run = replace(run, version=record.version, next=Next.ANSWER)
    if situation.lifecycle == RETAINED and not situation.ended:
        if not record.has(CauseKind.MANUAL):
            return replace(run, next=Next.CANCEL, why=WHY_RETAINED)
        ports.groups.terminate(instance=record.instance, decrement=False, anyway=True)
        run, record = noted(run, ports, {"terminating": ports.clock.now()})
        why = f"{record.subject.group} retained it: termination requested"
        return carrying(replace(run, why=why), record, ports.claims)
    taken = record.has(*TAKEN)
    if situation.in_work and not situation.ended and not taken:
        why = f"{record.subject.group} says {situation.lifecycle}: it is ended once it is in service again"
        return replace(run, why=why)
    leaving = situation.lifecycle is None or role_of(situation.lifecycle) in ENDING
    returned = situation.pooled and not record.has(CauseKind.MANUAL)
    if situation.ended or leaving or returned:
        if "terminating" not in record.times:
            run, record = noted(run, ports, {"terminating": ports.clock.now()})
        return carrying(replace(run, why="it is leaving already"), record, ports.claims)
    if unwanted := _why_unwanted(situation, ports):
        return replace(run, next=Next.CANCEL, why=unwanted)
    asked, shrinks = _terminate(record, ports.groups, decrement=bool(surges), anyway=situation.pooled or taken)
    settlement = Offset(instance=record.instance) if shrinks else NoOffset.WRITTEN_OFF
    offsets = {surges[0]: settlement} if surges and asked else None
    run, record = noted(run, ports, {"terminating": ports.clock.now()}, offsets=offsets)
    why = f"asked {record.subject.group} to terminate it{' and to shrink by the one launched' if shrinks else ''}"
    return carrying(replace(run, why=why if asked else "it was already leaving"), record, ports.claims)


def _may_be_withdrawn(record: TerminationRecord) -> bool:
    """Return whether AWS may have taken a cause back since the record was read: the request could not be taken back."""
    return record.has(CauseKind.SCHEDULED_CHANGE)


def _why_unwanted(situation: Situation, ports: Ports) -> str:
    """Return why nothing requests the end of the instance any more, empty while something does."""
    record = situation.record
    if decisions.is_cancelled(record):
        return decisions.why_cancelled(record)
    surges = to_offset(record) if only_surplus(record) else ()
    if surges and all(_write_off(situation, surge, ports.groups, ports.claims) for surge in surges):
        return f"{record.subject.group} has been made smaller by others meanwhile"
    return ""


OUTCOMES: Mapping[Next, Outcome] = {  # of nodes whose instance stays
    Next.RETURNED_TO_SERVICE: Outcome.RETURNED_TO_SERVICE,
    Next.CANCELLED: Outcome.RETURNED_TO_SERVICE,
    Next.KEPT: Outcome.KEPT,
    Next.REBOOTED: Outcome.REBOOTED,
}


def finish(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Settle the ledger, then close the record, unless a cause has joined since it was last read: then the run makes
    one more pass. A node that was returned to service and still has to terminate keeps its record open, and what it
    has to offset.
    """
    run, record = current(run, ports, unless=lambda known: run.next is not Next.FINISH or _settles(known))
    now = ports.clock.now()
    if record.version != run.version:
        return replace(run, next=Next.AGAIN, why="a cause joined at the last moment")
    situation = survey(record, ports) if to_offset(record) or run.next is Next.RETURNED_TO_SERVICE else None
    if run.next is Next.RETURNED_TO_SERVICE:
        ports.claims.failed(record.instance, run.why)
    if run.next is Next.RETURNED_TO_SERVICE and (
        decisions.comes_again(record, now) or (situation is not None and offsets_later(situation, ports))
    ):
        return_to_owners(record, ports.claims)
        ports.claims.note_attempt(record.instance, record.attempt, times={"retry": now + decisions.RESTS})
        return run
    waiting = None
    if situation is not None:
        waiting = settle(situation, ports)
    else:
        request_offsets(record, ports)
    if waiting:
        waited = now - record.times.get("terminated", now)
        return replace(run, next=Next.WAIT, pause=decisions.pause_seconds(waited=waited, now=now), why=waiting)
    returned = run.next in OUTCOMES
    outcome = OUTCOMES.get(run.next, Outcome.TERMINATED)
    try:
        ports.claims.close(run.instance, version=run.version, outcome=outcome, now=now, times=run.unwritten.times)
    except RecordChangedError:
        return replace(run, next=Next.AGAIN, why="a cause joined at the last moment")
    with suppress(LeewardError):  # otherwise the minute reconciler does it
        _put_back_maximum(record, ports)
    return run if returned else replace(run, next=Next.DONE)


def _settles(record: TerminationRecord) -> bool:
    """Return whether the end of the record decides about other instances: by the record as it is in the table."""
    return bool(to_offset(record) or passed_on(record))


def note_failure(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Keep the record open after a step has used up its retries, and set when the minute reconciler may start it again.
    The steps that failed may have kept a hook waiting for long: it is heartbeaten here.
    """
    run, record = current(run, ports, unless=lambda _: True)
    ports = ports.of_cluster(record.subject.cluster)
    again = ports.clock.now() + decisions.retry_after(record.tries)
    failure = str(call.get("cause") or "unknown error")[:500]
    ports.claims.failed(record.instance, failure)
    ports.claims.note_attempt(record.instance, record.attempt, times={"retry": again})
    with suppress(AccessDeniedError):  # another try of this step would not help
        record_heartbeat(survey(record, ports), ports, AT_EVERY_CHANCE)
    return replace(run, version=record.version, next=Next.FAILED, why=f"{failure}; tried again at {again:%H:%M:%SZ}")


STEPS: Mapping[str, Step[Run]] = {
    "claim": claim,
    "terminate": terminate,
    "answer": answer_hooks,
    "finish": finish,
    "note-failure": note_failure,
}


def _terminate(record: TerminationRecord, groups: Groups, *, decrement: bool, anyway: bool) -> tuple[bool, bool]:
    """Terminate the instance and return (asked, whether the group shrinks). A group at its MinSize cannot shrink: its
    owner has changed the sizes since the launch, so the launch is written off and the group replaces the instance. Any
    other refusal is an error, and the surge instance is still to be offset.
    """
    try:
        return groups.terminate(instance=record.instance, decrement=decrement, anyway=anyway), decrement
    except AccessDeniedError:
        raise
    except TerminalError:
        if not (decrement and _at_minimum(record, groups)):
            raise
        return groups.terminate(instance=record.instance, decrement=False, anyway=anyway), False


def _at_minimum(record: TerminationRecord, groups: Groups) -> bool:
    """Return whether the group is at its MinSize. Called only after a refusal; the error codes do not say: Auto Scaling
    answers each with ValidationError.
    """
    name = record.subject.group
    group = groups.describe([name]).get(name) if name else None
    return group is not None and group.desired <= group.minimum


def _write_off(situation: Situation, surge: SurgeInstance, groups: Groups, claims: Claims) -> bool:
    """Return whether nothing is left to offset; recorded if so."""
    group = situation.listing
    if group is not None and not is_written_off(situation.record, surge, group, groups):
        return False
    claims.note(situation.record.instance, offsets={surge: NoOffset.WRITTEN_OFF})
    return True


def _put_back_maximum(record: TerminationRecord, ports: Ports) -> None:
    """Return the group's MaxSize to its owner's value if this replacement was the last that needed more."""
    item = ports.maxima.read(record.subject.group) if record.subject.group else None
    if item is not None:
        put_back(item, record.subject.cluster, ports)


def _hand_over(run: Run, record: TerminationRecord) -> Run:
    running = execution_name(record.instance, record.attempt)
    why = f"execution {running} has it" if record.status is Status.OPEN else f"{running} brought it to its end"
    return replace(run, attempt=record.attempt, version=record.version, next=Next.HAND_OVER, why=why)


def _found(instance_id: str, ports: Ports) -> tuple[Instance, Ports]:
    """Return the instance and the ports of the account and Region that has it. Raises InvalidInputError if none has, or
    the error of one that could not be asked.
    """
    failure: LeewardError | None = None
    for there in ports.everywhere():
        try:
            instance = there.instances.describe([instance_id]).get(instance_id)
        except LeewardError as error:
            failure = failure or error
            continue
        if instance is not None:
            return instance, there
    unknown = f"instance: found {quoted(instance_id)}, which EC2 does not know; expected a running instance"
    raise failure or InvalidInputError(unknown)


def _claim_manually(instance_id: str, execution: str, ports: Ports) -> TerminationRecord:
    instance, ports = _found(instance_id, ports)
    cluster = cluster_of(instance.tags, ports.clusters.names())
    name, group = holding(instance_id, instance, ports.groups)
    policy = ports.clusters.policies(cluster).policy_of(group) if cluster and group else None
    if cluster is None or policy is None:
        raise InvalidInputError(
            f"instance: found {instance_id} of group {name}, which no policy selects; "
            "expected an instance of a group that a policy of its cluster selects"
        )
    now = ports.clock.now()
    cause = Cause(id=f"manual#{execution}", kind=CauseKind.MANUAL, at=now, reason="started manually")
    return ports.claims.claim(subject_of(instance, cluster, group=name), cause, now)
