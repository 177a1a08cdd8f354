"""Second replica for a Deployment whose only pod is evicted (docs/features.md, X7; docs/designs/draining.md).

Decides which pods get a second replica, how long a pod waits for it, and when the Deployment is scaled back. The
termination's record names each raised Deployment before the cluster is changed and until it is scaled back. So a
step that is killed at any point leaves a record from which the next step scales back. Only the scale subresource is
written."""

from collections.abc import Iterable
from contextlib import suppress

from leeward.budgets.healthy_pods import HealthSample, sample_of
from leeward.errors import AccessDeniedError, ClusterUnreachableError, ThrottledError
from leeward.model.pod import Deployment, Pod
from leeward.model.times import format_instant
from leeward.ports.kubernetes import Kubernetes, Workloads
from leeward.ports.records import Claims
from leeward.termination import deadlines
from leeward.termination.drain_plan import Eviction, PodRemoval
from leeward.termination.situation import DrainContext, read

NOT_SURGED = "NotSurged"  # reason of the Event on a pod whose eviction waits for no second replica
MANIFEST = "manifests/replica-surge-role.yaml"  # allows to scale Deployments
ONE = 1  # replicas of a workload whose only pod leaves
SCALE_BACK_ATTEMPTS = 5  # each after a fresh read; a conflict with another writer fails one
DENIAL_RETRY_SECONDS = 2.0  # an API server that has just started denies everything for about a second


def reason_not_surged(pod: Pod, deployment: Deployment, autoscaled: frozenset[str]) -> str | None:
    """Return why the Deployment whose only pod this is gets no second replica; None if it can have one.

    `autoscaled`: names of the Deployments of the namespace that a HorizontalPodAutoscaler scales.
    """
    if deployment.name in autoscaled:
        return f"a HorizontalPodAutoscaler decides the replicas of {deployment.key}"
    if deployment.recreate:
        return f"{deployment.key} has the strategy Recreate: its pods never run side by side"
    if pod.claims:
        return f"it keeps a volume ({', '.join(pod.claims)}), which a second pod elsewhere could not have"
    if not deployment.settled:
        return f"a rollout of {deployment.key} is under way"
    return None


def surged(lone: Iterable[Pod], kubernetes: Workloads) -> frozenset[str]:
    """Return the keys (`namespace/name`) of the pods that a drain gives a second replica.

    `lone`: pods that are the only one of their workload (`drain_plan.lone_pods`). Only reads. A Deployment that Leeward
    may not read is skipped: it may not scale it either.
    """
    surged_pods: set[str] = set()
    for pod in lone:
        with suppress(AccessDeniedError):
            deployment = kubernetes.deployment_of(pod)
            if deployment is None or deployment.replicas != ONE:
                continue
            if reason_not_surged(pod, deployment, kubernetes.autoscaled(pod.namespace)) is None:
                surged_pods.add(pod.key)
    return frozenset(surged_pods)


