"""The steps of node-termination that speak to Kubernetes: drain, give the node back, remove the Node object; the one
that asks for a replacement is in `replacing.py`.

A step works for some seconds, looking again each second, because three state transitions cost as much as eleven seconds
of work; then it hands over to a pause. An API server that does not answer is waited for, never read as an empty node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from leeward.errors import ClusterUnreachableError, ObjectGoneError, ThrottledError
from leeward.model import keys
from leeward.model.node import Node, Taint
from leeward.model.termination import TerminationRecord
from leeward.ports import EvictionRefusedError, Kubernetes, Ports
from leeward.termination import verdict
from leeward.termination.drain import TAINT_EFFECT, DrainOptions, DrainPlan, Eviction, How, last_calls, plan_drain
from leeward.termination.heartbeats import beat
from leeward.termination.ledger import only_surplus
from leeward.termination.replacing import ask_for_replacement
from leeward.termination.run import Next, Run
from leeward.termination.situation import Situation, find_node, read, survey
from leeward.termination.steps import Step

WORK = timedelta(seconds=10)
LOOK_AGAIN_SECONDS = 1.0


@dataclass(slots=True)
class Progress:
    """What one step has done so far."""

    evicted: int = 0
    blocked_by: dict[str, tuple[str, ...]] = field(default_factory=dict)  # pod -> what blocks it

    @property
    def blockers(self) -> tuple[str, ...]:
        """One line a pod, as people read it."""
        return tuple(f"{pod}: {', '.join(why)}" for pod, why in sorted(self.blocked_by.items()))


def drain(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Mark the node, evict what has to go, wait for it, heartbeat the hooks that hold the instance meanwhile.

    Answers drained (with what is left of the settle time as pause), wait, gone, or failed.
    """
    situation = survey(read(run.instance, ports), ports)
    run = replace(run, version=situation.record.version)
    if situation.ended:
        return replace(run, next=Next.GONE, why=f"EC2 says {situation.state}")
    started = situation.record.times.get("draining") or ports.clock.now()
    ports.claims.note(run.instance, times={"draining": started})
    last = beat(situation, ports)
    try:
        return _drain_node(run, situation, started, last, ports)
    except (ClusterUnreachableError, ThrottledError) as error:
        why = f"waiting for an answer, nothing is ended meanwhile: {error}"
        return _pause(run, situation, started, last, why, ports, hint=10)


