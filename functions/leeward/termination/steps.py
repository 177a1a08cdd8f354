"""Steps of node-termination that call AWS alone: claim, terminate, answer, finish, note a failure.

Each reads the record again, does at most one thing that is idempotent, and returns the run document. Killed anywhere,
the step can be run again: a termination first checks whether it has begun, and completing an answered hook again
changes nothing."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
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
from leeward.model.group import RETAINED, HookResult
from leeward.model.instance import ENDED, cluster_of
from leeward.model.termination import (
    NOBODY,
    Cause,
    CauseKind,
    Outcome,
    Status,
    Subject,
    TerminationRecord,
    execution_name,
)
from leeward.model.times import format_instant
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.termination import decisions
from leeward.termination.capacity_ledger import debts, only_surplus
from leeward.termination.execution import start
from leeward.termination.freshness import IN_SERVICE, RUNNING, TERMINATING, UNSETTLED, Need, instance_fact, seconds_left
from leeward.termination.heartbeats import AT_EVERY_CHANCE, beat
from leeward.termination.instance_state import POOLED_AND_RUNNING, InstanceState, read, survey
from leeward.termination.ledger_settlement import ask_payers, forgiven, give_back_debts, pays_itself_later, settle
from leeward.termination.maximum_size import put_back
from leeward.termination.run import Next, Run
from leeward.termination.storm import in_storm

HEARS_WITHIN = 4  # seconds
SERVES_AGAIN = timedelta(minutes=1)  # in service for so long after its end was due: it may have returned
WHY_RETAINED = "a terminate hook was abandoned and the group retains the instance: leeward drain ends it"

Step = Callable[[Run, Mapping[str, Any], Ports], Run]


def claim(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Check whether this execution holds the claim (first state). An execution started manually claims for the
    operator, starts the execution of the claim's name and hands over to it.
    """
    name = str(call.get("execution") or "")
    record = ports.claims.read(run.instance)
    by_hand = run.attempt == 0
    if record is None or (by_hand and name != execution_name(record.instance, record.attempt)):
        record = _claim_by_hand(run.instance, name, ports)
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
    if not situation.looked and (_unusual(situation) or (owed and only_surplus(record))):
        situation = survey(record, ports)
    run = replace(run, version=record.version, next=Next.ANSWER)
    if situation.lifecycle == RETAINED and not situation.ended:
        if not record.has(CauseKind.MANUAL):
            return replace(run, next=Next.SPARE, why=WHY_RETAINED)
        ports.groups.terminate(instance=record.instance, decrement=False, anyway=True)
        ports.claims.note(record.instance, times={"terminating": ports.clock.now()})
        return replace(run, why=f"{record.subject.group} retained it: termination requested")
    leaving = situation.lifecycle is None or situation.lifecycle.startswith("Terminating")
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


def _unusual(situation: InstanceState) -> bool:
    """Return whether the group's lifecycle state is unusual for a termination: a fresh read then decides."""
    return situation.lifecycle is None or situation.lifecycle == RETAINED or situation.pooled