class ReplicaSurge:
    """Second replicas during one step of a drain. `reason_to_wait` is called before each eviction, `pod_evicted` after
    it. `healthy` takes a sample of each Deployment that is read.
    """

    def __init__(self, drain: DrainContext, kubernetes: Kubernetes, healthy: list[HealthSample]) -> None:
        self._healthy = healthy
        self._record, self._policy = drain.record, drain.policy
        self._kubernetes, self._clock, self._claims = kubernetes, drain.ports.clock, drain.ports.claims
        now, ours_hold = self._clock.now(), drain.situation.ours_hold
        self._until = deadlines.surged_by(self._record, self._policy, drain.started, now, ours_hold=ours_hold)
        self._surges = dict(drain.record.surges)
        self._of_pod: dict[str, str] = {}  # uid -> Deployment that was raised for it
        self._plain: set[str] = set()  # uids of pods that leave without a second replica
        self._denied = False

    def reason_to_wait(self, eviction: Eviction) -> str | None:
        """Return why the pod has to wait before it is evicted; None: it need not. A pod at its force-delete deadline,
        one that is not ready and one that is being deleted do not wait.
        """
        pod = eviction.pod
        leaves_at_once = not self._policy.surge_single_replicas or eviction.due or eviction.removal is PodRemoval.DELETE
        if leaves_at_once or not pod.ready or pod.deletion or pod.uid in self._plain:
            return None
        try:
            waits = self._decide_with_retry(pod)
        except AccessDeniedError as error:  # the cluster lacks the ClusterRole of second replicas
            waits = None
            self._notify(pod, f"{error} (kubectl apply -f {MANIFEST})")
            deployment = self._of_pod.get(pod.uid)
            if deployment and self._surges.get(deployment) is False:
                self._write(deployment, None)
        if waits is None:
            self._plain.add(pod.uid)
        return waits

    def pod_evicted(self, pod: Pod) -> None:
        """Scale back the Deployment raised for an evicted pod. If that fails, the record keeps it for a later step."""
        key = self._of_pod.get(pod.uid)
        if key is not None:
            self._lower(key)

    def lower_unneeded(self, remaining: Iterable[Pod]) -> None:
        """Scale back the Deployments none of whose pods is among the `remaining` pods of the node.

        Another controller may have ended the pod, or a step whose answer was lost. The node may stay for hours with
        pods that cannot leave, so this does not wait for the end of the drain.
        """
        owners = {f"{pod.namespace}/{pod.owner.name.rpartition('-')[0]}" for pod in remaining if pod.owner}
        for key in self._surges.keys() - owners:  # a Deployment's ReplicaSets are named after it
            self._lower(key)

    def _lower(self, key: str) -> None:
        """Scale one Deployment back. If that fails it stays among the surges, for a later step."""
        with suppress(ClusterUnreachableError, ThrottledError):
            put_back(self._record.instance, self._kubernetes, self._claims, only=key)
            self._surges.pop(key, None)

    def reason_to_wait_after(self, error: Exception) -> str | None:
        """Return why a pod waits whose Deployment could not be read or scaled; None once the time for a second replica
        is over.
        """
        if self._clock.now() >= self._until:
            return None
        return f"waits for the answer whether it gets a second replica ({error}), until {format_instant(self._until)}"

    def _decide_with_retry(self, pod: Pod) -> str | None:
        """Decide as `_decide`, and repeat it after the first denial of a step."""
        try:
            return self._decide(pod)
        except AccessDeniedError:
            if self._denied:
                raise
            self._denied = True
            self._clock.sleep(DENIAL_RETRY_SECONDS)
            return self._decide(pod)

    def _decide(self, pod: Pod) -> str | None:
        if pod.owner is not None and pod.owner.kind == "StatefulSet":
            owner = f"StatefulSet {pod.owner.name}"
            self._notify(pod, f"{owner}: its pods have identities, a second replica is another pod")
            return None
        deployment = self._kubernetes.deployment_of(pod)
        if deployment is None:
            return None
        self._healthy.append(sample_of(deployment, self._clock.now()))
        if deployment.key in self._surges:
            self._of_pod[pod.uid] = deployment.key
            return self._wait(pod, deployment)
        if deployment.replicas != ONE:
            return None
        reason = reason_not_surged(pod, deployment, self._kubernetes.autoscaled(pod.namespace))
        if self._clock.now() >= self._until:
            reason = reason or "there is no time left for a second one"
        if reason:
            self._notify(pod, reason)
            return None
        self._of_pod[pod.uid] = deployment.key
        return self._raise(deployment)

    def _raise(self, deployment: Deployment) -> str:
        """Raise the replicas. The record is written before and after, to distinguish a repeated call from a change by
        another writer.
        """
        self._write(deployment.key, False)
        if self._kubernetes.scale(deployment, ONE + 1):
            self._write(deployment.key, True)
        return self._waiting(deployment)

    def _wait(self, pod: Pod, deployment: Deployment) -> str | None:
        if deployment.available > ONE or self._clock.now() >= self._until:
            return None
        if deployment.replicas > ONE:
            if not self._surges[deployment.key]:  # the answer of the scale call was lost, or the step was killed
                self._write(deployment.key, True)
            return self._waiting(deployment)
        if self._surges[deployment.key]:
            self._notify(pod, f"the replicas of {deployment.key} were set back by others")
            return None
        return self._raise(deployment)

    def _waiting(self, deployment: Deployment) -> str:
        return f"waits for a second replica of {deployment.key}, until {format_instant(self._until)}"

    def _notify(self, pod: Pod, reason: str) -> None:
        """Write an Event on the pod that its eviction waits for no second replica. A pod whose eviction was refused
        before has its Event.
        """
        if any(line.startswith(f"{pod.key}: ") for line in self._record.blocked_by):
            return
        message = f"no second replica is started before its eviction: {reason}"
        now = self._clock.now()
        self._kubernetes.event(pod, reason=NOT_SURGED, message=message, warning=False, now=now)

    def _write(self, key: str, scaled: bool | None) -> None:
        """Write one entry, never the map that this step has read: a step that outlives its execution, or the next
        attempt, may write others.
        """
        self._claims.surge(self._record.instance, key, scaled)
        self._surges.pop(key, None)
        if scaled is not None:
            self._surges[key] = scaled


def put_back(instance: str, kubernetes: Kubernetes, claims: Claims, only: str | None = None) -> None:
    """Scale the Deployments that the instance's record names, or `only` one of them, back to one replica.

    A Deployment whose replicas another writer has changed since is left as it is. Idempotent: the record drops each
    Deployment that is done. Raises ThrottledError after repeated conflicts.
    """
    for key in [key for key in read(instance, claims).surges if only in {None, key}]:
        _put_back(key, kubernetes)
        claims.surge(instance, key, None)


def _put_back(key: str, kubernetes: Kubernetes) -> None:
    """Scale one Deployment back. Without the permission the second replica stays: no termination depends on it."""
    namespace, _, name = key.partition("/")
    with suppress(AccessDeniedError):
        for _ in range(SCALE_BACK_ATTEMPTS):
            deployment = kubernetes.deployment(namespace, name)
            if deployment is None or deployment.replicas != ONE + 1 or kubernetes.scale(deployment, ONE):
                return
        raise ThrottledError(f"scale {key}: {SCALE_BACK_ATTEMPTS} conflicts in a row")
