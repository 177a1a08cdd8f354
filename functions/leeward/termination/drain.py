"""Drain of a node: taint it, wait until load balancers have deregistered it, evict its pods, wait for anything that
still holds it, end. The steps after it are in `node_removal.py` and `reboot.py`, the one before in `replacing.py`.

A step works for some seconds and re-reads each second, because three state transitions cost as much as eleven seconds
of work; then it hands over to a pause. An API server that cannot be connected to, or that lists no pods, is waited for,
never read as an empty node. A write that fails is no such server: the drain's time runs out whatever it runs into.

Nothing takes a node that leaves only because its zone is evacuated, so it waits until the replacement elsewhere is
Ready. Without one it stays in service: its pods would have no other place, and its group would launch into the closed
zone."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from leeward.errors import (
    AccessDeniedError,
    ClusterGoneError,
    ClusterUnreachableError,
    LeewardError,
    ObjectGoneError,
    ThrottledError,
)
from leeward.model.node import Node, disruption_taint
from leeward.model.termination import CauseKind, Status, TerminationRecord, detach_deadline, is_abrupt
from leeward.model.times import format_instant, parse_instant
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes
from leeward.ports.records import Claims
from leeward.termination import deadlines, decisions, heartbeats, settling
from leeward.termination.capacity_ledger import only_surplus
from leeward.termination.decisions import only_evacuated
from leeward.termination.drain_plan import DrainPlan, turn_times
from leeward.termination.drain_reports import (
    DEREGISTERING,
    DETACHING,
    DrainProgress,
    PodNotices,
    evicted_so_far,
    forced,
    leaving,
    longest_grace,
    report_awaited,
    report_blocked,
    report_given_up,
)
from leeward.termination.eviction import work
from leeward.termination.heartbeats import heartbeats_kept, record_heartbeat
from leeward.termination.node_removal import remove_node, return_to_service
from leeward.termination.prompt_eviction import or_evict, read_or_evict, turn_alone, turn_in_storm
from leeward.termination.replica_surge import put_back
from leeward.termination.run import SHOWN_WITHIN, Next, Run, carrying, noted_attempt
from leeward.termination.situation import (
    DrainContext,
    Freshness,
    Situation,
    find_node_or_uninitialized,
    last_known,
    survey,
)
from leeward.workflow.steps import Step

SETTLING_PAUSE = 60  # seconds between two looks at an empty node that stays for a while
NO_RECORD = "it has no open record of this attempt"
JOINS_WITHIN = timedelta(minutes=15)  # as EKS gives a new node
JOIN_LOOKS_EVERY = 15  # seconds between two looks for the node
INITIALIZED_WITHIN = timedelta(seconds=60)  # a Node that has registered; the cloud controller takes seconds


@dataclass(slots=True)
class FirstNotes:
    """Notes of a drain before its first eviction, in one write: its clocks, its taint, and that its pods may leave."""

    run: Run  # as it is after the last write
    ports: Ports
    times: dict[str, datetime] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    record: TerminationRecord | None = None  # as it was after the last write
    failure: LeewardError | None = None  # of the table, which no wait for the cluster answers

    def add(self, times: Mapping[str, datetime], **more: Any) -> None:
        """Note these times, and other values of `note_attempt`."""
        self.times |= times
        self.more |= {name: value for name, value in more.items() if value}

    @property
    def outdated(self) -> bool:
        """True if a cause has joined, or the attempt is over, since the step has read the record."""
        new = self.record
        return new is not None and (
            (new.version, new.attempt) != (self.run.version, self.run.attempt) or new.status is Status.CLOSED
        )

    def write(self, record: TerminationRecord) -> TerminationRecord:
        """Write what was noted, and return the record as it then stands; the given one if there was nothing."""
        if self.times or self.more:
            times, more, self.times, self.more = self.times, self.more, {}, {}  # one try: the caller's error counts
            try:
                self.run, self.record = noted_attempt(self.run, self.ports, times, **more)
            except LeewardError as error:
                self.failure = error
                raise
            return self.record
        return record


def drain(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Taint the node, evict the pods that have to leave, wait for them, and heartbeat the hooks that hold the instance.

    The next step is drained (with the rest of the settle time as pause), kept or reboot if the instance stays, wait,
    gone, failed, cancel if a person has detached the instance, or replace if a cause that has joined calls for another
    instance first.
    """
    run, record = read_or_evict(run, ports, unless=_has_begun)
    if record is None:
        return replace(run, next=Next.HAND_OVER, why=NO_RECORD)
    run = run.taken_by(record, ports.clock.now())
    try:
        return or_evict(lambda: turn_in_storm(run, record, ports) or _drain(run, record, ports), record, ports)
    except AccessDeniedError:  # asking again does not help; what is left to do needs the permission
        if waiting := turn_alone(run, record, ports):
            return waiting
        raise


