"""Evictions of a node that EC2 takes within two minutes, without a call to EC2 or Auto Scaling; their pace in a storm.

In a storm EC2 takes many instances at the same time. AWS throttles the calls that every other step begins with, pods
must not wait for them, and the drains share the concurrency of one function. One turn is made from the record alone; it
is idempotent as every turn is (docs/designs/storms.md)."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import TypeVar
from zlib import crc32

from leeward.errors import (
    AwsUnavailableError,
    ClusterUnreachableError,
    LeewardError,
    NewerRecordError,
    ObjectGoneError,
    ThrottledError,
)
from leeward.model.instance import CapacityType
from leeward.model.node import disruption_taint
from leeward.model.termination import ABRUPT, OVERDUE, Cause, CauseKind, Status, Subject, TerminationRecord, is_abrupt
from leeward.model.times import parse_instant
from leeward.policy.document import NodePolicy
from leeward.ports import Ports
from leeward.ports.kubernetes import Clusters
from leeward.termination import deadlines, decisions
from leeward.termination.decisions import SMALLEST_STORM, in_storm, taken_together
from leeward.termination.drain_plan import DrainPlan, turn_times
from leeward.termination.drain_reports import DrainProgress, evicted_so_far, leaving
from leeward.termination.eviction import turn
from leeward.termination.run import Next, Run, current, latest
from leeward.termination.situation import DrainContext, Situation, find_node, last_known

SHORTEST_PAUSE = 8  # seconds
SPREAD = 8  # seconds, by instance: they were claimed in the same second
SERVED = 500  # nodes: of more each waits longer, in proportion, or second turns would take the places of first ones
WARNED_BEFORE = timedelta(minutes=2, seconds=30)  # EC2's two minutes, and the difference between two clocks
EMPTY = "every pod has left; EC2 takes many instances at once, and this one is released when it does"
LONGEST_SECONDS = 10.0  # drains of other clusters need the place of one whose API server hangs
T = TypeVar("T")


def evicts_alone(record: TerminationRecord, now: datetime) -> bool:
    """Return whether a step evicts without a call to AWS: in a storm, until the instance is released."""
    release = deadlines.release_at(record, now)
    return in_storm(record) and release is not None and now < release


def asks_when_empty(record: TerminationRecord) -> bool:
    """Return whether AWS is asked to end the emptied instance before EC2 takes it: of as few as AWS serves beside each
    other, by instance. While AWS throttles, a call holds one of the places that the pods of other nodes wait for.
    """
    return crc32(record.instance.encode()) % max(taken_together(record), 1) < SMALLEST_STORM


def seconds_to_release(record: TerminationRecord, now: datetime) -> int:
    """Return the whole seconds until the instance is released, at least one."""
    release = deadlines.release_at(record, now)
    return max(1, int((release - now).total_seconds())) if release is not None else 1


def storm_pause(record: TerminationRecord, now: datetime, moments: Sequence[datetime] = ()) -> int:
    """Return the seconds until the next turn: always the same for one instance, never past its release nor past the
    next of the `moments` at which more pods have their turn.
    """
    times = max(1, taken_together(record) / SERVED)
    pause = int(SHORTEST_PAUSE * times) + crc32(record.instance.encode()) % int(SPREAD * times)
    ends = [] if deadlines.release_at(record, now) is None else [seconds_to_release(record, now)]
    turns = [ceil((moment - now).total_seconds()) for moment in moments if moment > now]
    return min([pause, *ends, *turns])


def evict_promptly(record: TerminationRecord, ports: Ports) -> tuple[DrainPlan, DrainProgress] | None:
    """Evict the pods whose turn it is. Return the plan from before the turn, and the progress. None: EC2 does not take
    the instance, the record names no policy, or the instance has no Node. Raises as the calls of Kubernetes do.

    Never deletes by force or for a grace period of the policy: neither the instance nor its group was read.
    """
    policy = _policy(record, ports.clusters)
    if policy is None or not record.has(*ABRUPT):
        return None
    started = record.times.get("draining", ports.clock.now())
    outcome = _turn(_unseen(record, decisions.without_deletions(policy), started, ports))
    if outcome is not None:
        moved = {"moved": ports.clock.now()} if outcome[1].moved else {}
        times = {"begun": started, "draining": started, **moved}
        ports.claims.note_attempt(
            record.instance,
            record.attempt,
            times=times,
            blocked_by=outcome[1].blockers,
            evicted=evicted_so_far(record, outcome[1]),
        )
    return outcome


def _turn(drain: DrainContext) -> tuple[DrainPlan, DrainProgress] | None:
    node = find_node(drain.record, drain.kubernetes) or last_known(drain)
    if node is None:
        return None
    if not node.tainted:
        node = drain.kubernetes.taint(node, disruption_taint(drain.ports.deployment), exclude=True)
    return turn(node, drain)


def turn_in_storm(run: Run, record: TerminationRecord, ports: Ports) -> Run | None:
    """Make one turn of evictions and pause, if so many nodes drain that neither AWS nor the function's concurrency
    would serve them all at once. Return None if that is not so, or every pod has left and AWS is to be called then.
    """
    return turn_alone(run, record, ports) if evicts_alone(record, ports.clock.now()) else None


def turn_alone(run: Run, record: TerminationRecord, ports: Ports) -> Run | None:
    """Make one turn of evictions by the record alone, and pause. Return None if every pod has left, or EC2 does not
    take the instance any more.
    """
    if not is_abrupt(record, ports.clock.now()):
        return None
    moments: tuple[datetime, ...] = ()
    try:
        outcome = evict_promptly(record, ports)
        if outcome is None or (outcome[0].drained and asks_when_empty(record)):
            return None
        plan, progress = outcome
        if plan.drained:
            pause = seconds_to_release(record, ports.clock.now())
            return replace(run, version=record.version, next=Next.WAIT, pause=pause, why=EMPTY)
        moments = turn_times(plan)
        run = replace(run, healthy=tuple(progress.healthy), deleted=progress.deleted)
        why = "; ".join(progress.blockers) or leaving(plan, progress)
    except ObjectGoneError:
        return None
    except (ClusterUnreachableError, ThrottledError) as error:
        why = f"waiting for an answer, nothing is ended meanwhile: {error}"
    pause = storm_pause(record, ports.clock.now(), moments)
    return replace(run, version=record.version, next=Next.WAIT, pause=pause, why=why[:500])


def read_or_evict(
    run: Run, ports: Ports, unless: Callable[[TerminationRecord], bool]
) -> tuple[Run, TerminationRecord | None]:
    """Return the record as `run.current` does. While the table is away, has not taken the claim yet, or
    holds a record that only a newer version can read, evict the pods of an instance that EC2 takes, from the run alone,
    then raise: the state machine repeats the step. None: another execution has the instance, or it was never claimed
    and EC2 has taken it.
    """
    try:
        run, record = latest(run, ports, unless) if run.taken else current(run, ports, unless)
    except (AwsUnavailableError, NewerRecordError, ThrottledError):
        _evict_unrecorded(run, ports)
        raise
    if record is not None:
        return run, record if record.attempt == run.attempt and record.status is Status.OPEN else None
    if ports.clock.now() - parse_instant(run.taken) > OVERDUE:
        return run, None
    _evict_unrecorded(run, ports)
    raise ThrottledError(f"{run.instance} is not claimed yet")


def _evict_unrecorded(run: Run, ports: Ports) -> None:
    """Make one turn of evictions by what the run says, in the last minutes before EC2 takes the instance: one in a
    Capacity Block has half an hour, in which load balancers are waited for. Raises nothing: the table's own error is
    the step's.

    Neither forces a deletion nor raises replicas: what was begun so could not be recorded.
    """
    if not run.taken or parse_instant(run.taken) - ports.clock.now() > WARNED_BEFORE:
        return
    cause = Cause(
        id="unrecorded", kind=CauseKind.SPOT_INTERRUPTION, at=ports.clock.now(), deadline=parse_instant(run.taken)
    )
    subject = Subject(
        instance=run.instance,
        cluster=run.cluster,
        group=run.group or None,
        zone="",
        subnet="",
        instance_type="",
        capacity_type=CapacityType.SPOT,
        node=run.node or None,
        policy=run.policy,
    )
    record = TerminationRecord(
        subject=subject, status=Status.OPEN, attempt=run.attempt, version=run.version, causes=(cause,)
    )
    with suppress(LeewardError):
        policy = _policy(record, ports.clusters)
        if policy is not None:
            alone = decisions.without_deletions(policy)
            alone = replace(alone, drain=replace(alone.drain, surge_single_replicas=False))
            _turn(_unseen(record, alone, ports.clock.now(), ports))


def or_evict(do: Callable[[], T], record: TerminationRecord, ports: Ports) -> T:
    """Return the result of `do`. If AWS throttles or fails a call of it, evict the pods of an instance that EC2 takes,
    then raise: the state machine repeats the step, which may take longer than EC2 does.
    """
    try:
        return do()
    except (AwsUnavailableError, ThrottledError):
        with suppress(LeewardError):
            evict_promptly(record, ports)
        raise


def _policy(record: TerminationRecord, clusters: Clusters) -> NodePolicy | None:
    """Return the present version of the policy that selected the instance when it was claimed."""
    known = clusters.policies(record.subject.cluster).policies if record.subject.policy else ()
    return next((policy for policy in known if policy.name == record.subject.policy), None)


def _unseen(record: TerminationRecord, policy: NodePolicy, started: datetime, ports: Ports) -> DrainContext:
    """Build the drain's context from the record alone, with ports for some seconds."""
    unseen = Situation(record=record, instance=None, group=None, lifecycle=None, our_hooks=(), policy=policy)
    return DrainContext(situation=unseen, started=started, ports=ports.for_seconds(LONGEST_SECONDS))
