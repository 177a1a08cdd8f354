"""Jobs: so many pods at a time until so many have succeeded, or too many have failed.

Rules: `pkg/controller/job/job_controller.go` and the TTL-after-finished controller. A pod that is deleted counts as
failed and is started again after a pause that doubles with each failure in a row; a pod failure policy that ignores the
condition DisruptionTarget does not count evicted pods. Left out: indexes, deadlines, success policies.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import (
    Obj,
    condition_of,
    controller_of,
    copied,
    is_deleting,
    is_ready,
    name_of,
    namespace_of,
    phase_of,
    set_condition,
    uid_of,
)
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.timestamps import parsed
from local.cluster.world import World

from .replicasets import active_pods, pod_from_template
from .worklist import Worklist

_SOURCE = "job-controller"
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 600.0  # seconds: DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff


@dataclass(slots=True)
class _Tally:
    """State of one Job in the controller: ended pods not counted yet, counted pods, the failures in a row."""

    ended: dict[str, Obj] = field(default_factory=dict)
    counted: dict[str, None] = field(default_factory=dict)
    in_a_row: int = 0
    not_before: float = 0.0


class Jobs:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._dirty: Worklist[Key] = Worklist()
        self._expired: Worklist[tuple[Key, str]] = Worklist()
        self._tallies: dict[str, _Tally] = {}

    def observe(self, change: Change) -> None:
        if change.resource == "jobs":
            if change.type is ChangeType.DELETED:
                self._tallies.pop(uid_of(change.obj), None)
            else:
                self._dirty.add(change.key)
        elif change.resource == "pods":
            owner = controller_of(change.obj)
            if owner is not None and owner["kind"] == "Job":
                self._pod_changed(change, owner)

    def _pod_changed(self, change: Change, owner: Obj) -> None:
        key = (change.key[0], owner["name"])
        job = self._world.store.at("jobs", key)
        if job is None or uid_of(job) != owner["uid"]:
            return
        self._dirty.add(key)
        if _has_ended(change, job):
            tally, uid = self._tally(job), uid_of(change.obj)
            if uid not in tally.counted:
                tally.ended.setdefault(uid, change.obj)

    def _tally(self, job: Obj) -> _Tally:
        return self._tallies.setdefault(uid_of(job), _Tally())

    def run(self) -> bool:
        acted = self._dirty.work(self._reconcile)
        return self._expired.work(self._expire) or acted

    def _reconcile(self, key: Key) -> bool:
        job = self._world.store.at("jobs", key)
        if job is None or is_deleting(job) or _is_over(job):
            return False
        status: Obj = copied(job.get("status") or {})
        status.setdefault("startTime", self._world.timestamp())
        self._count_ended(job, status)
        acted = self._manage(job, status)
        active = active_pods(self._world, job)
        numbers = {"active": len(active), "ready": sum(map(is_ready, active))}
        status = {**{name: value for name, value in status.items() if name not in numbers}, **numbers}
        status["uncountedTerminatedPods"] = {}
        return self._world.write_status("jobs", key, status) or acted

    def _count_ended(self, job: Obj, status: Obj) -> None:
        tally = self._tally(job)
        for uid, pod in tally.ended.items():
            tally.counted[uid] = None
            if phase_of(pod) == "Succeeded":
                status["succeeded"] = status.get("succeeded", 0) + 1
                tally.in_a_row, tally.not_before = 0, 0.0
            elif not _is_ignored(job, pod):
                status["failed"] = status.get("failed", 0) + 1
                tally.in_a_row += 1
                pause = min(_FIRST_PAUSE * 2.0 ** min(tally.in_a_row - 1, 10), _LONGEST_PAUSE)
                tally.not_before = self._world.now() + pause
        tally.ended.clear()

    def _manage(self, job: Obj, status: Obj) -> bool:
        """Start and stop pods, or report the end of the Job."""
        spec, active = job["spec"], active_pods(self._world, job)
        succeeded, wanted = status.get("succeeded", 0), spec.get("completions")
        if status.get("failed", 0) > spec["backoffLimit"]:
            self._end(job, status, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
            return self._stop(active)
        if succeeded and succeeded >= wanted if wanted is not None else succeeded and not active:
            self._end(job, status, "Complete", "CompletionsReached", "Reached expected number of succeeded pods")
            return self._stop(active)
        if spec.get("suspend"):
            return self._stop(active)
        most = int(spec["parallelism"])
        if wanted is not None:
            most = min(most, int(wanted) - succeeded)
        elif succeeded:
            most = len(active)  # a work queue: no new pods once one pod has found it empty
        return self._bring_to(job, active, most)

    def _bring_to(self, job: Obj, active: list[Obj], most: int) -> bool:
        if len(active) > most:
            return self._stop(active[most:])
        missing = most - len(active) - self._still_leaving(job)
        if missing <= 0:
            return False
        not_before = self._tally(job).not_before
        if self._world.now() < not_before:
            key = key_of(job)
            self._world.timers.at(not_before, lambda: self._dirty.add(key))
            return False
        for _ in range(missing):
            pod = self._world.create("pods", pod_from_template(job), namespace_of(job))
            self._events.record(job, "SuccessfulCreate", f"Created pod: {name_of(pod)}", source=_SOURCE)
        return True

    def _still_leaving(self, job: Obj) -> int:
        """Return the pods that have to end before they are replaced (podReplacementPolicy Failed)."""
        if job["spec"].get("podReplacementPolicy") != "Failed":
            return 0
        counted = self._tally(job).counted
        pods = self._world.store.owned_by(uid_of(job), "pods")
        return sum(is_deleting(pod) and uid_of(pod) not in counted for pod in pods)

    def _stop(self, pods: list[Obj]) -> bool:
        for pod in pods:
            self._world.delete("pods", pod)
        return bool(pods)

    def _end(self, job: Obj, status: Obj, kind: str, reason: str, message: str) -> None:
        now = self._world.timestamp()
        condition = {"type": kind, "status": "True", "reason": reason, "message": message}
        set_condition(status, {**condition, "lastProbeTime": now, "lastTransitionTime": now})
        if kind == "Complete":
            status["completionTime"] = now
            self._events.record(job, "Completed", "Job completed", source=_SOURCE)
        else:
            self._events.record(job, reason, message, source=_SOURCE, warning=True)
        lifetime = job["spec"].get("ttlSecondsAfterFinished")
        if lifetime is not None:
            entry = (key_of(job), uid_of(job))
            self._world.timers.at(parsed(now) + lifetime, lambda: self._expired.add(entry))

    def _expire(self, entry: tuple[Key, str]) -> bool:
        key, uid = entry
        job = self._world.store.at("jobs", key)
        if job is None or uid_of(job) != uid:
            return False
        self._world.delete("jobs", job)
        return True


def _is_over(job: Obj) -> bool:
    return any((condition_of(job, kind) or {}).get("status") == "True" for kind in ("Complete", "Failed"))


def _has_ended(change: Change, job: Obj) -> bool:
    """Return whether the pod is gone or finished; being deleted is enough where pods are replaced at once."""
    pod = change.obj
    if change.type is ChangeType.DELETED or phase_of(pod) in ("Succeeded", "Failed"):
        return True
    return is_deleting(pod) and job["spec"].get("podReplacementPolicy") != "Failed"


def _is_ignored(job: Obj, pod: Obj) -> bool:
    """Return whether the pod failure policy ignores this end: a rule of action Ignore for a condition that the pod
    has.
    """
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    return any(
        (condition_of(pod, pattern["type"]) or {}).get("status") == pattern.get("status", "True")
        for rule in rules
        if rule.get("action") == "Ignore"
        for pattern in rule.get("onPodConditions") or []
    )