def _has_begun(record: TerminationRecord) -> bool:
    """Return whether the drain has begun. Until then its first write, before its first eviction, returns the record as
    it is then; later on nothing may be written before pods are evicted, and the record is read.
    """
    return "draining" in record.times


def _drain(run: Run, record: TerminationRecord, ports: Ports) -> Run:
    situation = survey(record, ports, Freshness.WORK)
    if not situation.looked and _decides_now(situation, ports.clock):
        situation = survey(situation.record, ports)
    announced = is_only_announced(run, situation.record, ports.clock.now())
    run = replace(run, version=situation.record.version)
    if situation.ended:
        return replace(run, next=Next.GONE, why=f"EC2 says {situation.state}")
    if instead := _kept(run, situation, ports.clock.now()):
        return instead
    if decisions.is_detached(situation, ports.clock.now()):
        situation = replace(situation, policy=decisions.without_deletions(situation.policy))
    joined = decisions.back_to_replacement(situation, ports.clock.now())
    back = replace(run, next=Next.REPLACE, why=joined) if joined else None
    instead = back or _before_turn(run, situation, ports)
    return instead or _begin_or_go_on(run, situation, ports, announced=announced)


def _begin_or_go_on(run: Run, situation: Situation, ports: Ports, *, announced: bool) -> Run:
    """Drain for one step. `announced`: only the message that a hook of ours holds the instance has ended a pause."""
    known = situation.record.times
    started = known.get("draining") or ports.clock.now()
    times = {"begun": started, **known, "draining": started}
    situation = replace(situation, record=replace(situation.record, times=times))
    until = deadlines.drain_end(situation.record, situation.policy.drain, started)
    clocks = {"begun": started, "draining": started, "until": until}
    notes = FirstNotes(run if announced else replace(run, look=""), ports)
    if not clocks.keys() <= known.keys():  # a time that is set stays
        notes.add(clocks)
    try:
        situation = replace(situation, record=record_heartbeat(situation, ports))
        if announced:
            notes.write(situation.record)
            return sleep_on(notes.run, situation, ports.clock)
        result = _drain_or_wait(notes, DrainContext(situation=situation, started=started, ports=ports))
    except LeewardError:  # a drain that is repeated keeps its clocks
        with suppress(LeewardError):
            notes.write(situation.record)
        raise
    if result is not None:
        return after_drain(result, situation.record)
    record = notes.record or situation.record
    if record.attempt != run.attempt or record.status is Status.CLOSED:
        return replace(notes.run, next=Next.HAND_OVER, why=NO_RECORD)
    return _drain(notes.run, record, ports)


def _drain_or_wait(notes: FirstNotes, drain: DrainContext) -> Run | None:
    try:
        return _drain_node(notes, drain)
    except (ClusterGoneError, ClusterUnreachableError, ThrottledError) as error:
        if error is notes.failure:
            raise
        notes.write(drain.record)
        if isinstance(error, ClusterGoneError) and not is_abrupt(drain.record, drain.ports.clock.now()):
            return _without_cluster(notes.run, drain.situation, error)
        return pause_drain(notes.run, drain, f"waiting for an answer, nothing is ended meanwhile: {error}", hint=10)


