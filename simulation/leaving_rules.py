"""What must hold for what a node has beside its pods: targets of load balancers, volumes, second replicas.

The rules look at targets, attachments and replicas themselves and share no code with the product's waits."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from leeward.model import keys
from leeward.model.instance import instance_id_of
from leeward.model.termination import CauseKind, Status, TerminationRecord
from leeward.policy.document import DrainPolicy
from local.cluster.objects import Obj, annotations_of, is_ready, name_of
from local.cluster.volumes import claim_names
from simulation.facts import News, policy_of
from simulation.kubernetes import Eviction
from simulation.view import WorldView

CLOCKS = timedelta(seconds=5)  # by which those of two functions may differ


class LeavingRules:
    """Remembers which evictions and which ends it has looked at."""

    def __init__(self) -> None:
        self._new = News().of
        self._let_go: set[tuple[str, datetime | None]] = set()  # instance, begin of its drain

    def targets(self, view: WorldView) -> Iterator[str]:
        """Once the load balancers have let go of a node they may come back: that is another's doing."""
        for eviction in self._new("evictions", view.evictions):
            record = view.records.get(eviction.instance)
            if record is None:
                continue
            drain = (eviction.instance, record.times.get("draining"))
            state = view.target(eviction.instance, eviction.at.timestamp())
            if state is None:
                self._let_go.add(drain)
            elif drain not in self._let_go and _could_wait(record, eviction, view):
                yield f"{eviction.pod.key} evicted, {eviction.instance} is a {state} target"

    def volumes(self, view: WorldView) -> Iterator[str]:
        """Our TerminateInstance, or our answer to the last hook, ends the instance."""
        answered = self._new("answers", view.completed_hooks)
        gone = [instance for group, hook, instance, by_us in answered if by_us and view.ours(hook, group)]
        gone += self._new("asked", view.terminations)
        for instance in gone:
            record = view.records.get(instance)
            if record is not None and view.running(instance) and _could_hold(record, view):
                yield from (f"{instance} with {volume}" for volume in _left_attached(instance, view))


def exclusions(view: WorldView) -> Iterator[str]:
    """No node that serves again is kept out of load balancers by us."""
    for node in view.cluster.store.sorted("nodes"):
        taints = node["spec"].get("taints") or ()
        if keys.EXCLUDED_BY_DRAIN in annotations_of(node) and all(one["key"] != keys.DISRUPTED_TAINT for one in taints):
            yield name_of(node)


def replicas(view: WorldView) -> Iterator[str]:
    """What was raised for an instance that goes is put back."""
    open_ = [record for record in view.records.values() if record.status is Status.OPEN]
    raised = {key for record in open_ for key in record.surges}
    for key, wanted in sorted(view.replicas.items()):
        namespace, _, name = key.partition("/")
        found = view.cluster.store.find("deployments", name, namespace)
        if found is not None and key not in raised and found["spec"].get("replicas", 1) != wanted:
            yield f"{key} has {found['spec'].get('replicas', 1)}, its owner wants {wanted}"


def _could_wait(record: TerminationRecord, eviction: Eviction, view: WorldView) -> bool:
    policy, started = _policy(record, view), record.times.get("draining")
    if policy is None or started is None or _hurried(record, policy) or not view.running(eviction.instance):
        return False
    return eviction.at < started + min(policy.deregistration_timeout, policy.timeout / 2) - CLOCKS


def _could_hold(record: TerminationRecord, view: WorldView) -> bool:
    policy, drained, started = _policy(record, view), record.times.get("drained"), record.times.get("draining")
    if policy is None or drained is None or started is None or _hurried(record, policy):
        return False
    in_time = drained < started + policy.timeout - CLOCKS  # else it was let go as it was
    return in_time and datetime.fromtimestamp(view.now, UTC) < drained + policy.volume_detach_timeout - CLOCKS


def _hurried(record: TerminationRecord, policy: DrainPolicy) -> bool:
    deadline = any(cause.deadline for cause in record.causes) or policy.termination_grace_period is not None
    return deadline or record.has(CauseKind.SPOT_INTERRUPTION, CauseKind.STATE_CHANGE)


def _policy(record: TerminationRecord, view: WorldView) -> DrainPolicy | None:
    found = policy_of(view, view.groups.get(record.subject.group or ""))
    return found.drain if found else None


def _left_attached(instance: str, view: WorldView) -> Iterator[str]:
    """Volumes at its node that no pod there uses; where nobody is there to unmount them, the end frees them."""
    store = view.cluster.store
    nodes = [node for node in store.each("nodes") if instance_id_of(node["spec"].get("providerID") or "") == instance]
    for node in filter(is_ready, nodes):
        used = {_volume(view, pod, claim) for pod in store.pods_on(name_of(node)) for claim in claim_names(pod)}
        for attachment in store.sorted("volumeattachments"):
            volume = str(attachment["spec"]["source"].get("persistentVolumeName") or "")
            if attachment["spec"]["nodeName"] == name_of(node) and volume not in used:
                yield volume


def _volume(view: WorldView, pod: Obj, claim: str) -> str:
    found = view.cluster.store.find("persistentvolumeclaims", claim, pod["metadata"]["namespace"])
    return str((found or {}).get("spec", {}).get("volumeName") or "")
