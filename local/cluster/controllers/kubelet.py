"""Kubelets, which start bound pods after a delay and end deleted ones after their grace period.

A pod starts when its volumes are attached to the node, and ends by itself when its containers have run for as long as
its annotation says.

A kubelet lives on a node whose Ready condition is True or False; with Unknown (or no condition) no kubelet runs, so its
pods neither start nor end until it returns or the node is deleted.
"""

from __future__ import annotations

from collections.abc import Callable

from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import (
    Obj,
    annotations_of,
    condition_of,
    is_deleting,
    is_finished,
    name_of,
    node_of,
    phase_of,
    set_condition,
    uid_of,
)
from local.cluster.settings import EXIT_CODE, IGNORE_SIGTERM, NEVER_READY, RUN_SECONDS, START_DELAY
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.timestamps import parsed
from local.cluster.volumes import attachable_volumes, claim_names
from local.cluster.world import World

from .worklist import Worklist

_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def has_kubelet(node: Obj | None) -> bool:
    """Return whether a kubelet on the node still runs."""
    condition = condition_of(node, "Ready") if node is not None else None
    return condition is not None and condition.get("status") in ("True", "False")


def is_out_of_service(node: Obj | None) -> bool:
    """Return whether the node is tainted as out of service and no kubelet contradicts."""
    keys = [taint.get("key") for taint in (node or {}).get("spec", {}).get("taints") or ()]
    return node is not None and OUT_OF_SERVICE in keys and not has_kubelet(node)