def _before_turn(run: Run, situation: Situation, ports: Ports) -> Run | None:
    """Return the step that comes instead of the drain of an evacuated node, or of a surplus, in `surplus_turn.py`; None
    for any other.
    """
    try:
        instead = before_evacuated_drain(run, situation, ports)
        if instead is not None or not only_surplus(situation.record):
            return instead
        from leeward.termination.surplus_turn import before_drain  # late: most drains are of no surplus

        return before_drain(run, situation, ports)
    except ClusterGoneError as error:
        return _without_cluster(run, situation, error)


def _kept(run: Run, situation: Situation, now: datetime) -> Run | None:
    """Return the next step for an instance that nothing takes out of service any more; None for any other."""
    record = situation.record
    if decisions.is_cancelled(record):
        return replace(run, next=Next.CANCEL, why=decisions.why_cancelled(record))
    if decisions.is_back(situation):
        return replace(run, next=Next.REBOOT, why=f"its group says {situation.lifecycle}")
    if decisions.left_its_group(situation, now):
        return replace(run, next=Next.CANCEL, why="it was detached from its group, and nothing else ends it")
    return None


def _decides_now(situation: Situation, clock: Clock) -> bool:
    """Return whether this step may end in an action that must not follow from a stale fact: the return of a detached
    node to service, or the deletion of pods.
    """
    record, policy, now = situation.record, situation.policy.drain, clock.now()
    if decisions.is_detached(situation, now) or decisions.is_back(situation):
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
    """Run the step after the drain of an instance that is rebooted, in `reboot.py`."""
    from leeward.termination.reboot import reboot_or_wait  # late: most drains end without a reboot

    return reboot_or_wait(run, call, ports)


STEPS: Mapping[str, Step[Run]] = {
    "replace": replace_ahead,
    "drain": drain,
    "reboot": reboot,
    "return-to-service": return_to_service,
    "remove-node": remove_node,
}


def _without_cluster(run: Run, situation: Situation, error: ClusterGoneError) -> Run:
    """Return the step of an instance whose cluster EKS has deleted: nothing of it can be drained any more. If its group
    ends it, it is released at once, or the deletion of the group would wait for our hook. Any other stays; if EC2 takes
    it, its containers keep their time. A surplus fails, and is tried again ever later: once it was cancelled, its
    launch would ask for another node at once.
    """
    if only_surplus(situation.record) and not situation.ours_hold:
        raise error
    return replace(run, next=Next.DRAINED if situation.ours_hold else Next.CANCEL, pause=0, why=str(error)[:500])


def _drain_node(notes: FirstNotes, drain: DrainContext) -> Run | None:
    """Drain the node for one step. None: the record has changed before the first eviction, so the step decides again
    by it.
    """
    record = drain.record
    node, uninitialized = find_node_or_uninitialized(record, drain.kubernetes)
    deleted = None if node or uninitialized else last_known(drain)
    known = node or deleted
    if known is None:
        notes.write(record)
        return without_node(notes.run, drain, uninitialized)
    notes.run = replace(notes.run, node=known.name)
    try:
        node = deleted or _tainted(known, drain, notes)
        awaited = settling.targets_before_eviction(drain, node)
        if awaited is not None:
            notes.write(record)
            why = report_awaited(awaited, DEREGISTERING, node, drain)
            return pause_drain(notes.run, drain, why, hint=None, moments=[awaited.until])
        if "evicting" not in record.times:
            notes.add({"evicting": drain.ports.clock.now()})
        record = notes.write(record)
        if notes.outdated:
            return None
        started, situation = record.times.get("draining", drain.started), replace(drain.situation, record=record)
        drain = replace(drain, situation=situation, started=started)
        with PodNotices(drain.kubernetes) as pod_notices:
            plan, progress = work(node, drain, pod_notices)
    except ObjectGoneError:
        with suppress(ObjectGoneError):
            notes.write(record)
        return replace(notes.run, next=Next.WAIT, pause=1, why="its Node was deleted meanwhile")
    if progress.cancelled:
        return replace(notes.run, next=Next.CANCEL, why=progress.cancelled[:500])
    run = _with_progress(notes.run, record, progress, drain.ports)
    result = _emptied(run, drain, node, plan) if plan.drained else _unfinished(run, drain, node, plan, progress)
    if result.unwritten and result.pause > SHOWN_WITHIN:
        result, _ = noted_attempt(result, drain.ports, {})
    return replace(result, healthy=tuple(progress.healthy), deleted=progress.deleted)


