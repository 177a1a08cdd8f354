"""Steps of node-termination that call AWS alone: claim, terminate, answer, finish, note a failure.

Each reads the record again, does at most one thing that is idempotent, and returns the run document. Killed anywhere,
the step can be run again: a termination first checks whether it has begun, and completing an answered hook again
changes nothing."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from leeward.errors import (
    AccessDeniedError,
    AwsUnavailableError,
    InvalidInputError,
    LeewardError,
    RecordChangedError,
    TerminalError,
    ThrottledError,
)
from leeward.model.deadlines import ABRUPT
from leeward.model.group import LEAVING, RETAINED
from leeward.model.instance import ENDED, cluster_of
from leeward.model.termination import (
    NOBODY,
    Cause,
    CauseKind,
    Outcome,
    Status,
    TerminationRecord,
    execution_name,
)
from leeward.model.times import format_instant
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.termination import decisions
from leeward.termination.capacity_ledger import debts, only_surplus
from leeward.termination.execution import start
from leeward.termination.freshness import RUNNING, Need, instance_fact
from leeward.termination.heartbeats import AT_EVERY_CHANCE, beat
from leeward.termination.hook_completion import WHY_RETAINED, answer_hooks
from leeward.termination.instance_state import InstanceState, read, survey
from leeward.termination.ledger_settlement import ask_payers, forgiven, give_back_debts, pays_itself_later, settle
from leeward.termination.maximum_size import put_back
from leeward.termination.run import Next, Run
from leeward.termination.storm import in_storm
from leeward.termination.subject import subject_of
from leeward.workflow.steps import Step


def claim(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Check whether this execution holds the claim (first state). An execution started manually claims for the
    operator, starts the execution of the claim's name and hands over to it.
    """
    name = str(call.get("execution") or "")
    record = ports.claims.read(run.instance)
    by_hand = run.attempt == 0
    if record is None or (by_hand and name != execution_name(record.instance, record.attempt)):
        record = _claim_manually(run.instance, name, ports)
    if record.status is Status.CLOSED:
        return _hand_over(run, record)
    if name != execution_name(record.instance, record.attempt):
        return _hand_over(run, start(record, ports))
    now = ports.clock.now()
    ports.claims.note(record.instance, times={"claimed": now})
    until = format_instant(now + decisions.GIVE_UP_AFTER)
    begun = replace(run, attempt=record.attempt, version=record.version, until=until)
    if in_storm(record):
        return replace(begun, next=Next.DRAIN, why="one of many that EC2 takes: it drains before AWS is asked anything")
    ended = _ended(record, ports)
    if ended and not record.launching:
        return replace(begun, next=Next.GONE, why=f"EC2 says {ended}: nothing runs there any more")
    return replace(begun, next=Next.REPLACE, why=", ".join(cause.kind.value for cause in record.causes))


def _ended(record: TerminationRecord, ports: Ports) -> str:
    """Return EC2's state of an instance on which nothing runs any more, or an empty string if something runs. A recent
    claim holds the state that EC2 reported. If AWS throttles the call for an instance that EC2 takes, the next step
    evicts its pods first.
    """
    known = instance_fact(record, ports.clock.now())
    if known is not None and known.state == RUNNING:
        return ""
    if known is not None and known.state in ENDED:
        return known.state
    try:
        situation = survey(record, ports)
    except (AwsUnavailableError, ThrottledError):
        if not record.has(*ABRUPT):
            raise
        return ""
    return situation.state if situation.ended else ""


