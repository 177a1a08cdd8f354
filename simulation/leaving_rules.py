"""Rules that must hold for what a node has beside its pods: targets of load balancers, volumes, second replicas.

The rules read targets, attachments and replicas themselves and share no code with the product's waits."""

from collections.abc import Iterator
from datetime import timedelta

from leeward.model import well_known
from leeward.policy.document import SETTLES
from local.cluster.objects import Obj, annotations_of, is_ready, name_of
from local.cluster.selectors import label_selector_matches
from local.cluster.volumes import claim_names
from simulation.drain_times import CLOCKS, OUTLIVES, DrainTimes
from simulation.facts import News
from simulation.node_instances import instance_behind
from simulation.removed_objects import Eviction
from simulation.view import WorldView


class LeavingRules:
    """Rules for leaving nodes; they remember which evictions and which terminations they have checked."""

    def __init__(self, times: DrainTimes) -> None:
        self._times = times
        self._new = News().of
        self._let_go: set[tuple[str, float | None]] = set()  # instance, begin of its drain
        self._last_eviction: dict[str, float] = {}

    def targets(self, view: WorldView) -> Iterator[str]:
        """Yield pods evicted while their node is a target. Once the load balancers have released a node, a target that
        comes back is not the product's doing.
        """
        for eviction in self._new("evictions", view.evictions):
            self._last_eviction[eviction.instance] = eviction.at.timestamp()
            drain = (eviction.instance, self._times.begun(eviction.instance, view))
            state = view.target(eviction.instance, eviction.at.timestamp())
            if state is None:
                self._let_go.add(drain)
            elif drain not in self._let_go and self._could_wait(eviction, view):
                yield f"{eviction.pod.key} evicted, {eviction.instance} is a {state} target"

    def volumes(self, view: WorldView) -> Iterator[str]:
        """Yield volumes still attached when our TerminateInstance, or our answer to the last hook, ends the
        instance.
        """
        for instance in self._released("volumes", view):
            policy = self._times.policy(instance, view)
            span = policy.drain.volume_detach_timeout if policy is not None else timedelta()
            if view.running(instance) and self._could_hold(instance, span, view):
                yield from (f"{instance} with {volume}" for volume in _left_attached(instance, view))

    def settled(self, view: WorldView) -> Iterator[str]:
        """Yield instances that we end sooner after their last eviction than `drain.settle` allows; with `auto` where a
        Service of the cluster has a node port.
        """
        for instance in self._released("settled", view):
            policy = self._times.policy(instance, view)
            settle = policy.drain.settle if policy is not None else timedelta()
            if settle is None:
                settle = SETTLES if _has_node_port(view) else timedelta()
            if view.running(instance) and self._could_hold(instance, settle, view):
                yield f"{instance} {view.now - self._last_eviction[instance]:.0f} s after its last eviction"

    def _released(self, name: str, view: WorldView) -> Iterator[str]:
        """Yield instances for which our TerminateInstance, or our answer to the last hook, is new to this rule."""
        for group, hook, instance, by_us in self._new(f"{name}: answers", view.completed_hooks):
            if by_us and view.ends(hook, group):
                yield instance
        for instance in self._new(f"{name}: asked", view.terminations):
            if not any(hold.ours for hold in view.holds(instance)):
                yield instance

    def _could_wait(self, eviction: Eviction, view: WorldView) -> bool:
        policy = self._times.policy(eviction.instance, view)
        if policy is None or self._times.unsettled(view) or not view.running(eviction.instance):
            return False
        stopped = view.rested_since(eviction.instance)
        if stopped is not None and view.now - stopped < OUTLIVES:
            return False
        return eviction.at.timestamp() < self._times.deregistered_by(eviction.instance, policy, view)

    def _could_hold(self, instance: str, span: timedelta, view: WorldView) -> bool:
        """Return whether the termination could have waited for that span. Its last pod cannot have left before the
        last eviction; after the drain's time it is released all the same.
        """
        policy, last = self._times.policy(instance, view), self._last_eviction.get(instance)
        if policy is None or last is None or self._times.unsettled(view) or self._times.asked.is_warned(instance):
            return False
        over = self._times.over(instance, policy.drain, view)
        ends = self._times.node_deadline(instance, policy, view)
        until = last + span.total_seconds()
        begun = self._times.begun(instance, view)
        within = begun is not None and last >= begun and over is not None and view.now < over - CLOCKS
        return within and view.now < min(until, until if ends is None else ends) - CLOCKS


def _has_node_port(view: WorldView) -> bool:
    """Return whether a Service of the cluster is reached through nodes."""
    ports = (port for service in view.cluster.store.each("services") for port in service["spec"].get("ports") or ())
    return any(port.get("nodePort") for port in ports)


def exclusions(view: WorldView) -> Iterator[str]:
    """Yield nodes that serve again and that we keep out of load balancers."""
    for node in view.cluster.store.sorted("nodes"):
        taints = node["spec"].get("taints") or ()
        if well_known.EXCLUDED_BY_DRAIN in annotations_of(node) and all(
            one["key"] != well_known.DISRUPTED_TAINT for one in taints
        ):
            yield name_of(node)


def replicas(view: WorldView) -> Iterator[str]:
    """Yield Deployments whose replicas, raised for a terminating instance, are not put back, unless a pod of the
    workload is still on such a node.
    """
    for key, wanted in sorted(view.replicas.items()):
        namespace, _, name = key.partition("/")
        found = view.cluster.store.find("deployments", name, namespace)
        if found is None or found["spec"].get("replicas", 1) == wanted or _on_its_way(found, view):
            continue
        yield f"{key} has {found['spec'].get('replicas', 1)}, its owner wants {wanted}"


def _on_its_way(deployment: Obj, view: WorldView) -> bool:
    leaving = [node for node in view.cluster.store.each("nodes") if instance_behind(node) in view.open_since]
    pods = [pod for node in leaving for pod in view.cluster.store.pods_on(name_of(node))]
    selector, space = deployment["spec"].get("selector"), deployment["metadata"]["namespace"]
    mine = (pod for pod in pods if pod["metadata"]["namespace"] == space)
    return any(label_selector_matches(selector, pod["metadata"].get("labels") or {}) for pod in mine)


def _left_attached(instance: str, view: WorldView) -> Iterator[str]:
    """Yield volumes at its node that no pod there uses; where no kubelet is there to unmount them, the termination
    frees them.
    """
    store = view.cluster.store
    nodes = [node for node in store.each("nodes") if instance_behind(node) == instance]
    for node in filter(is_ready, nodes):
        used = {_volume(view, pod, claim) for pod in store.pods_on(name_of(node)) for claim in claim_names(pod)}
        for attachment in store.sorted("volumeattachments"):
            volume = str(attachment["spec"]["source"].get("persistentVolumeName") or "")
            if attachment["spec"]["nodeName"] == name_of(node) and volume not in used:
                yield volume


def _volume(view: WorldView, pod: Obj, claim: str) -> str:
    found = view.cluster.store.find("persistentvolumeclaims", claim, pod["metadata"]["namespace"])
    return str((found or {}).get("spec", {}).get("volumeName") or "")