def _with_progress(run: Run, record: TerminationRecord, progress: DrainProgress, ports: Ports) -> Run:
    """Return the run with what this look has changed, which the next call writes; blockers that have changed are
    written at once. A look that only waits changes nothing.
    """
    times = {"moved": ports.clock.now()} if progress.moved else {}
    evicted = evicted_so_far(record, progress)
    if tuple(progress.blockers) != tuple(record.blocked_by):
        more = {"evicted": evicted} if evicted else {}
        return noted_attempt(run, ports, times, blocked_by=progress.blockers, **more)[0]
    unwritten = run.unwritten
    unwritten = replace(unwritten, times={**unwritten.times, **times}, evicted=evicted or unwritten.evicted)
    return replace(run, unwritten=unwritten)


def _tainted(node: Node, drain: DrainContext, notes: FirstNotes) -> Node:
    """Taint the node, to be noted. A taint that cannot be written (a webhook on nodes fails) is waited for, but not by
    an instance that EC2 takes, nor past the drain's time: then the pods leave without it. Raises ObjectGoneError.
    """
    try:
        tainted = drain.kubernetes.taint(node, disruption_taint(drain.ports.deployment), exclude=True)
        if missing := _not_noted(tainted, drain.record):
            notes.add({"tainted": drain.ports.clock.now()}, **missing)
        return tainted
    except (ClusterUnreachableError, ThrottledError):
        now = drain.ports.clock.now()
        over = deadlines.out_of_time(drain.record, drain.policy, drain.started, now) is not None
        if not (over or is_abrupt(drain.record, now)):
            raise
        return node


def taint_node(node: Node, record: TerminationRecord, kubernetes: Kubernetes, ports: Ports) -> Node:
    """Taint and cordon the node and take it out of load balancers, if not done, and note when, the first time only.
    Raises ObjectGoneError.
    """
    tainted = kubernetes.taint(node, disruption_taint(ports.deployment), exclude=True)
    if missing := _not_noted(tainted, record):
        ports.claims.note_attempt(record.instance, record.attempt, times={"tainted": ports.clock.now()}, **missing)
    return tainted


def _not_noted(tainted: Node, record: TerminationRecord) -> dict[str, Any]:
    """Return the name and, before a reboot, the boot id that the record of a tainted node lacks; empty for none."""
    boot = tainted.boot if record.reboot is not None and not record.boot else None
    if boot or "tainted" not in record.times or record.subject.node != tainted.name:
        return {"node": tainted.name, **({"boot": boot} if boot else {})}
    return {}


def _emptied(run: Run, drain: DrainContext, node: Node, plan: DrainPlan) -> Run:
    """Handle a node on which no pod is left that has to leave. After the settle time its volumes and its addresses have
    to be free as well.
    """
    if drain.record.surges or drain.policy.surge_single_replicas:
        with suppress(ClusterUnreachableError, ThrottledError):  # the record keeps it, `remove_node` repeats it
            put_back(run.instance, drain.kubernetes, drain.ports.claims)
    settled = _drained(run, drain, "every pod that has to leave has left", emptied=True)
    if settled.pause > 0:
        return settled
    volumes = settling.volumes_before_end(drain, node, plan)
    awaited = volumes or settling.targets_before_end(drain, node)
    if awaited is None:
        return settled
    why = report_awaited(awaited, DETACHING if volumes else DEREGISTERING, node, drain)
    return replace(pause_drain(run, drain, why, hint=None, moments=[awaited.until]), next=Next.DRAINED)


