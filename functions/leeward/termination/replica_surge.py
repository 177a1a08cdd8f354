"""Second replica before the only one leaves, and back afterwards (docs/features.md, X7; docs/designs/draining.md).

A raised Deployment is written into the termination's record before the cluster is changed, and taken out when it is put
back: killed anywhere, the next run finds the Deployments still to be put back. Only replicas change, by the scale
subresource."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from leeward.errors import AccessDeniedError, ClusterUnreachableError, ThrottledError
from leeward.model.deployment import Deployment
from leeward.model.pod import Pod
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes, Workloads
from leeward.ports.records import Claims
from leeward.termination import deadlines
from leeward.termination.drain_plan import Eviction, How
from leeward.termination.instance_state import InstanceState, read

LEFT_ALONE = "NotSurged"  # reason of the Event on a pod that leaves without a second one
ONE = 1  # replicas of a workload whose only pod leaves
CONFLICTS = 5  # when putting replicas back, each followed by a fresh read
DENIED_SECONDS = 2.0  # an API server that has just started knows no permissions for about a second


def why_not(pod: Pod, deployment: Deployment, autoscaled: frozenset[str]) -> str | None:
    """Return the objection to a second replica of the Deployment whose only pod this is; None if there is none."""
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
    """Return, `namespace/name`, the lone pods (`lone_pods.lone_pods`) to which a drain gives a second replica: their
    Deployment asks for one replica, and no objection exists. Only reads; a Deployment that may not be read may not be
    scaled either.
    """
    surged_pods: set[str] = set()
    for pod in lone:
        with suppress(AccessDeniedError):
            deployment = kubernetes.deployment_of(pod)
            if deployment is None or deployment.replicas != ONE:
                continue
            if why_not(pod, deployment, kubernetes.autoscaled(pod.namespace)) is None:
                surged_pods.add(pod.key)
    return frozenset(surged_pods)


class Surging:
    """Second replicas during one step. It is asked about each pod before the eviction, and notified after it."""

    def __init__(self, situation: InstanceState, started: datetime, kubernetes: Kubernetes, ports: Ports) -> None:
        self._record, self._policy = situation.record, situation.policy.drain
        self._kubernetes, self._ports = kubernetes, ports
        now = ports.clock.now()
        self._until = deadlines.surged_by(situation.record, self._policy, started, now, ours_hold=situation.ours_hold)
        self._surges = dict(situation.record.surges)
        self._of_pod: dict[str, str] = {}  # uid -> Deployment that was raised for it
        self._plain: set[str] = set()  # uids of pods that leave without a second one
        self._denied = False

    def waits_for(self, eviction: Eviction) -> str | None:
        """Return the reason for which the pod waits before it may be evicted; None: it may leave. A pod whose last call
        has come, one that is not ready and one that is leaving wait for nothing.
        """
        pod = eviction.pod
        leaves_at_once = not self._policy.surge_single_replicas or eviction.due or eviction.how is How.DELETE
        if leaves_at_once or not pod.ready or pod.deletion or pod.uid in self._plain:
            return None
        try:
            waits = self._decided(pod)
        except AccessDeniedError as error:  # the cluster's role is of an earlier version
            waits = None
            self._notify(pod, str(error))
            mine = self._of_pod.get(pod.uid)
            self._write({key: sure for key, sure in self._surges.items() if sure or key != mine})
        if waits is None:
            self._plain.add(pod.uid)
        return waits

    def gone(self, pod: Pod) -> None:
        """Put back the replicas raised for an evicted pod. If that fails, the record keeps it for a later step."""
        key = self._of_pod.get(pod.uid)
        if key is not None:
            self._lower(key)

    def no_longer_needed(self, there: Iterable[Pod]) -> None:
        """Put back the replicas raised for pods that are not `there` any more: another controller may have ended them,
        or a step whose answer was lost. The node may stay for hours with pods that cannot leave.
        """
        owners = {f"{pod.namespace}/{pod.owner.name.rpartition('-')[0]}" for pod in there if pod.owner}
        for key in self._surges.keys() - owners:  # a Deployment's ReplicaSets are named after it
            self._lower(key)

    def _lower(self, key: str) -> None:
        """Put one back. If that fails it stays among the surges, which a later write of this step repeats."""
        with suppress(ClusterUnreachableError, ThrottledError):
            put_back(self._record.instance, self._kubernetes, self._ports.claims, only=key)
            self._surges.pop(key, None)

    def cannot_tell(self, error: Exception) -> str | None:
        """Return why a pod waits if its Deployment cannot be read or scaled: as long as for a second replica."""
        if self._ports.clock.now() >= self._until:
            return None
        return f"waits for the answer whether it gets a second replica ({error}), until {format_instant(self._until)}"

    def _decided(self, pod: Pod) -> str | None:
        """Decide; the first denial of a step is checked again a moment later."""
        try:
            return self._decide(pod)
        except AccessDeniedError:
            if self._denied:
                raise
            self._denied = True
            self._ports.clock.sleep(DENIED_SECONDS)
            return self._decide(pod)

    def _decide(self, pod: Pod) -> str | None:
        if pod.owner is not None and pod.owner.kind == "StatefulSet":
            self._notify(
                pod, f"StatefulSet {pod.owner.name}: its pods have identities, a second replica is another pod"
            )
            return None
        deployment = self._kubernetes.deployment_of(pod)
        if deployment is None:
            return None
        if deployment.key in self._surges:
            self._of_pod[pod.uid] = deployment.key
            return self._wait(pod, deployment)
        if deployment.replicas != ONE:
            return None
        reason = why_not(pod, deployment, self._kubernetes.autoscaled(pod.namespace))
        if self._ports.clock.now() >= self._until:
            reason = reason or "there is no time left for a second one"
        if reason:
            self._notify(pod, reason)
            return None
        self._of_pod[pod.uid] = deployment.key
        return self._raise(deployment)

    def _raise(self, deployment: Deployment) -> str:
        """Raise the replicas; recorded before and after, to tell a second try from a change by another writer."""
        self._write({**self._surges, deployment.key: False})
        if self._kubernetes.scale(deployment, ONE + 1):
            self._write({**self._surges, deployment.key: True})
        return self._waiting(deployment)

    def _wait(self, pod: Pod, deployment: Deployment) -> str | None:
        if deployment.available > ONE or self._ports.clock.now() >= self._until:
            return None
        if deployment.replicas > ONE:
            if not self._surges[deployment.key]:  # its answer was lost, or the step was killed
                self._write({**self._surges, deployment.key: True})
            return self._waiting(deployment)
        if self._surges[deployment.key]:
            self._notify(pod, f"the replicas of {deployment.key} were set back by others")
            return None
        return self._raise(deployment)

    def _waiting(self, deployment: Deployment) -> str:
        return f"waits for a second replica of {deployment.key}, until {format_instant(self._until)}"

    def _notify(self, pod: Pod, why: str) -> None:
        """Write an Event on the pod that it leaves without a second replica."""
        message = f"evicted without a second replica: {why}"
        now = self._ports.clock.now()
        self._kubernetes.event(pod, reason=LEFT_ALONE, message=message, warning=False, now=now)

    def _write(self, surges: Mapping[str, bool]) -> None:
        self._ports.claims.surge(self._record.instance, surges)
        self._surges = dict(surges)


def put_back(instance: str, kubernetes: Kubernetes, claims: Claims, only: str | None = None) -> None:
    """Return the Deployments that have a second replica because of this instance (or `only` one of them) to their
    former replicas, unless another writer has changed them since. Idempotent: a Deployment put back is taken out of the
    record.
    """
    surges = dict(read(instance, claims).surges)
    for key in [key for key in surges if only in {None, key}]:
        _put_back(key, kubernetes)
        del surges[key]
        claims.surge(instance, surges)


def _put_back(key: str, kubernetes: Kubernetes) -> None:
    """Put one Deployment back. Without the permission, the second replica stays: no termination must hang on it."""
    namespace, _, name = key.partition("/")
    with suppress(AccessDeniedError):
        for _ in range(CONFLICTS):
            deployment = kubernetes.deployment(namespace, name)
            if deployment is None or deployment.replicas != ONE + 1 or kubernetes.scale(deployment, ONE):
                return
        raise ThrottledError(f"scale {key}: {CONFLICTS} conflicts in a row")
