"""Eviction of pods: the work of one step on the pods of a node, for as long as the step's own time lasts.

`drain_plan.py` decides which pods leave, how and in which wave. `replica_surge.py` handles a pod that the policy gives
a second replica first, `removals.py` a pod whose eviction fails. Every eviction and deletion has the pod's uid as its
precondition: a repeat finds it done.

Reads are spaced out: nothing changes on the node while evicted pods are stopping. The Eviction API alone decides
whether a PodDisruptionBudget allows an eviction. Budgets are read for the sentence that names the blocker, in the
namespaces where something blocks."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from leeward.budgets.healthy_pods import samples_of
from leeward.budgets.pdb import refusal as refusal_of
from leeward.errors import ClusterUnreachableError, LeewardError, ThrottledError
from leeward.model.blocked import Obstacle, Stage
from leeward.model.lifecycle import ENDING, role_of
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import BY_POLICY, VOLUNTARY, CauseKind, TerminationRecord
from leeward.policy.document import DrainPolicy
from leeward.ports.kubernetes import EvictionRefusedError
from leeward.termination import deadlines
from leeward.termination.decisions import has_begun, is_voluntary
from leeward.termination.drain_plan import (
    DrainPlan,
    DrainTerms,
    Eviction,
    PodRemoval,
    in_time_for,
    plan_drain,
    turn_times,
)
from leeward.termination.drain_reports import DrainProgress, PodNotices
from leeward.termination.removals import LONGEST, PROMPT_SECONDS, QUICK_SECONDS, RemovalRequest, Removals, Retries
from leeward.termination.replica_surge import ReplicaSurge
from leeward.termination.situation import DrainContext

WORK = timedelta(seconds=10)
LONGEST_TURN = timedelta(seconds=20)
LATEST = timedelta(seconds=30)  # after the begin of a step no pod is asked about: the function ends after 55
LOOK_AGAIN = (1.0, 2.0, 4.0)  # seconds between two reads, since the last eviction; later pauses repeat the last
BLOCKED_PACE = 1  # index of the longest of them if a pod is blocked
PROMPT = timedelta(seconds=10)  # before the instance is released each second counts
OVERRIDDEN = (CauseKind.EXPIRED, CauseKind.DRIFTED)  # their opt-outs, by a terminationGracePeriod (Karpenter)
CLOCK = timedelta(seconds=2)  # deletion timestamps have whole seconds, and the API server a clock of its own
SOON = timedelta(seconds=5)  # a pod that ends within it is waited for inside the step
KEPT = timedelta(seconds=5)  # how long a step uses the budgets that it has read


def work(node: Node, drain: DrainContext, notices: PodNotices) -> tuple[DrainPlan, DrainProgress]:
    """Evict and read again until the node is empty or the step's own time is used up. Raises ClusterUnreachableError
    and ThrottledError if the pods cannot be listed; the failure of a single pod is noted in `blocked_by`.

    The node counts as drained only by a consistent list.
    """
    step, clock = _Step(node, drain), drain.ports.clock
    release = deadlines.release_at(drain.record, step.began)
    there: set[str] | None = None
    quiet, cached = 0, False  # quiet: reads since the last eviction
    while True:
        asked = step.progress.evicted
        step.collect()
        plan = step.look(cached=cached)
        if plan.drained and cached:
            plan = step.look()
        if there is None:
            step.progress.cancelled = step.reason_not_to_begin()
            if step.progress.cancelled:
                return plan, step.progress
            step.put_back(plan)
        left = {eviction.pod.uid for eviction in plan.evict}
        step.progress.moved |= there is not None and bool(there - left)
        there = left
        if plan.drained:
            step.progress.blocked_by.clear()
            return plan, step.progress
        notices.write(plan, clock.now())
        step.take_turn(plan)
        quiet = 0 if step.progress.evicted > asked else quiet + 1
        now = clock.now()
        pause, stop = step.pause(plan, quiet, now, release), step.stop(release)
        if now + timedelta(seconds=pause) >= stop or step.nothing_soon(plan, now):
            step.collect(last=True)
            return plan, step.progress
        clock.sleep(pause)
        cached = any(eviction.pod.deletion is None or eviction.pod.deletion > clock.now() for eviction in plan.evict)


def turn(node: Node, drain: DrainContext) -> tuple[DrainPlan, DrainProgress]:
    """Read the node's pods once and make one turn of evictions, without waiting for the outcome. Raises as `work`."""
    step = _Step(node, drain)
    plan = step.look()
    step.take_turn(plan)
    step.collect(last=True)
    return plan, step.progress


def plan_now(node: Node, drain: DrainContext) -> DrainPlan:
    """Return the verdict over the node's pods at this moment, with the budgets of their namespaces."""
    return _Step(node, drain).look(budgets=True)