def _drained(run: Run, drain: DrainContext, why: str, *, emptied: bool) -> Run:
    """Return the settle time left. A pause leads back here: before a hook needs a heartbeat, and each minute, so that a
    node whose taint was removed is tainted again, and emptied of the pods that came. `emptied`: no pod is left, so the
    last one that left counts; one that is terminating on a node that is let go all the same does not.
    """
    record, now = drain.record, drain.ports.clock.now()
    if "drained" not in record.times or run.unwritten:
        run, record = noted_attempt(run, drain.ports, {"drained": now})
    times = {"drained": now, **record.times}
    if not emptied:
        times.pop("moved", None)
    settle = settling.settle_of_node(drain)
    pause = min(deadlines.settle_seconds(replace(record, times=times), settle, now), SETTLING_PAUSE)
    for due in heartbeats.next_of(drain.situation, now):
        pause = min(pause, max(ceil((due - now).total_seconds()), 1))
    return carrying(replace(run, next=Next.DRAINED, pause=pause, why=why), record, drain.ports.claims)


def _unfinished(run: Run, drain: DrainContext, node: Node, plan: DrainPlan, progress: DrainProgress) -> Run:
    """Handle a node with pods that have to leave: pause, or end the drain where its time is over."""
    now = drain.ports.clock.now()
    why = "; ".join(progress.blockers) or leaving(plan, progress)
    deletes = drain.policy.force and bool(plan.evict)
    over = deadlines.out_of_time(drain.record, replace(drain.policy, force=deletes), drain.started, now)
    if over is None:
        report_blocked(why, node, progress, drain, now)
        hint = None if progress.blocked_by else longest_grace(plan, now)
        hint = 0 if progress.not_asked else hint
        return pause_drain(run, drain, why, hint=hint, moments=turn_times(plan))
    if not drain.situation.looked:
        drain = replace(drain, situation=survey(drain.record, drain.ports))
    situation = drain.situation
    # Termination is requested for each pod whose turn it is, and each has its own grace.
    all_requested = not progress.blocked_by and not progress.not_asked
    silent = all_requested and decisions.waits_for_no_kubelet(situation.record, node, situation.policy, now)
    why = f"{why}; its kubelet does not answer" if silent else why
    waits = all_requested and not silent
    if waits and decisions.may_wait(situation, now):
        return pause_drain(run, drain, f"{over}, but {why}", hint=longest_grace(plan, now))
    match Next.DRAINED if silent else decisions.after_time_out(situation, now, deletes=deletes):
        case Next.DRAINED:
            report_given_up(f"{over}: {why}", node, drain, now)
            return _drained(run, drain, f"{over}, let go although {why}", emptied=False)
        case Next.FAILED:
            return replace(run, next=Next.FAILED, why=f"PodEvictionFailure: {over}: {why}"[:500])
        case _:
            if deletes:
                report_blocked(why, node, progress, drain, now)
                hint = 2 if progress.moved else None
                return pause_drain(run, drain, f"{over}, {forced(plan, progress)}", hint=hint)
            report_given_up(f"{over}: {why}", node, drain, now)
            return pause_drain(run, drain, f"{over}, our hook holds it: {why}", hint=None)


def before_evacuated_drain(run: Run, situation: Situation, ports: Ports) -> Run | None:
    """Return the step that comes instead of the drain: a pause, or the return to service. None: the drain may begin. A
    drain that has begun continues, and so does one that another cause requires.
    """
    record = situation.record
    if not only_evacuated(record) or "begun" in record.times or record.replacement is None:
        return None
    try:  # first: a node that is returned to service needs the API as well
        nodes = ports.clusters.kubernetes(record.subject.cluster).nodes()
    except (ClusterUnreachableError, ThrottledError) as error:
        return replace(run, next=Next.WAIT, pause=JOIN_LOOKS_EVERY, why=f"waiting for an answer: {error}")
    if not record.replacement.launched:
        return _cancelled_without_replacement(
            run, f"no replacement in another zone: {record.replacement.reason}", ports.claims
        )
    launched = record.replacement.launched[0]
    if any(node.instance_id == launched and node.ready for node in nodes):
        return None
    now = ports.clock.now()
    if now - record.times.get("replacement", now) > JOINS_WITHIN:
        return _cancelled_without_replacement(
            run, f"its replacement {launched} has not become a Ready node in time", ports.claims
        )
    return replace(run, next=Next.WAIT, pause=JOIN_LOOKS_EVERY, why=f"its replacement {launched} is not Ready yet")


