"""Drain step of node-termination: taint the node, wait until load balancers have deregistered it, evict its pods, wait
for anything that still holds it. The steps after it are in `node_removal.py`, the one before in `replacing.py`.

A step works for some seconds and re-reads each second, because three state transitions cost as much as eleven seconds
of work; then it hands over to a pause. An API server that cannot be connected to, or that lists no pods, is waited for,
never read as an empty node. A write that fails is no such server: the drain's time runs out whatever it runs into."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from math import ceil
from typing import Any

from leeward.errors import AccessDeniedError, ClusterGoneError, ClusterUnreachableError, ObjectGoneError, ThrottledError
from leeward.model.deadlines import is_abrupt
from leeward.model.node import Node, disruption_taint
from leeward.model.termination import TerminationRecord
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes
from leeward.termination import deadlines, decisions, evacuated, settling, target_deregistration, volume_detachment
from leeward.termination.capacity_ledger import only_surplus
from leeward.termination.deleted_node import last_known, without_node
from leeward.termination.drain_events import (
    DEREGISTERING,
    DETACHING,
    report_awaited,
    report_blocked,
    report_given_up,
)
from leeward.termination.drain_pause import is_only_announced, next_heartbeats, pause_drain, sleep_on
from leeward.termination.drain_plan import DrainPlan, turn_times
from leeward.termination.endings import after_drain
from leeward.termination.eviction import work
from leeward.termination.freshness import Need
from leeward.termination.heartbeats import heartbeats_kept, record_heartbeat
from leeward.termination.instance_state import InstanceState, find_node_or_uninitialized, survey
from leeward.termination.node_removal import remove_node, return_to_service
from leeward.termination.pod_notice import PodNotices
from leeward.termination.progress import Progress, forced, leaving, longest_grace
from leeward.termination.prompt_eviction import or_evict, read_or_evict, turn_alone, turn_in_storm
from leeward.termination.replica_surge import put_back
from leeward.termination.run import Next, Run
from leeward.workflow.steps import Step

SETTLING_PAUSE = 60  # seconds between two looks at an empty node that stays for a while


def drain(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Taint the node, evict the pods that have to leave, wait for them, and heartbeat the hooks that hold the instance.

    The next step is drained (with the rest of the settle time as pause), kept or reboot if the instance stays, wait,
    gone, failed, cancel if a person has detached the instance, or replace if a cause that has joined calls for another
    instance first.
    """
    record = read_or_evict(run, ports)
    if record is None:
        return replace(run, next=Next.HAND_OVER, why="it has no open record of this attempt")
    run = run.taken_by(record, ports.clock.now())
    try:
        return or_evict(lambda: turn_in_storm(run, record, ports) or _drain(run, record, ports), record, ports)
    except AccessDeniedError:  # asking again does not help; what is left to do needs the permission
        if waiting := turn_alone(run, record, ports):
            return waiting
        raise


def _drain(run: Run, record: TerminationRecord, ports: Ports) -> Run:
    situation = survey(record, ports, Need.WORK)
    if not situation.looked and _decides_now(situation, ports.clock):
        situation = survey(situation.record, ports)
    announced = is_only_announced(run, situation.record, ports.clock.now())
    run = replace(run, version=situation.record.version)
    if situation.ended:
        return replace(run, next=Next.GONE, why=f"EC2 says {situation.state}")
    if instead := _kept(run, situation, ports.clock.now()):
        return instead
    if decisions.is_detached(situation.record, situation.instance, situation.lifecycle, ports.clock.now()):
        situation = replace(situation, policy=decisions.without_deletions(situation.policy))
    joined = decisions.back_to_replacement(
        situation.record,
        situation.group,
        situation.policy,
        situation.lifecycle,
        hook_guards=bool(situation.our_hooks),
        now=ports.clock.now(),
    )
    back = replace(run, next=Next.REPLACE, why=joined) if joined else None
    instead = back or _before_turn(run, situation, ports)
    if instead is not None:
        return instead
    known = situation.record.times
    started = known.get("draining") or ports.clock.now()
    times = {"begun": started, **known, "draining": started}
    situation = replace(situation, record=replace(situation.record, times=times))
    until = deadlines.drain_end(situation.record, situation.policy.drain, started)
    clocks = {"begun": started, "draining": started, "until": until}
    if not clocks.keys() <= known.keys():  # a time that is set stays
        ports.claims.note_attempt(run.instance, situation.record.attempt, times=clocks)
    situation = replace(situation, record=record_heartbeat(situation, ports))
    if announced:
        return sleep_on(run, situation, ports.clock)
    run = replace(run, look="")
    return after_drain(_drain_or_wait(run, situation, started, ports), situation.record)