class _Step:
    """View of a node during one step, and the work done there."""

    def __init__(self, node: Node, drain: DrainContext) -> None:
        self._node, self._situation, self._started = node, drain.situation, drain.started
        self._record, self._policy = drain.record, drain.policy
        self._kubernetes, self._clock = drain.kubernetes, drain.ports.clock
        self.progress = DrainProgress()
        self._surging = ReplicaSurge(drain, self._kubernetes, self.progress.healthy)
        self._retries = Retries.after(drain.record.blocked_by)
        self._removals = Removals(self._kubernetes)
        self._budgets: dict[str, tuple[datetime, tuple[PodDisruptionBudget, ...]]] = {}  # by namespace
        self._pods: Sequence[Pod] = ()  # of the last look
        self._daemon_sets, self._asked_about = frozenset[str](), frozenset[str]()
        self.began = self._clock.now()

    def look(self, *, cached: bool = False, budgets: bool = False) -> DrainPlan:
        """List the node's pods and plan. `cached`: the API server may answer from its cache. `budgets`: read those of
        every namespace that has a pod here, else only those already read for an eviction that was refused.
        """
        record, now, policy = self._record, self._clock.now(), self._policy
        options = replace(record.options or BY_POLICY, voluntary=record.has(*VOLUNTARY))
        ours_hold = self._situation.ours_hold
        deadline = deadlines.node_deadline(record, policy, self._started, now, ours_hold=ours_hold)
        pods = self._kubernetes.pods_on(self._node.name, cached=cached)
        self._pods = pods
        self._know_daemon_sets(pods)
        for namespace in sorted({pod.namespace for pod in pods if not pod.of_daemon_set}) if budgets else ():
            self._budgets_in(namespace, now)
        plan = plan_drain(
            node=self._node,
            pods=pods,
            budgets=[budget for _, known in self._budgets.values() for budget in known],
            daemon_sets=self._daemon_sets,
            terms=DrainTerms(policy=policy, now=now, deadline=deadline, options=options),
        )
        if policy.force or role_of(self._situation.lifecycle) not in ENDING:
            return plan
        # What is left at the end of the drain ends with the instance, or waits as long as a hook holds it.
        return in_time_for(deadlines.drain_end(record, policy, self._started), plan, now, options)

    def reason_not_to_begin(self) -> str:
        """Return why a voluntary drain that has moved no pod yet does not begin, by the last look; empty if it does."""
        record = self._record
        if not is_voluntary(record) or has_begun(record, self._situation.lifecycle):
            return ""
        return reason_to_cancel(record, self._policy, self._node, self._pods, self._clock.now())

    def pause(self, plan: DrainPlan, quiet: int, now: datetime, release: datetime | None) -> float:
        """Return the seconds until the next read: 1, 2, 4 since the last eviction of a pod, at most 2 if a pod waits
        for another to come back, 1 shortly before the instance is released, and never past the moment at which a pod is
        deleted instead of evicted.
        """
        if release is not None and now + PROMPT >= release:
            return LOOK_AGAIN[0]
        slowest = BLOCKED_PACE if self.progress.blocked_by else len(LOOK_AGAIN) - 1
        seconds = LOOK_AGAIN[min(quiet, slowest)]
        end = deadlines.drain_end(self._record, self._policy, self._started)
        due = [moment for moment in (*turn_times(plan), end, release) if moment is not None and moment > now]
        nearest = min(((moment - now).total_seconds() for moment in due), default=seconds)
        return max(min(seconds, nearest), LOOK_AGAIN[0])

    def _know_daemon_sets(self, pods: Iterable[Pod]) -> None:
        """Read which of the DaemonSets that these pods name exist, if one of them is not known yet."""
        named = (f"{pod.namespace}/{pod.owner.name}" for pod in pods if pod.of_daemon_set and pod.owner)
        wanted = frozenset(named)
        if wanted - self._asked_about:
            self._daemon_sets = self._kubernetes.daemon_sets(among=wanted)
            self._asked_about |= wanted

    def _budgets_in(self, namespace: str, now: datetime) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets of one namespace, kept for some seconds."""
        known = self._budgets.get(namespace)
        if known is None or now >= known[0] + KEPT:
            known = self._budgets[namespace] = (now, tuple(self._kubernetes.budgets(namespace)))
            self.progress.healthy += samples_of(known[1], self._pods, now)
        return known[1]

    def put_back(self, plan: DrainPlan) -> None:
        """Put back the second replicas whose pod has left or is terminating."""
        refused, staying = (entry.pod for entry in plan.refuse), (entry.pod for entry in plan.evict)
        self._surging.lower_unneeded(pod for pod in (*refused, *staying) if pod.deletion is None)

    def take_turn(self, plan: DrainPlan) -> None:
        """Evict each pod whose turn it is; a pod that cannot be evicted delays no other. A turn ends when the instance
        is released: a slow API must not use up the time that the hooks need to be answered. A forced drain goes on
        after that moment, in turns that begin later.
        """
        began, progress = self._clock.now(), self.progress
        release = deadlines.release_at(self._record, began)
        progress.blocked_by = {refused.pod.key: (refused.reason,) for refused in plan.refuse}
        progress.not_asked = 0
        over = min(began + LONGEST_TURN, self.began + LATEST)
        if release is not None and began < release:
            over = min(over, release)
        for eviction in self._retries.in_order(plan.turn, self._removals.waits_in):
            now = self._clock.now()
            if eviction.pod.deletion is not None and not _ends_too_late(eviction, now):
                progress.moved |= now <= eviction.pod.deletion
            elif self._is_under_way(eviction, now):
                continue
            elif now >= over:
                progress.not_asked += 1
            else:
                self._ask(eviction, now, release)
        self._note_unanswered(PROMPT_SECONDS)

    def collect(self, *, last: bool = False) -> None:
        """Note the answers that have come. `last`: also those that come before the instance is released, and name the
        pods without an answer: the next step asks about them again.
        """
        release = deadlines.release_at(self._record, self.began)
        end = self.began + LONGEST
        until = min(end, release) if release is not None and self.began < release else end
        for removal in self._removals.under_way():
            left = (until - self._clock.now()).total_seconds() if last else 0.0
            self._await(removal, max(left, 0.0), release)
        if last:
            self._note_unanswered(0.0)

    def stop(self, release: datetime | None) -> datetime:
        """Return when the step ends: later where a request has no answer yet, so that it is not cut off."""
        end = self.began + (LONGEST if self._removals else WORK)
        return min(end, release) if release is not None else end

    def _is_under_way(self, eviction: Eviction, now: datetime) -> bool:
        """Return whether the pod's removal was requested and is not answered yet. A deletion does not wait for that."""
        removal = self._removals.of(eviction.pod)
        return removal is not None and (removal.deletes or not self._removal(eviction, now).deletes)

    def _note_unanswered(self, seconds: float) -> None:
        """Name the pods whose requests have no answer for so long."""
        now = self._clock.now()
        for removal in self._removals.under_way():
            if now >= removal.began + timedelta(seconds=seconds):
                self.progress.blocked_by[removal.eviction.pod.key] = (removal.why(now),)

    def nothing_soon(self, plan: DrainPlan, now: datetime) -> bool:
        """Return whether every pod still there is blocked, or slow: evicted a while ago, with its grace not over before
        this step. Waiting inside the step would only burn time (a pod that stops quickly does so within the step that
        evicted it).
        """
        if self._removals:
            return False
        blocked = self.progress.blocked_by
        return all(
            (eviction.pod.key in blocked and self._retries.worn_out(eviction)) or self._is_slow(eviction, now)
            for eviction in plan.turn
        )

    def _is_slow(self, eviction: Eviction, now: datetime) -> bool:
        """Return whether the pod was evicted a while ago and has time left: the pause after this step is for it. If no
        pod waits for another to come back, a pod evicted by an earlier step is left to the pause as well.
        """
        ends = eviction.pod.deletion
        if ends is None:
            return False
        requested = ends - timedelta(seconds=eviction.pod.grace_seconds)
        if self.progress.blocked_by:
            return requested <= now - WORK and ends >= now + WORK
        return (requested < self.began - CLOCK or requested <= now - WORK) and ends >= now + SOON

    def _ask(self, eviction: Eviction, now: datetime, release: datetime | None) -> None:
        """Begin the pod's removal and wait shortly for the answer; one that takes longer is waited for beside the next
        pods.
        """
        waits = self._waits(eviction, now, release)
        if waits:
            self.progress.blocked_by[eviction.pod.key] = waits
            return
        removal = self._removal(eviction, now)
        if self._removals.full(slow=removal.slow):
            self.progress.not_asked += 1
            return
        self._removals.send(removal)
        self._await(removal, QUICK_SECONDS if removal.slow else PROMPT_SECONDS, release)

    def _await(self, removal: RemovalRequest, seconds: float, release: datetime | None) -> None:
        """Wait so long for the answer, at most until the release, and note it."""
        now = self._clock.now()
        if release is not None and now < release:
            seconds = min(seconds, (release - now).total_seconds())
        try:
            if self._removals.ended(removal, seconds):
                self._removed(removal)
        except EvictionRefusedError as refusal:
            self._note(removal.eviction, refusal, release)
        except (ClusterUnreachableError, ThrottledError) as error:  # the next list shows whether it answers at all
            unanswered = Obstacle(stage=Stage.SERVER, name="eviction", denies=False, said=str(error))
            self._note(removal.eviction, EvictionRefusedError(unanswered.sentence), release)

    def _waits(self, eviction: Eviction, now: datetime, release: datetime | None) -> tuple[str, ...]:
        """Return the conditions of the pod's eviction: a pause after a failure, a budget, a second replica."""
        failed = self._retries.waits(eviction, now, release)
        if failed:
            return (failed,)
        deletes = eviction.removal is PodRemoval.DELETE or self._forces(now)
        refused = () if deletes else self._retries.refused_with(eviction, now)
        if refused:
            return (eviction.refusal.sentence,) if eviction.refusal else refused
        try:
            waits = self._surging.reason_to_wait(eviction)
        except (ClusterUnreachableError, ThrottledError) as error:
            waits = self._surging.reason_to_wait_after(error)
            self._retries.failed(eviction, waits or "", now)
        return (waits,) if waits else ()

    def _forces(self, now: datetime) -> bool:
        """Return whether pods are deleted if their eviction fails: with force, once the drain's time is over."""
        record, policy = self._record, self._policy
        return policy.force and deadlines.out_of_time(record, policy, self._started, now) is not None

    def _removal(self, eviction: Eviction, now: datetime) -> RemovalRequest:
        """Evict the pod as long as that works; with force, delete a pod that was blocked before without another try."""
        forced = self._forces(now)
        known = any(line.startswith(f"{eviction.pod.key}: ") for line in self._record.blocked_by)
        deletes = eviction.removal is PodRemoval.DELETE or (forced and known)
        slow = self._retries.has_failed(eviction) or self._removals.waits_in(eviction.pod.namespace)
        return RemovalRequest(eviction=eviction, began=now, deletes=deletes, forces=forced, slow=slow)

    def _removed(self, removal: RemovalRequest) -> None:
        """Count the pod as evicted."""
        pod = removal.eviction.pod
        self.progress.moved = True
        if pod.deletion is None:
            self.progress.evicted += 1
            self.progress.deleted += removal.deleted
        self._retries.allowed(removal.eviction)
        self._surging.pod_evicted(pod)

    def _note(self, eviction: Eviction, refusal: EvictionRefusedError, release: datetime | None) -> None:
        """Note the refusal of the pod's eviction; a budget is asked about no other pod until its pause is over."""
        pod, now = eviction.pod, self._clock.now()
        named = tuple(f"pdb {budget}" for budget in refusal.budgets)
        known: tuple[str, ...] = ()
        if named or refusal.permanent:
            budgets: tuple[PodDisruptionBudget, ...] = ()
            with suppress(LeewardError):  # they only give the sentence
                budgets = self._budgets_in(pod.namespace, now)
            forbids = refusal_of(pod, budgets)
            known = (forbids.sentence,) if forbids else ()
            self._retries.refused(eviction, refusal.budgets, budgets, now, release)
        else:
            self._retries.failed(eviction, str(refusal), now)
        self.progress.blocked_by[pod.key] = known or named or (str(refusal),)