def _cancelled_without_replacement(run: Run, why: str, claims: Claims) -> Run:
    """Return the node to service; the record says why, for `leeward zone status`."""
    claims.failed(run.instance, why[:500])
    return replace(run, next=Next.CANCEL, why=why[:500])


def after_drain(run: Run, record: TerminationRecord) -> Run:
    """Return the step after a drain: as it is for an instance that ends, kept at once, or rebooted once it has settled,
    so that load balancers send nothing to a node that is down.
    """
    if run.next is not Next.DRAINED:
        return run
    if record.keeps:
        return replace(run, next=Next.KEPT, pause=0)
    return replace(run, next=Next.REBOOT) if record.reboot is not None and not run.pause else run


def without_node(run: Run, drain: DrainContext, uninitialized: Sequence[Node]) -> Run:
    """Wait for the cloud controller where it has not initialized a Node yet: it may be the instance's, and take pods
    between this look and the termination. Otherwise there is nothing to drain.
    """
    end = drain.started + INITIALIZED_WITHIN
    if uninitialized and drain.ports.clock.now() < end:
        names = ", ".join(node.name for node in uninitialized)
        why = f"no Node of the cluster stands for it yet; the cloud controller has to initialize {names}"
        return pause_drain(run, drain, why, hint=5, moments=[end])
    return replace(run, next=Next.DRAINED, pause=0, why="no Node of the cluster stands for it: nothing to drain")


def is_only_announced(run: Run, record: TerminationRecord, now: datetime) -> bool:
    """Return whether only the message that a hook of ours holds the instance ended this pause. Its pods are then read
    when the pause would have ended.
    """
    joined = record.causes[-(record.version - run.version) :] if record.version > run.version else ()
    only = all(cause.kind is CauseKind.ASG_TERMINATE and cause.hook_ours for cause in joined)
    return bool(joined) and only and bool(run.look) and now + timedelta(seconds=1) < parse_instant(run.look)


def sleep_on(run: Run, situation: Situation, clock: Clock) -> Run:
    """Return the rest of a pause that such a message has ended, or less if a heartbeat is due before."""
    now = clock.now()
    moments = [parse_instant(run.look), *heartbeats.next_of(situation, now)]
    pause = max(ceil((min(moments) - now).total_seconds()), 1)
    return replace(run, next=Next.WAIT, pause=pause, why=run.why or "a hook of ours holds it")


def pause_drain(
    run: Run, drain: DrainContext, why: str, *, hint: float | None, moments: Sequence[datetime] = ()
) -> Run:
    """Return a pause until the next look at the pods: `hint` seconds, a deadline, a heartbeat or one of `moments`."""
    now, record = drain.ports.clock.now(), drain.record
    end = deadlines.drain_end(record, drain.policy, drain.started)
    known = (end, detach_deadline(record, now), deadlines.release_at(record, now), *moments)
    soon = [moment for moment in known if moment is not None and moment > now]
    limits = [*heartbeats.next_of(drain.situation, now), *soon]
    since = max((cause.at for cause in record.causes if cause.at <= now), default=drain.started)
    pause = decisions.pause_seconds(waited=now - max(drain.started, since), hint=hint, limits=limits, now=now)
    look = format_instant(now + timedelta(seconds=pause))
    return replace(run, next=Next.WAIT, pause=pause, why=why[:500], look=look)