def give_back(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """The node goes back into service: its pods did not leave in time, or nothing wants it gone any more. `finish`
    closes the record.
    """
    record = read(run.instance, ports)
    spared = run.next is Next.SPARE
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    node = find_node(record, kubernetes)
    why = "; ".join(record.blocked_by) or run.why or "pods did not leave in time"
    if node is not None:
        kubernetes.unmark(node, keys.DISRUPTED_TAINT)
        reason = "TerminationCalledOff" if spared else "PodEvictionFailure"
        message = run.why if spared else why
        kubernetes.event(node, reason=reason, message=message, warning=not spared, now=ports.clock.now())
    return replace(run, next=Next.SPARED if spared else Next.GIVEN_BACK, why=run.why if spared else why[:500])


def remove_node(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Delete the Node object, only once EC2 says that the instance ends. Raises ClusterUnreachableError, so that the
    state machine tries again for a while. The run keeps the version at which its hooks were answered: a hook that joins
    while the API server is away must send it round once more.
    """
    situation = survey(read(run.instance, ports), ports)
    record = situation.record
    if not situation.ended:
        return replace(run, next=Next.WAIT, pause=verdict.SHORTEST_PAUSE, why=f"EC2 says {situation.state}")
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    node = find_node(record, kubernetes)
    if node is not None:
        kubernetes.delete_node(node)
    ports.claims.note(record.instance, times={"removed": ports.clock.now()})
    return replace(run, next=Next.FINISH, why=f"removed {node.name}" if node else "its Node was gone already")


STEPS: Mapping[str, Step] = {
    "replace": ask_for_replacement,
    "drain": drain,
    "give-back": give_back,
    "remove-node": remove_node,
}


def _drain_node(run: Run, situation: Situation, started: datetime, last: Mapping[str, datetime], ports: Ports) -> Run:
    record = situation.record
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    node = find_node(record, kubernetes)
    if node is None:
        return replace(run, next=Next.DRAINED, pause=0, why="no Node of the cluster stands for it: nothing to drain")
    if only_surplus(record) and not node.marked:
        blocked = _blocked(_plan(node, situation, started, kubernetes, ports))
        if blocked:
            return replace(run, next=Next.FAILED, why=f"another node pays, here pods are blocked: {blocked}"[:500])
    try:
        node = mark(node, record, kubernetes, ports)
        plan, progress = _work(node, situation, started, kubernetes, ports)
    except ObjectGoneError:
        return replace(run, next=Next.WAIT, pause=1, why="its Node was deleted meanwhile")
    ports.claims.note(record.instance, blocked_by=progress.blockers, evicted=progress.evicted)
    if plan.drained:
        return _drained(run, situation, last, "every pod that has to leave has left", ports)
    return _unfinished(run, situation, started, last, node, plan, progress, ports)


def _blocked(plan: DrainPlan) -> str:
    """What would hold up a drain that nobody needs: one that cannot go through at once does not begin."""
    held = [f"{going.pod.key}: {going.refusal.sentence}" for going in plan.evict if going.refusal]
    return "; ".join(held + [f"{refused.pod.key}: {refused.why}" for refused in plan.refuse])


def mark(node: Node, record: TerminationRecord, kubernetes: Kubernetes, ports: Ports) -> Node:
    """Taint and cordon, if it is not done, and note when. Raises ObjectGoneError."""
    value = record.causes[0].kind.value if record.causes else ""
    marked = kubernetes.mark(node, Taint(key=keys.DISRUPTED_TAINT, effect=TAINT_EFFECT, value=value))
    ports.claims.note(record.instance, times={"tainted": ports.clock.now()}, node=node.name)
    return marked


def _work(
    node: Node, situation: Situation, started: datetime, kubernetes: Kubernetes, ports: Ports
) -> tuple[DrainPlan, Progress]:
    """Evict and look again until the node is empty or the step's own time is used up."""
    progress = Progress()
    stop = ports.clock.now() + WORK
    stop = min(stop, verdict.let_go_at(situation.record) or stop)
    while True:
        plan = _plan(node, situation, started, kubernetes, ports)
        if plan.drained:
            progress.blocked_by.clear()
            return plan, progress
        _evict_turn(plan, progress, kubernetes, ports.clock.now())
        if ports.clock.now() + timedelta(seconds=LOOK_AGAIN_SECONDS) >= stop or _nothing_soon(plan, progress):
            return plan, progress
        ports.clock.sleep(LOOK_AGAIN_SECONDS)


def _plan(node: Node, situation: Situation, started: datetime, kubernetes: Kubernetes, ports: Ports) -> DrainPlan:
    policy, now = situation.policy.drain, ports.clock.now()
    deadline = verdict.node_deadline(situation.record, policy, started)
    forced = policy.force and verdict.out_of_time(situation.record, policy, started, now) is not None
    return plan_drain(
        node=node,
        pods=kubernetes.pods_on(node.name),
        budgets=kubernetes.budgets(),
        daemon_sets=kubernetes.daemon_sets(),
        policy=policy,
        now=now,
        deadline=deadline,
        options=DrainOptions(disable_eviction=forced),
    )


def _evict_turn(plan: DrainPlan, progress: Progress, kubernetes: Kubernetes, now: datetime) -> None:
    progress.blocked_by = {refused.pod.key: (refused.why,) for refused in plan.refuse}
    for eviction in plan.turn:
        if eviction.pod.deletion is None or _ends_too_late(eviction, now):
            _send_away(eviction, progress, kubernetes)


def _ends_too_late(eviction: Eviction, now: datetime) -> bool:
    """A pod told to end before the deadline came nearer: it is told again, with the time that is left."""
    ends, left = eviction.pod.deletion, eviction.grace_seconds
    return eviction.due and ends is not None and left is not None and ends > now + timedelta(seconds=left + 1)


def _send_away(eviction: Eviction, progress: Progress, kubernetes: Kubernetes) -> None:
    try:
        if eviction.how is How.DELETE:
            kubernetes.delete_pod(eviction.pod, eviction.grace_seconds)
        else:
            kubernetes.evict(eviction.pod)
    except EvictionRefusedError as refusal:
        named = tuple(f"pdb {budget}" for budget in refusal.budgets)
        known = (eviction.refusal.sentence,) if eviction.refusal else ()
        progress.blocked_by[eviction.pod.key] = known or named or (str(refusal),)
        return
    if eviction.pod.deletion is None:
        progress.evicted += 1


def _nothing_soon(plan: DrainPlan, progress: Progress) -> bool:
    """Every pod still there is blocked: waiting inside the step would only burn time."""
    return all(eviction.pod.key in progress.blocked_by for eviction in plan.turn)


def _drained(run: Run, situation: Situation, last: Mapping[str, datetime], why: str, ports: Ports) -> Run:
    """The settle time that is left, cut where a hook wants a heartbeat before its end: the pause leads back here."""
    now = ports.clock.now()
    record = situation.record
    ports.claims.note(record.instance, times={"drained": now})
    times = {"drained": now, **record.times}
    pause = verdict.settle_seconds(replace(record, times=times), situation.policy.drain, now)
    hooks = situation.our_hooks if situation.held else ()
    for due in verdict.next_heartbeat(hooks, last, situation.policy.interruption.heartbeat, now):
        pause = min(pause, max(ceil((due - now).total_seconds()), 1))
    return replace(run, next=Next.DRAINED, pause=pause, why=why)


def _unfinished(
    run: Run,
    situation: Situation,
    started: datetime,
    last: Mapping[str, datetime],
    node: Node,
    plan: DrainPlan,
    progress: Progress,
    ports: Ports,
) -> Run:
    now, policy = ports.clock.now(), situation.policy.drain
    why = "; ".join(progress.blockers) or f"{len(plan.evict)} pods are on their way out"
    over = verdict.out_of_time(situation.record, policy, started, now)
    kubernetes = ports.clusters.kubernetes(situation.record.subject.cluster)
    if progress.blocked_by:
        message = f"cannot drain yet: {why}"[:1000]
        kubernetes.event(node, reason="DrainBlocked", message=message, warning=True, now=now)
    if over is None:
        hint = None if progress.blocked_by else _longest_grace(plan, now)
        calls = last_calls(plan, policy)
        return _pause(run, situation, started, last, why, ports, hint=hint, moments=calls)
    match verdict.after_time_out(situation.record, policy, situation.lifecycle, situation.state, now):
        case Next.DRAINED:
            kubernetes.event(node, reason="PodEvictionFailure", message=f"{over}: {why}", warning=True, now=now)
            return _drained(run, situation, last, f"{over}, let go although {why}", ports)
        case Next.FAILED:
            return replace(run, next=Next.FAILED, why=f"PodEvictionFailure: {over}: {why}"[:500])
        case _:
            return _pause(run, situation, started, last, f"{over}, deleting: {why}", ports, hint=2)


def _longest_grace(plan: DrainPlan, now: datetime) -> float:
    left = [(e.pod.deletion - now).total_seconds() for e in plan.turn if e.pod.deletion]
    return max(left, default=float(verdict.SHORTEST_PAUSE))


def _pause(
    run: Run,
    situation: Situation,
    started: datetime,
    last: Mapping[str, datetime],
    why: str,
    ports: Ports,
    *,
    hint: float | None,
    moments: Sequence[datetime] = (),
) -> Run:
    now, record = ports.clock.now(), situation.record
    heartbeat = situation.policy.interruption.heartbeat
    hooks = situation.our_hooks if situation.held else ()
    limits = verdict.next_heartbeat(hooks, last, heartbeat, now)
    time_out = started + situation.policy.drain.timeout
    known = (time_out, record.deadline, verdict.let_go_at(record), *moments)
    soon = [moment for moment in known if moment is not None and moment > now]
    pause = verdict.pause_seconds(waited=now - started, hint=hint, limits=[*limits, *soon], now=now)
    return replace(run, next=Next.WAIT, pause=pause, why=why[:500])