def _drain_or_wait(run: Run, situation: InstanceState, started: datetime, ports: Ports) -> Run:
    try:
        return _drain_node(run, situation, started, ports)
    except (ClusterGoneError, ClusterUnreachableError, ThrottledError) as error:
        if isinstance(error, ClusterGoneError) and not is_abrupt(situation.record, ports.clock.now()):
            return _without_cluster(run, situation, error)
        why = f"waiting for an answer, nothing is ended meanwhile: {error}"
        return pause_drain(run, situation, started, why, ports.clock, hint=10)


def _before_turn(run: Run, situation: InstanceState, ports: Ports) -> Run | None:
    """Return the step that comes instead of the drain of an evacuated node, or of a surplus, in `surplus_turn.py`; None
    for any other.
    """
    try:
        instead = evacuated.before_drain(run, situation, ports)
        if instead is not None or not only_surplus(situation.record):
            return instead
        from leeward.termination.surplus_turn import before_drain  # late: most drains are of no surplus

        return before_drain(run, situation, ports)
    except ClusterGoneError as error:
        return _without_cluster(run, situation, error)


def _kept(run: Run, situation: InstanceState, now: datetime) -> Run | None:
    """Return the next step for an instance that nothing takes out of service any more; None for any other."""
    record, lifecycle = situation.record, situation.lifecycle
    if decisions.is_cancelled(record):
        return replace(run, next=Next.CANCEL, why=decisions.why_cancelled(situation.record))
    if decisions.is_back(record, lifecycle):
        return replace(run, next=Next.REBOOT, why=f"its group says {lifecycle}")
    if decisions.left_its_group(record, situation.instance, lifecycle, now):
        return replace(run, next=Next.CANCEL, why="it was detached from its group, and nothing else ends it")
    return None


def _decides_now(situation: InstanceState, clock: Clock) -> bool:
    """Return whether this step may end in an action that must not follow from a stale fact: the return of a detached
    node to service, or the deletion of pods.
    """
    record, policy, now = situation.record, situation.policy.drain, clock.now()
    lifecycle = situation.lifecycle
    if decisions.is_detached(record, situation.instance, lifecycle, now) or decisions.is_back(record, lifecycle):
        return True
    started = record.times.get("draining") or now
    return deadlines.may_delete(record, policy, started, now, ours_hold=situation.ours_hold)