def terminate(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Ask the group to terminate the instance: with decrement if a launch of ours is to be paid for, else without, so
    that the group replaces it. An instance that is already leaving is left alone: no debt is paid twice. So is one that
    has returned to its warm pool: the group keeps it. An instance that the group retains is ended for a manual drain
    alone: its owner knows which hook was abandoned, and why.
    """
    situation = survey(read(run.instance, ports), ports, Need.WORK)
    record = situation.record
    owed = debts(record)
    if not situation.looked and (situation.unusual or (owed and only_surplus(record))):
        situation = survey(record, ports)
    run = replace(run, version=record.version, next=Next.ANSWER)
    if situation.lifecycle == RETAINED and not situation.ended:
        if not record.has(CauseKind.MANUAL):
            return replace(run, next=Next.SPARE, why=WHY_RETAINED)
        ports.groups.terminate(instance=record.instance, decrement=False, anyway=True)
        ports.claims.note(record.instance, times={"terminating": ports.clock.now()})
        return replace(run, why=f"{record.subject.group} retained it: termination requested")
    leaving = situation.lifecycle is None or situation.lifecycle.startswith(LEAVING)
    returned = situation.pooled and not record.has(CauseKind.MANUAL)
    if situation.ended or leaving or returned:
        ports.claims.note(record.instance, times={"terminating": ports.clock.now()})
        return replace(run, why="it is leaving already")
    if owed and only_surplus(record) and all(_forgive(situation, debt, ports) for debt in owed):
        return replace(run, next=Next.SPARE, why=f"{record.subject.group} has been made smaller by others meanwhile")
    asked, paid = _terminate(record, ports, owed=bool(owed), anyway=situation.pooled)
    payers = {owed[0]: record.instance if paid else NOBODY} if owed and asked else None
    ports.claims.note(record.instance, times={"terminating": ports.clock.now()}, payers=payers)
    why = f"asked {record.subject.group} to terminate it{' and to shrink by the one launched' if paid else ''}"
    return replace(run, why=why if asked else "it was already leaving")


def finish(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Settle the ledger, then close the record, unless a cause has joined since it was last read: then the run makes
    one more pass. A node that was returned to service and still has to terminate keeps its record open, and its debts.
    """
    record, now = read(run.instance, ports), ports.clock.now()
    if record.version != run.version:
        return replace(run, next=Next.AGAIN, why="a cause joined at the last moment")
    situation = survey(record, ports) if debts(record) or run.next is Next.GIVEN_BACK else None
    if run.next is Next.GIVEN_BACK:
        ports.claims.failed(record.instance, run.why)
    if run.next is Next.GIVEN_BACK and (decisions.comes_again(record, now) or _pays_later(situation, ports)):
        give_back_debts(record, ports)
        ports.claims.note_attempt(record.instance, record.attempt, times={"retry": now + decisions.RESTS})
        return run
    waiting = None
    if situation is not None:
        waiting = settle(situation, ports)
    else:
        ask_payers(record, ports)
    if waiting:
        waited = now - record.times.get("terminated", now)
        return replace(run, next=Next.WAIT, pause=decisions.pause_seconds(waited=waited, now=now), why=waiting)
    given_back = run.next in {Next.GIVEN_BACK, Next.SPARED}
    outcome = Outcome.GIVEN_BACK if given_back else Outcome.TERMINATED
    try:
        ports.claims.close(run.instance, version=run.version, outcome=outcome, now=now)
    except RecordChangedError:
        return replace(run, next=Next.AGAIN, why="a cause joined at the last moment")
    with suppress(LeewardError):  # otherwise the minute reconciler does it
        _put_back_maximum(record, ports)
    return run if given_back else replace(run, next=Next.DONE)


def _pays_later(situation: InstanceState | None, ports: Ports) -> bool:
    return situation is not None and pays_itself_later(situation, ports)


def note_failure(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Keep the record open after a step has used up its retries, and set when the minute reconciler may start it again.
    The steps that failed may have kept a hook waiting for long: it is heartbeaten here.
    """
    record = read(run.instance, ports)
    again = ports.clock.now() + decisions.retry_after(record.tries)
    failure = f"{call.get('error') or 'unknown error'}: {call.get('cause') or ''}"[:500]
    ports.claims.failed(record.instance, failure)
    ports.claims.note_attempt(record.instance, record.attempt, times={"retry": again})
    beat(survey(record, ports), ports, AT_EVERY_CHANCE)
    return replace(run, version=record.version, next=Next.FAILED, why=f"{failure}; tried again at {again:%H:%M:%SZ}")


STEPS: Mapping[str, Step[Run]] = {
    "claim": claim,
    "terminate": terminate,
    "answer": answer_hooks,
    "finish": finish,
    "note-failure": note_failure,
}


def _terminate(record: TerminationRecord, ports: Ports, *, owed: bool, anyway: bool) -> tuple[bool, bool]:
    """Terminate the instance and return (asked, paid). A group at its MinSize cannot shrink: its owner has changed the
    sizes since the launch, so the debt is forgiven and the group replaces the instance. Any other refusal is an error,
    and the debt stays.
    """
    try:
        return ports.groups.terminate(instance=record.instance, decrement=owed, anyway=anyway), owed
    except AccessDeniedError:
        raise
    except TerminalError:
        if not (owed and _at_minimum(record, ports)):
            raise
        return ports.groups.terminate(instance=record.instance, decrement=False, anyway=anyway), False


def _at_minimum(record: TerminationRecord, ports: Ports) -> bool:
    """Return whether the group is at its MinSize. Called only after a refusal; the error codes do not say: Auto Scaling
    answers each with ValidationError.
    """
    name = record.subject.group
    group = ports.groups.describe([name]).get(name) if name else None
    return group is not None and group.desired <= group.minimum


def _forgive(situation: InstanceState, debt: str, ports: Ports) -> bool:
    """Return whether the debt needs no payer any more; recorded if so."""
    group = situation.listing
    if group is not None and not forgiven(situation.record, debt, group, ports):
        return False
    ports.claims.note(situation.record.instance, payers={debt: NOBODY})
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


def _claim_manually(instance_id: str, execution: str, ports: Ports) -> TerminationRecord:
    instance = ports.instances.describe([instance_id]).get(instance_id)
    if instance is None:
        raise InvalidInputError(f"instance: found {instance_id}, which EC2 does not know; expected a running instance")
    cluster = cluster_of(instance.tags, ports.clusters.names())
    group = ports.groups.describe([instance.group]).get(instance.group) if instance.group else None
    policy = (
        policy_for(ports.clusters.policies(cluster).policies, group.name, group.tags) if cluster and group else None
    )
    if cluster is None or policy is None:
        raise InvalidInputError(
            f"instance: found {instance_id} of group {instance.group}, which no policy selects; "
            "expected an instance of a group that a policy of its cluster selects"
        )
    now = ports.clock.now()
    cause = Cause(id=f"manual#{execution}", kind=CauseKind.MANUAL, at=now, reason="started manually")
    return ports.claims.claim(subject_of(instance, cluster), cause, now)
