"""Sending pods away: what one step does to the pods of a node, for as long as its own time lasts.

Which pods leave how and in which wave is decided in `drain.py`; a pod that the policy gives a second replica first is
`surging.py`'s. Every eviction and deletion has the pod's uid as its precondition: a repeat finds it done."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from leeward.model.drain_options import BY_POLICY
from leeward.model.node import Node
from leeward.ports import EvictionRefusedError, Kubernetes, Ports
from leeward.termination import deadlines
from leeward.termination.drain import DrainPlan, Eviction, How, plan_drain
from leeward.termination.situation import Situation
from leeward.termination.surging import Surging

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


def work(
    node: Node, situation: Situation, started: datetime, kubernetes: Kubernetes, ports: Ports
) -> tuple[DrainPlan, Progress]:
    """Evict and look again until the node is empty or the step's own time is used up."""
    progress, surging = Progress(), Surging(situation, started, kubernetes, ports)
    stop = ports.clock.now() + WORK
    stop = min(stop, deadlines.release_at(situation.record) or stop)
    while True:
        plan = plan_now(node, situation, started, kubernetes, ports)
        if plan.drained:
            progress.blocked_by.clear()
            return plan, progress
        _evict_turn(plan, progress, surging, kubernetes, situation, ports)
        now = ports.clock.now()
        if now + timedelta(seconds=LOOK_AGAIN_SECONDS) >= stop or _nothing_soon(plan, progress, now):
            return plan, progress
        ports.clock.sleep(LOOK_AGAIN_SECONDS)


def plan_now(node: Node, situation: Situation, started: datetime, kubernetes: Kubernetes, ports: Ports) -> DrainPlan:
    """The verdict over the node's pods at this moment."""
    policy, now = situation.policy.drain, ports.clock.now()
    deadline = deadlines.node_deadline(situation.record, policy, started, now, ours_hold=situation.ours_hold)
    asked = situation.record.options or BY_POLICY
    forced = policy.force and deadlines.out_of_time(situation.record, policy, started, now) is not None
    return plan_drain(
        node=node,
        pods=kubernetes.pods_on(node.name),
        budgets=kubernetes.budgets(),
        daemon_sets=kubernetes.daemon_sets(),
        policy=policy,
        now=now,
        deadline=deadline,
        options=replace(asked, disable_eviction=forced or asked.disable_eviction),
    )


def _evict_turn(
    plan: DrainPlan, progress: Progress, surging: Surging, kubernetes: Kubernetes, situation: Situation, ports: Ports
) -> None:
    """One turn of all waves that are due. It stops where the instance is released: an API that takes a second for each
    of many pods must not use up the time that the hooks need to be answered. A forced drain goes on after that moment,
    in turns that begin later.
    """
    progress.blocked_by = {refused.pod.key: (refused.why,) for refused in plan.refuse}
    began, release = ports.clock.now(), deadlines.release_at(situation.record)
    for eviction in plan.turn:
        now = ports.clock.now()
        if release is not None and began < release <= now:
            return
        if eviction.pod.deletion is None or _ends_too_late(eviction, now):
            _send_away(eviction, progress, surging, kubernetes)


def _ends_too_late(eviction: Eviction, now: datetime) -> bool:
    """A pod told to end before the deadline came nearer: it is told again, with the time that is left."""
    ends, left = eviction.pod.deletion, eviction.grace_seconds
    return eviction.due and ends is not None and left is not None and ends > now + timedelta(seconds=left + 1)


def _send_away(eviction: Eviction, progress: Progress, surging: Surging, kubernetes: Kubernetes) -> None:
    waits = surging.waits_for(eviction)
    if waits:
        progress.blocked_by[eviction.pod.key] = (waits,)
        return
    try:
        if eviction.how is How.DELETE:
            kubernetes.delete_pod(eviction.pod, eviction.grace_seconds)
        else:
            kubernetes.evict(eviction.pod, eviction.grace_seconds)
    except EvictionRefusedError as refusal:
        named = tuple(f"pdb {budget}" for budget in refusal.budgets)
        known = (eviction.refusal.sentence,) if eviction.refusal else ()
        progress.blocked_by[eviction.pod.key] = known or named or (str(refusal),)
        return
    surging.gone(eviction.pod)
    if eviction.pod.deletion is None:
        progress.evicted += 1


def _nothing_soon(plan: DrainPlan, progress: Progress, now: datetime) -> bool:
    """Every pod still there is blocked, or slow: told to end a while ago, with its grace not over before this step.
    Waiting inside the step would only burn time (a pod that stops quickly does so within the step that told it).
    """
    return all(eviction.pod.key in progress.blocked_by or _slow(eviction, now) for eviction in plan.turn)


def _slow(eviction: Eviction, now: datetime) -> bool:
    ends = eviction.pod.deletion
    if ends is None:
        return False
    return ends - timedelta(seconds=eviction.pod.grace_seconds) <= now - WORK and ends >= now + WORK