@heartbeats_kept
def replace_ahead(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Run the first step of a termination, in `replacing.py`."""
    from leeward.termination.replacing import ask_for_replacement  # late: a cold drain loads no placement

    return ask_for_replacement(run, call, ports)


@heartbeats_kept
def reboot(run: Run, call: Mapping[str, Any], ports: Ports) -> Run:
    """Run the step after the drain of an instance that is rebooted, in `reboot_step.py`."""
    from leeward.termination.reboot_step import reboot_or_wait  # late: most drains end without a reboot

    return reboot_or_wait(run, call, ports)


STEPS: Mapping[str, Step[Run]] = {
    "replace": replace_ahead,
    "drain": drain,
    "reboot": reboot,
    "return-to-service": return_to_service,
    "remove-node": remove_node,
}


def _without_cluster(run: Run, situation: InstanceState, error: ClusterGoneError) -> Run:
    """Return the step of an instance whose cluster EKS has deleted: nothing of it can be drained any more. If its group
    ends it, it is released at once, or the deletion of the group would wait for our hook. Any other stays; if EC2 takes
    it, its containers keep their time. A surplus fails, and is tried again ever later: once it was cancelled, its
    launch would ask for another node at once.
    """
    if only_surplus(situation.record) and not situation.ours_hold:
        raise error
    return replace(run, next=Next.DRAINED if situation.ours_hold else Next.CANCEL, pause=0, why=str(error)[:500])


def _drain_node(run: Run, situation: InstanceState, started: datetime, ports: Ports) -> Run:
    record = situation.record
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    node, uninitialized = find_node_or_uninitialized(record, kubernetes)
    deleted = None if node or uninitialized else last_known(situation, started, kubernetes, ports.clock.now())
    known = node or deleted
    if known is None:
        return without_node(run, situation, started, uninitialized, ports.clock)
    run = replace(run, node=known.name)
    try:
        node = deleted or _tainted(known, situation, started, kubernetes, ports)
        awaited = target_deregistration.before_eviction(situation, started, node, ports)
        if awaited is not None:
            why = report_awaited(awaited, DEREGISTERING, node, situation, ports)
            return pause_drain(run, situation, started, why, ports.clock, hint=None, moments=[awaited.until])
        with PodNotices(kubernetes) as notices:
            plan, progress = work(node, situation, started, kubernetes, ports, notices)
    except ObjectGoneError:
        return replace(run, next=Next.WAIT, pause=1, why="its Node was deleted meanwhile")
    if progress.cancelled:
        return replace(run, next=Next.CANCEL, why=progress.cancelled[:500])
    _note_progress(record, progress, ports)
    if plan.drained:
        result = _emptied(run, situation, started, node, plan, ports)
    else:
        result = _unfinished(run, situation, started, node, plan, progress, ports)
    return replace(result, healthy=tuple(progress.healthy), deleted=progress.deleted)


def _note_progress(record: TerminationRecord, progress: Progress, ports: Ports) -> None:
    """Write what this look has changed; a look that only waits writes nothing."""
    blockers = None if tuple(progress.blockers) == tuple(record.blocked_by) else progress.blockers
    if blockers is not None or progress.moved or progress.evicted:
        moved = {"moved": ports.clock.now()} if progress.moved else None
        ports.claims.note_attempt(
            record.instance, record.attempt, times=moved, blocked_by=blockers, evicted=progress.evicted
        )


def _tainted(node: Node, situation: InstanceState, started: datetime, kubernetes: Kubernetes, ports: Ports) -> Node:
    """Taint the node. A taint that cannot be written (a webhook on nodes fails) is waited for, but not by an instance
    that EC2 takes, nor past the drain's time: then the pods leave without it. Raises ObjectGoneError.
    """
    try:
        return taint_node(node, situation.record, kubernetes, ports)
    except (ClusterUnreachableError, ThrottledError):
        now, policy = ports.clock.now(), situation.policy.drain
        over = deadlines.out_of_time(situation.record, policy, started, now) is not None
        if not (over or is_abrupt(situation.record, now)):
            raise
        return node


def taint_node(node: Node, record: TerminationRecord, kubernetes: Kubernetes, ports: Ports) -> Node:
    """Taint and cordon the node and take it out of load balancers, if not done, and note when, the first time only.
    Raises ObjectGoneError.
    """
    tainted = kubernetes.taint(node, disruption_taint(ports.deployment), exclude=True)
    boot = tainted.boot if record.reboot is not None and not record.boot else None
    if boot or "tainted" not in record.times or record.subject.node != node.name:
        ports.claims.note(record.instance, times={"tainted": ports.clock.now()}, node=node.name, boot=boot)
    return tainted


def _emptied(
    run: Run,
    situation: InstanceState,
    started: datetime,
    node: Node,
    plan: DrainPlan,
    ports: Ports,
) -> Run:
    """Handle a node on which no pod is left that has to leave. After the settle time its volumes and its addresses have
    to be free as well.
    """
    kubernetes = ports.clusters.kubernetes(situation.record.subject.cluster)
    if situation.record.surges or situation.policy.drain.surge_single_replicas:
        with suppress(ClusterUnreachableError, ThrottledError):  # the record keeps it, `remove_node` repeats it
            put_back(run.instance, kubernetes, ports.claims)
    settled = _drained(run, situation, "every pod that has to leave has left", ports)
    if settled.pause > 0:
        return settled
    volumes = volume_detachment.before_the_end(situation, started, node, plan, kubernetes, ports)
    awaited = volumes or target_deregistration.before_the_end(situation, started, node, ports)
    if awaited is None:
        return settled
    reason = DETACHING if volumes else DEREGISTERING
    why = report_awaited(awaited, reason, node, situation, ports)
    waits = pause_drain(run, situation, started, why, ports.clock, hint=None, moments=[awaited.until])
    return replace(waits, next=Next.DRAINED)


def _drained(run: Run, situation: InstanceState, why: str, ports: Ports) -> Run:
    """Return the settle time left. A pause leads back here: before a hook needs a heartbeat, and each minute, so that a
    node whose taint was removed is tainted again, and emptied of the pods that came.
    """
    now = ports.clock.now()
    record = situation.record
    if "drained" not in record.times:
        ports.claims.note_attempt(record.instance, record.attempt, times={"drained": now})
    times = {"drained": now, **record.times}
    settle = settling.settle_of_node(situation, ports)
    pause = min(deadlines.settle_seconds(replace(record, times=times), settle, now), SETTLING_PAUSE)
    for due in next_heartbeats(situation, now):
        pause = min(pause, max(ceil((due - now).total_seconds()), 1))
    return replace(run, next=Next.DRAINED, pause=pause, why=why)


def _unfinished(
    run: Run,
    situation: InstanceState,
    started: datetime,
    node: Node,
    plan: DrainPlan,
    progress: Progress,
    ports: Ports,
) -> Run:
    now, policy = ports.clock.now(), situation.policy.drain
    why = "; ".join(progress.blockers) or leaving(plan, progress)
    deletes = policy.force and bool(plan.evict)
    over = deadlines.out_of_time(situation.record, replace(policy, force=deletes), started, now)
    if over is not None and not situation.looked:
        situation = survey(situation.record, ports)
    kubernetes = ports.clusters.kubernetes(situation.record.subject.cluster)
    if over is None:
        report_blocked(node, situation, started, why, progress, kubernetes, now)
        hint = None if progress.blocked_by else longest_grace(plan, now)
        hint = 0 if progress.not_asked else hint
        return pause_drain(run, situation, started, why, ports.clock, hint=hint, moments=turn_times(plan))
    # Termination is requested for each pod whose turn it is, and each has its own grace.
    all_requested = not progress.blocked_by and not progress.not_asked
    silent = all_requested and decisions.waits_for_no_kubelet(situation.record, node, situation.policy, now)
    why = f"{why}; its kubelet does not answer" if silent else why
    waits = all_requested and not silent
    if waits and decisions.may_wait(situation.record, situation.lifecycle, situation.state, now):
        return pause_drain(run, situation, started, f"{over}, but {why}", ports.clock, hint=longest_grace(plan, now))
    retains = situation.group is not None and situation.group.retains
    record, lifecycle, state = situation.record, situation.lifecycle, situation.state
    after = decisions.after_time_out(record, lifecycle, state, now, deletes=deletes, retains=retains)
    match Next.DRAINED if silent else after:
        case Next.DRAINED:
            report_given_up(node, f"{over}: {why}", kubernetes, now)
            return _drained(run, situation, f"{over}, let go although {why}", ports)
        case Next.FAILED:
            return replace(run, next=Next.FAILED, why=f"PodEvictionFailure: {over}: {why}"[:500])
        case _:
            if deletes:
                report_blocked(node, situation, started, why, progress, kubernetes, now)
                hint = 2 if progress.moved else None
                return pause_drain(run, situation, started, f"{over}, {forced(plan, progress)}", ports.clock, hint=hint)
            report_given_up(node, f"{over}: {why}", kubernetes, now)
            return pause_drain(run, situation, started, f"{over}, our hook holds it: {why}", ports.clock, hint=None)