def answer_hooks(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Complete each terminate hook of ours as soon as the group waits, by instance id: the event that announces it is
    only best effort. Then wait until EC2 reports that the instance has ended. Hooks that are not ours are never
    touched.

    While another team's hook holds an instance whose Node has not joined, the kubelet may still register it: the drain
    step reads the Node again after each pause.
    """
    if run.next is Next.SPARE:
        return run
    situation = survey(read(run.instance, ports), ports, Need.WORK)
    waited = _waited(situation.record, ports.clock.now())
    stays = situation.lifecycle == IN_SERVICE and waited > SERVES_AGAIN
    if not situation.looked and (_unusual(situation) or _may_hold_unnoticed(situation) or stays):
        situation = survey(situation.record, ports)
    record, now = situation.record, ports.clock.now()
    asks = (
        situation.held or situation.lifecycle == TERMINATING
    )  # requested just now: Auto Scaling knows whether it waits
    answered = [hook.name for hook in situation.our_hooks if asks and _answer(situation, hook.name, ports)]
    if answered or (situation.held and situation.our_hooks):
        ports.claims.note(record.instance, times={"answered": now})
        record = replace(record, times={"answered": now, **record.times})
    if answered and not situation.ended and not record.has(*ABRUPT) and _hears_of_the_end(record, ports):
        return answer_hooks(run, call, ports)
    if situation.ended:
        ports.claims.note(record.instance, times={"terminated": now})
        return replace(run, version=record.version, next=Next.REMOVE, why=f"EC2 says {situation.state}")
    if situation.lifecycle == POOLED_AND_RUNNING:
        return replace(run, version=record.version, next=Next.REMOVE, why="it runs on in its warm pool")
    spared = _why_spared(situation, waited)
    if spared:
        return replace(run, next=Next.SPARE, why=spared)
    held = f"the group says {situation.lifecycle}, EC2 {situation.state}"
    why = f"answered {', '.join(answered)}" if answered else held
    pause = max(decisions.pause_seconds(waited=waited, now=now), _until_unsure(record, now))
    return _look_again(replace(run, version=record.version, pause=pause, why=why), situation)


def _waited(record: TerminationRecord, now: datetime) -> timedelta:
    """Return for how long the instance's end has been awaited."""
    since = max((record.times[name] for name in ("terminating", "drained") if name in record.times), default=now)
    return now - since


def _why_spared(situation: InstanceState, waited: timedelta) -> str:
    """Return why the instance stays although its end is awaited, or an empty string if it does not stay."""
    if situation.lifecycle is None and waited > decisions.DETACHED_AFTER:
        return "no group holds the instance any more: it was detached meanwhile"
    if _came_back(situation):
        return "its group has put it into service again, out of its warm pool"
    retained = situation.lifecycle == RETAINED and not situation.record.has(CauseKind.MANUAL)
    return WHY_RETAINED if retained else ""


def _came_back(situation: InstanceState) -> bool:
    """Return whether EC2 has started the instance again since the drain began, and its group has it in service:
    StartInstances renews the launch time of an instance that was stopped in its warm pool.
    """
    begun = situation.record.times.get("begun")
    launched = situation.instance.launched if situation.instance else None
    return situation.lifecycle == IN_SERVICE and begun is not None and launched is not None and launched > begun


def _hears_of_the_end(record: TerminationRecord, ports: Ports) -> bool:
    """Return whether a message reports within some seconds that EC2 has ended the instance: mostly it does, and a pause
    with its step costs more than these seconds. With many instances that EC2 takes at once, none is waited for like
    this.
    """
    for _ in range(HEARS_WITHIN):
        ports.clock.sleep(1)
        known = instance_fact(read(record.instance, ports), ports.clock.now())
        if known is not None and known.state in ENDED:
            return True
    return False


def _may_hold_unnoticed(situation: InstanceState) -> bool:
    """Return whether EC2 has ended the instance, no hook of ours was completed, and no message has reported whether one
    waits: it may be lost.
    """
    answered = "answered" in situation.record.times
    return situation.ended and bool(situation.our_hooks) and not (situation.held or answered)


def _until_unsure(record: TerminationRecord, now: datetime) -> int:
    """Return the seconds in which a step learns nothing: a message wakes the run, and AWS is called if none comes."""
    return min(ceil(seconds_left(record, now)), ceil(UNSETTLED.total_seconds()))


def _look_again(run: Run, situation: InstanceState) -> Run:
    """Read again after a pause: the hooks, or the Node not joined yet, every few seconds if EC2 takes the instance."""
    if not decisions.may_join_late(situation.record, situation.state):
        return replace(run, next=Next.WAIT)
    pause = min(run.pause, decisions.JOIN_PAUSE) if situation.record.has(*ABRUPT) else run.pause
    return replace(run, next=Next.DRAIN, pause=pause, why=f"{run.why}; no Node has joined yet")


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


STEPS: Mapping[str, Step] = {
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


def _answer(situation: InstanceState, hook: str, ports: Ports) -> bool:
    assert situation.group is not None  # only a group holds an instance
    return ports.groups.complete(
        group=situation.group.name, hook=hook, instance=situation.record.instance, result=HookResult.CONTINUE
    )


def _put_back_maximum(record: TerminationRecord, ports: Ports) -> None:
    """Return the group's MaxSize to its owner's value if this replacement was the last that needed more."""
    item = ports.maxima.read(record.subject.group) if record.subject.group else None
    if item is not None:
        put_back(item, record.subject.cluster, ports)


def _hand_over(run: Run, record: TerminationRecord) -> Run:
    running = execution_name(record.instance, record.attempt)
    why = f"execution {running} has it" if record.status is Status.OPEN else f"{running} brought it to its end"
    return replace(run, attempt=record.attempt, version=record.version, next=Next.HAND_OVER, why=why)


def _claim_by_hand(instance_id: str, execution: str, ports: Ports) -> TerminationRecord:
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
    subject = Subject(
        instance=instance.id,
        cluster=cluster,
        group=instance.group,
        zone=instance.zone,
        subnet=instance.subnet,
        instance_type=instance.type,
        capacity_type=instance.capacity_type,
        state=instance.state,
        networks=instance.networks,
    )
    cause = Cause(id=f"manual#{execution}", kind=CauseKind.MANUAL, at=now, reason="started by hand")
    return ports.claims.claim(subject, cause, now)