class Kubelets:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._start: Worklist[tuple[Key, str]] = Worklist()
        self._end: Worklist[tuple[Key, str]] = Worklist()
        self._finish: Worklist[tuple[Key, str]] = Worklist()
        self._grace: dict[str, int] = {}
        self._lacking: dict[str, dict[tuple[Key, str], None]] = {}  # by node: pods whose volumes are not attached yet

    def observe(self, change: Change) -> None:
        if change.resource == "pods":
            self._pod_changed(change)
        elif change.resource == "nodes" and has_kubelet(change.obj) and not has_kubelet(change.old):
            for pod in self._world.store.pods_on(name_of(change.obj)):
                self._arm(pod)
        elif change.resource == "volumeattachments" and (change.obj.get("status") or {}).get("attached"):
            for entry in self._lacking.pop(change.obj["spec"]["nodeName"], {}):
                self._start.add(entry)

    def _pod_changed(self, change: Change) -> None:
        pod, old = change.obj, change.old
        if change.type is ChangeType.DELETED:
            self._grace.pop(uid_of(pod), None)
            return
        if node_of(pod) is None:
            return
        newly_bound = old is None or node_of(old) is None
        newly_deleting = is_deleting(pod) and (
            self._grace.get(uid_of(pod)) != pod["metadata"].get("deletionGracePeriodSeconds")
        )
        if newly_bound or newly_deleting:
            self._arm(pod)

    def _arm(self, pod: Obj) -> None:
        """Set the timer for the event that the pod waits for; obsolete timers do nothing when they fire."""
        entry = (key_of(pod), uid_of(pod))
        now = self._world.now()
        if is_deleting(pod):
            self._grace[uid_of(pod)] = int(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            due = now + time_to_end(pod, self._world.settings.termination_scale)
            self._world.timers.at(due, lambda: self._end.add(entry))
        elif phase_of(pod) == "Pending":
            delay = float(annotations_of(pod).get(START_DELAY, self._world.settings.pod_start))
            self._world.timers.at(now + delay, lambda: self._start.add(entry))
        elif phase_of(pod) == "Running" and RUN_SECONDS in annotations_of(pod):
            due = parsed(pod["status"]["startTime"]) + float(annotations_of(pod)[RUN_SECONDS])
            self._world.timers.at(max(now, due), lambda: self._finish.add(entry))

    def run(self) -> bool:
        acted = self._start.work(self._start_pod)
        acted = self._finish.work(self._finish_pod) or acted
        return self._end.work(self._end_pod) or acted

    def _living(self, key: Key, uid: str) -> Obj | None:
        pod = self._world.store.at("pods", key)
        if pod is None or uid_of(pod) != uid:
            return None
        node = self._world.store.find("nodes", node_of(pod) or "")
        return pod if has_kubelet(node) else None

    def _start_pod(self, entry: tuple[Key, str]) -> bool:
        key, uid = entry
        pod = self._living(key, uid)
        if pod is None or is_deleting(pod) or phase_of(pod) != "Pending":
            return False
        if not self._has_its_volumes(pod):
            self._lacking.setdefault(str(node_of(pod)), {})[entry] = None
            return False
        self._world.change("pods", key, self._run_containers)
        self._events.record(pod, "Started", "Started container", source="kubelet")
        self._arm(self._world.find("pods", key[1], key[0]))
        return True

    def _has_its_volumes(self, pod: Obj) -> bool:
        """Return whether each volume is attached to the pod's node (the kubelet's WaitForAttachAndMount)."""
        if not claim_names(pod):
            return True
        here = {
            entry["spec"]["source"].get("persistentVolumeName")
            for entry in self._world.store.each("volumeattachments")
            if entry["spec"]["nodeName"] == node_of(pod) and (entry.get("status") or {}).get("attached")
        }
        return all(name_of(volume) in here for volume in attachable_volumes(pod, self._world.store))

    def _finish_pod(self, entry: tuple[Key, str]) -> bool:
        """Finish a pod whose containers have ended by themselves, with the code of the pod's annotation."""
        key, uid = entry
        pod = self._living(key, uid)
        if pod is None or phase_of(pod) != "Running":
            return False
        now = self._world.timestamp()
        return self._world.change("pods", key, lambda entry: _ended(entry, now))

    def _run_containers(self, pod: Obj) -> None:
        node = self._world.store.find("nodes", node_of(pod) or "") or {}
        run_containers(pod, node, pod_ip=self._pod_ip, now=self._world.timestamp())

    def _pod_ip(self) -> str:
        number = self._world.random.randrange(256, 65_000)
        return f"10.100.{number // 256}.{number % 256}"

    def _end_pod(self, entry: tuple[Key, str]) -> bool:
        key, uid = entry
        pod = self._living(key, uid)
        if pod is None or not is_deleting(pod):
            return False
        if not pod["metadata"].get("finalizers"):
            self._world.store.remove("pods", key)
            return True
        return self._world.change("pods", key, _stopped)


def time_to_end(pod: Obj, scale: float) -> float:
    """Return the seconds from a pod's deletion to the end of its containers: a share of its grace period."""
    grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    return grace if annotations_of(pod).get(IGNORE_SIGTERM) == "true" else grace * scale


def run_containers(pod: Obj, node: Obj, *, pod_ip: Callable[[], str], now: str) -> None:
    """Write into the pod's status what the kubelet of `node` reports when its containers run. `pod_ip` gives a new
    address.
    """
    ready = annotations_of(pod).get(NEVER_READY) != "true"
    addresses = {entry["type"]: entry["address"] for entry in (node.get("status") or {}).get("addresses") or []}
    host_ip = addresses.get("InternalIP", "")
    address = host_ip if pod["spec"].get("hostNetwork") else pod_ip()
    status = pod["status"]
    status.update(phase="Running", hostIP=host_ip, podIP=address, podIPs=[{"ip": address}], startTime=now)
    for kind in _CONDITIONS:
        good = ready or kind not in ("Ready", "ContainersReady")
        set_condition(status, {"type": kind, "status": "True" if good else "False", "lastTransitionTime": now})
    status["containerStatuses"] = [
        _container_status(container, now, ready=ready) for container in pod["spec"].get("containers") or []
    ]


def _ended(pod: Obj, now: str) -> None:
    code, status = int(annotations_of(pod).get(EXIT_CODE, "0")), pod["status"]
    good = code == 0
    status["phase"] = "Succeeded" if good else "Failed"
    for kind in ("Ready", "ContainersReady"):
        reason = "PodCompleted" if good else "PodFailed"
        set_condition(status, {"type": kind, "status": "False", "reason": reason, "lastTransitionTime": now})
    for container in status.get("containerStatuses") or []:
        started = container["state"].get("running", {}).get("startedAt", now)
        ended = {"exitCode": code, "reason": "Completed" if good else "Error", "startedAt": started, "finishedAt": now}
        container.update(ready=False, started=False, state={"terminated": ended})


def _stopped(pod: Obj) -> None:
    """Update the status of a pod whose containers have all ended, but whose object a finalizer still holds."""
    if not is_finished(pod):
        pod["status"]["phase"] = "Succeeded"
    for condition in pod["status"].get("conditions") or []:
        if condition["type"] in ("Ready", "ContainersReady"):
            condition["status"] = "False"
    pod["metadata"]["deletionGracePeriodSeconds"] = 0


def _container_status(container: Obj, now: str, *, ready: bool) -> Obj:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": "",
        "containerID": "",
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
        "lastState": {},
    }