def _ends_too_late(eviction: Eviction, now: datetime) -> bool:
    """Return whether the pod was evicted before the deadline came nearer: it is evicted again, with the time left."""
    ends, left = eviction.pod.deletion, eviction.grace_seconds
    return eviction.due and ends is not None and left is not None and ends > now + timedelta(seconds=left + 1)


def reason_to_cancel(
    record: TerminationRecord, policy: DrainPolicy, node: Node, pods: Sequence[Pod], now: datetime
) -> str:
    """Return why none of the record's voluntary causes takes the node any more; empty while one does.

    A pod may have been bound between the last validation and the taint, and an opt-out written since. As long as no pod
    has moved the termination is cancelled, and the node returns to service (docs/designs/disruption.md).
    """
    from leeward.disruption.do_not_disrupt import why_node_stays, why_pod_stays  # late: most drains are not voluntary

    in_order = sorted(pods, key=lambda pod: pod.key)
    opted_out = why_node_stays(node)
    kept = next((why for pod in in_order if (why := why_pod_stays(pod, now))), "")
    working = next((f"pod {pod.key} was bound to the empty node" for pod in in_order if pod.works), "")
    reasons: list[str] = []
    for cause in record.causes:
        if cause.kind in OVERRIDDEN:
            reasons.append(opted_out or ("" if policy.termination_grace_period is not None else kept))
        elif cause.kind is CauseKind.UNDERUTILIZED:
            reasons.append(opted_out or kept)
        elif cause.kind is CauseKind.EMPTY:
            reasons.append(opted_out or kept or working)
    return reasons[0] if reasons and all(reasons) else ""
