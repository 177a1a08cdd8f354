"""Drains by others: `kubectl drain` and Cluster Autoscaler evict the pods that have to leave, run after run."""

from collections.abc import Callable
from dataclasses import dataclass

from local.cluster.errors import ApiError
from local.cluster.model import Cluster
from local.cluster.objects import Obj, annotations_of, controller_of, is_deleting, name_of, namespace_of
from simulation.scene import Scene, api_answers

MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """Manner of a drain. `retry` seconds between two runs, `patience` seconds for all of them. `stubborn`: an error
    other than a refusal by a budget (429) does not end it.
    """

    who: str
    retry: float
    patience: float
    stubborn: bool


KUBECTL = Manner(who="kubectl drain", retry=5, patience=600, stubborn=False)  # --timeout=10m; 5 s as drain.go waits


def has_to_leave(cluster: Cluster, node: str) -> list[Obj]:
    """Return the pods of a node without those of DaemonSets and the kubelet's own."""
    return [pod for pod in cluster.store.pods_on(node) if not _stays(pod)]


def _stays(pod: Obj) -> bool:
    owner = controller_of(pod)
    return (owner is not None and owner["kind"] == "DaemonSet") or MIRROR in annotations_of(pod)


class Emptying:
    """Drain of one node. `done` is called once with whether it is empty; it is not when the node vanished
    in between.
    """

    def __init__(self, scene: Scene, node: str, manner: Manner, done: Callable[[bool], None]) -> None:
        self._scene, self._node, self._manner, self._done = scene, node, manner, done
        self._until = scene.timeline.now() + manner.patience

    def begin(self) -> None:
        """Evict the pods that may leave, and repeat until all have left or patience ends."""
        answer = self._disruption() if api_answers(self._scene) else None
        if answer is None and self._scene.timeline.now() >= self._until:
            answer = False
        if answer is not None:
            self._scene.say(f"{self._manner.who} {'has emptied' if answer else 'gives up on'} {self._node}")
            self._done(answer)
            return
        self._scene.timeline.after(self._manner.retry, self.begin, self._manner.who)

    def _disruption(self) -> bool | None:
        """Run one run; return whether the drain has succeeded, None for not yet."""
        cluster = self._scene.cluster
        if cluster.store.find("nodes", self._node) is None:
            return False
        pods = has_to_leave(cluster, self._node)
        refused = [self._refused(pod) for pod in pods if not is_deleting(pod)]
        if not pods:
            return True
        return None if self._manner.stubborn or not any(refused) else False

    def _refused(self, pod: Obj) -> bool:
        """Return whether the API answered anything other than yes, gone or wait."""
        try:
            self._scene.cluster.evict(name_of(pod), namespace_of(pod) or "default")
        except ApiError as error:
            return error.code not in {404, 429}
        return False
