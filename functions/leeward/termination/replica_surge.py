"""A second replica before the only one leaves, and back afterwards (docs/features.md, X7; docs/designs/draining.md).

What is raised is written into the termination's record before the cluster is asked, and taken out when it is put back:
killed anywhere, the next run finds what is still to be put back. Only replicas change, by the scale subresource."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from leeward.errors import AccessDeniedError, ClusterUnreachableError, ThrottledError
from leeward.model.deployment import Deployment
from leeward.model.pod import Pod
from leeward.model.times import format_instant
from leeward.ports import Kubernetes, Ports
from leeward.ports_cluster import Workloads
from leeward.termination import deadlines
from leeward.termination.drain_plan import Eviction, How
from leeward.termination.instance_state import InstanceState, read

LEFT_ALONE = "NotSurged"  # reason of the Event on a pod that goes without a second one
ONE = 1  # replicas of a workload whose only pod leaves
CONFLICTS = 5  # of putting replicas back, each followed by a fresh read
DENIED_SECONDS = 2.0  # an API server that has just started knows no permissions for about a second


def why_not(pod: Pod, deployment: Deployment, autoscaled: frozenset[str]) -> str | None:
    """What speaks against a second replica of the Deployment whose only pod this is; None where nothing does."""
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
    """Of lone pods (`lone_pods.lone_pods`) those that a drain gives a second replica, `namespace/name`: their
    Deployment asks for one replica, and nothing speaks against another. Reads alone; a Deployment that may not be read
    may not be scaled either.
    """
    found = set()
    for pod in lone:
        with suppress(AccessDeniedError):
            deployment = kubernetes.deployment_of(pod)
            if deployment is None or deployment.replicas != ONE:
                continue
            if why_not(pod, deployment, kubernetes.autoscaled(pod.namespace)) is None:
                found.add(pod.key)
    return frozenset(found)


class Surging:
    """For one step. Asked about each pod before it is evicted, and told when that was done."""

    def __init__(self, situation: InstanceState, started: datetime, kubernetes: Kubernetes, ports: Ports) -> None:
        self._record, self._policy = situation.record, situation.policy.drain
        self._kubernetes, self._ports = kubernetes, ports
        now = ports.clock.now()
        self._until = deadlines.surged_by(situation.record, self._policy, started, now, ours_hold=situation.ours_hold)
        self._surges = dict(situation.record.surges)
        self._of_pod: dict[str, str] = {}  # uid -> Deployment that was raised for it
        self._plain: set[str] = set()  # uids of pods that go without
        self._denied = False

    def waits_for(self, eviction: Eviction) -> str | None:
        """What the pod waits for before it may be evicted; None: it may go. A pod whose last call has come, one that is
        not ready and one that is leaving wait for nothing.
        """
        pod = eviction.pod
        told = not self._policy.surge_single_replicas or eviction.due or eviction.how is How.DELETE
        if told or not pod.ready or pod.deletion or pod.uid in self._plain:
            return None
        try:
            waits = self._decided(pod)
        except AccessDeniedError as error:  # the cluster's role is one of before
            waits = None
            self._tell(pod, str(error))
            mine = self._of_pod.get(pod.uid)
            self._write({key: sure for key, sure in self._surges.items() if sure or key != mine})
        if waits is None:
            self._plain.add(pod.uid)
        return waits

    def gone(self, pod: Pod) -> None:
        """The pod has been told to leave: what was raised for it is put back. Where that fails, the record keeps it and
        a later step does it.
        """
        key = self._of_pod.get(pod.uid)
        if key is not None:
            self._lower(key)

    def no_longer_needed(self, there: Iterable[Pod]) -> None:
        """Put back what was raised for pods that are not `there` any more: others may have ended them, or a step whose
        answer was lost. The node may stay for hours with pods that cannot leave.
        """
        owners = {f"{pod.namespace}/{pod.owner.name.rpartition('-')[0]}" for pod in there if pod.owner}
        for key in self._surges.keys() - owners:  # a Deployment's ReplicaSets are named after it
            self._lower(key)

    def _lower(self, key: str) -> None:
        """Put one back. Where that fails it stays among the surges, which a later write of this step repeats."""
        with suppress(ClusterUnreachableError, ThrottledError):
            put_back(self._record.instance, self._kubernetes, self._ports, only=key)
            self._surges.pop(key, None)

    def cannot_tell(self, error: Exception) -> str | None:
        """What a pod waits for whose Deployment cannot be read or scaled: as long as for a second replica."""
        if self._ports.clock.now() >= self._until:
            return None
        return f"waits for the answer whether it gets a second replica ({error}), until {format_instant(self._until)}"

    def _decided(self, pod: Pod) -> str | None:
        """Decide; the first denial of a step is looked at again a moment later."""
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
            self._tell(pod, f"StatefulSet {pod.owner.name}: each of its pods is somebody, a second is another")
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
            self._tell(pod, reason)
            return None
        self._of_pod[pod.uid] = deployment.key
        return self._raise(deployment)

    def _raise(self, deployment: Deployment) -> str:
        """Written down before and after: a second try must be told from somebody who has put it back."""
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
            self._tell(pod, f"somebody has put the replicas of {deployment.key} back")
            return None
        return self._raise(deployment)

    def _waiting(self, deployment: Deployment) -> str:
        return f"waits for a second replica of {deployment.key}, until {format_instant(self._until)}"

    def _tell(self, pod: Pod, why: str) -> None:
        """It goes without; said on the pod."""
        message = f"evicted without a second replica: {why}"
        now = self._ports.clock.now()
        self._kubernetes.event(pod, reason=LEFT_ALONE, message=message, warning=False, now=now)

    def _write(self, surges: Mapping[str, bool]) -> None:
        self._ports.claims.surge(self._record.instance, surges)
        self._surges = dict(surges)


def put_back(instance: str, kubernetes: Kubernetes, ports: Ports, only: str | None = None) -> None:
    """Give the Deployments that have a second replica for this instance's sake (or `only` one of them) the replicas
    that they had, unless somebody has changed them since. Idempotent: what is put back is taken out of the record.
    """
    surges = dict(read(instance, ports).surges)
    for key in [key for key in surges if only in {None, key}]:
        _put_back(key, kubernetes)
        del surges[key]
        ports.claims.surge(instance, surges)


def _put_back(key: str, kubernetes: Kubernetes) -> None:
    """Who has taken the permission away meanwhile keeps the second replica: no termination must hang on it."""
    namespace, _, name = key.partition("/")
    with suppress(AccessDeniedError):
        for _ in range(CONFLICTS):
            deployment = kubernetes.deployment(namespace, name)
            if deployment is None or deployment.replicas != ONE + 1 or kubernetes.scale(deployment, ONE):
                return
        raise ThrottledError(f"scale {key}: {CONFLICTS} conflicts in a row")
