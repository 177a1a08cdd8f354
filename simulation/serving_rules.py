"""Rule that a replacement serves the pods for which it was launched: no pod waits beside it because of its zone.

Judged with the rules of the cluster model's own scheduler, some minutes after the launch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from leeward.model.well_known import ZONE_ID_LABEL, ZONE_KEYS, ZONE_LABEL
from local.cluster.objects import Obj, controller_of, copied, is_deleting, is_finished, labels_of, node_of, path_name
from local.cluster.scheduling.affinity import AffinityRules, Repelling, required_terms
from local.cluster.scheduling.feasibility import matches_node
from local.cluster.scheduling.placed import Placed
from local.cluster.scheduling.spread import SpreadRules, constraints_of
from local.cluster.selectors import label_selector_matches
from simulation.convergence import launched_for
from simulation.facts import News
from simulation.node_instances import instance_behind
from simulation.view import WorldView

SERVES = 240.0  # seconds from a launch: its node is Ready by then, and the old one has drained
LOOKED_AGAIN = 60.0
JOINS = 900.0  # a node that is not there by then serves nothing
AT_ONCE = 120.0  # launches within that time do not see each other's pods
TROUBLE = 30.0  # of the Kubernetes API before a plan, which then could not ask
_OF_ZONES = {*ZONE_KEYS, ZONE_ID_LABEL}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """Launch in place of an instance. `zones`: those in which its plan would have launched; `owners`: uids of the
    controllers of those of its pods that have a required rule about zones; `others`: where their pods on other nodes
    were when it was planned; `due`: when it is judged.
    """

    instance: str
    zones: frozenset[str]
    owners: frozenset[str]
    others: frozenset[tuple[str, str]]
    planned: float
    due: float = 0.0


class Serving:
    """Launches of one run that are not judged yet."""

    def __init__(self) -> None:
        self._new = News().of
        self._planned: dict[str, _Launch] = {}
        self._launched: dict[str, _Launch] = {}  # by the new instance
        self._last = 0.0  # when the last plan was written
        self._crowd = 0.0  # until when the launches of several instances do not see each other

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield pods that wait beside their replacement where a launch in another zone of its plan would serve them."""
        for instance, plan in self._new("plans", view.plans):
            if instance not in self._planned and view.now - self._last < AT_ONCE:
                self._crowd = view.now + AT_ONCE
            self._last = view.now
            if owners := self._owners(instance, view):
                self._planned[instance] = _Launch(
                    instance=instance,
                    zones=frozenset(option.zone for option in plan.options),
                    owners=owners,
                    others=_others(instance, owners, view),
                    planned=view.now,
                )
        for token, new in self._new("launches", view.launches):
            launch = self._planned.get(launched_for(token))
            if launch is not None:
                self._launched[new] = replace(launch, due=view.now + SERVES)
        for new, launch in list(self._launched.items()):
            if view.now >= launch.due:
                yield from self._judged(new, launch, view)

    def _owners(self, instance: str, view: WorldView) -> frozenset[str]:
        """Return the controllers of the tied pods; of an earlier plan where the pods have left by now."""
        if instance in self._planned:
            return self._planned[instance].owners
        node = _node_of(instance, view)
        if node is None or view.troubled(TROUBLE):
            return frozenset()
        pods = [pod for pod in view.cluster.store.pods_on(node["metadata"]["name"]) if _is_tied(pod)]
        pods = [pod for pod in pods if not _follows(pod, view)]
        owners = (controller_of(pod) for pod in pods if not is_deleting(pod) and not is_finished(pod))
        return frozenset(owner["uid"] for owner in owners if owner)

    def _judged(self, new: str, launch: _Launch, view: WorldView) -> Iterator[str]:
        node = _node_of(new, view)
        if node is None and view.running(new) and view.now - launch.planned < JOINS:
            self._launched[new] = replace(launch, due=view.now + LOOKED_AGAIN)
            return
        del self._launched[new]
        self._planned.pop(launch.instance, None)
        if node is None or launch.planned < self._crowd or not _still(launch, view):
            return
        for pod in view.cluster.store.sorted("pods"):
            if _waits(pod, launch.owners) and (better := _better_zones(pod, node, launch, view)):
                zone = labels_of(node)[ZONE_LABEL]
                yield f"{path_name(pod)} waits beside {new} in {zone}, and could run in {', '.join(better)}"


def _others(instance: str, owners: frozenset[str], view: WorldView) -> frozenset[tuple[str, str]]:
    """Return the pods of the controllers that are not on the instance's node, each with its node or with ""."""
    node = _node_of(instance, view)
    own = node["metadata"]["name"] if node else None
    placed = ((path_name(pod), node_of(pod) or "") for pod in _owned(owners, view))
    return frozenset((name, at) for name, at in placed if at != own)


def _still(launch: _Launch, view: WorldView) -> bool:
    """Return whether the pods of other nodes are where they were when the launch was planned. Where other drains moved
    them in the meantime, a zone that was right may be no longer so.
    """
    return launch.others <= {(path_name(pod), node_of(pod) or "") for pod in _owned(launch.owners, view)}


def _owned(owners: frozenset[str], view: WorldView) -> Iterator[Obj]:
    for pod in view.cluster.store.each("pods"):
        owner = controller_of(pod)
        if owner is not None and owner["uid"] in owners and not is_finished(pod):
            yield pod


def _is_tied(pod: Obj) -> bool:
    terms = [*required_terms(pod, "podAffinity"), *required_terms(pod, "podAntiAffinity")]
    return any(one["topologyKey"] in _OF_ZONES for one in (*constraints_of(pod, hard=True), *terms))


def _follows(pod: Obj, view: WorldView) -> bool:
    """Return whether the pod has to run in the zone of pods that run nowhere but on its own node: they leave as well,
    and where they go is not known when the replacement is launched.
    """
    for term in required_terms(pod, "podAffinity"):
        selector = term.get("labelSelector")
        wanted = [one for one in view.cluster.store.each("pods") if label_selector_matches(selector, labels_of(one))]
        nodes = {node_of(one) for one in wanted if not (is_finished(one) or is_deleting(one))}
        if term["topologyKey"] in _OF_ZONES and nodes <= {None, "", node_of(pod)}:
            return True
    return False


def _waits(pod: Obj, owners: frozenset[str]) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner["uid"] in owners and not node_of(pod) and not is_deleting(pod)


def _better_zones(pod: Obj, node: Obj, launch: _Launch, view: WorldView) -> list[str]:
    """Return the zones in which a node like this one would take the pod, none where this one does. A zone that takes
    no pod of those that run on the node now is no better: pods with opposite rules cannot all be served.
    """
    refused = _refusals(pod, view)
    if not refused(node):
        return []
    others = launch.zones - {labels_of(node)[ZONE_LABEL]}
    moved = {zone: _in_zone(node, zone) for zone in sorted(others)}
    better = {zone: at for zone, at in moved.items() if matches_node(pod, at) and not refused(at)}
    for served in view.cluster.store.pods_on(node["metadata"]["name"]) if better else ():
        owner = controller_of(served)
        if owner is not None and owner["uid"] in launch.owners and not is_finished(served):
            elsewhere = _refusals(served, view)
            better = {zone: at for zone, at in better.items() if matches_node(served, at) and not elsewhere(at)}
    return [*better]


def _refusals(pod: Obj, view: WorldView) -> Callable[[Obj], bool]:
    """Return whether a node's zone refuses the pod, as a function of the node; the pod itself is not counted."""
    store, placed, repelling = view.cluster.store, Placed(), Repelling()
    for other in store.each("pods"):
        if node_of(other) and not is_finished(other) and other is not pod:
            placed.add(other)
            repelling.note(other, 1)
    rules = (SpreadRules(pod, store, placed), AffinityRules(pod, store, placed, repelling))
    return lambda node: any(rule.refusal(node) for rule in rules)


def _in_zone(node: Obj, zone: str) -> Obj:
    moved: Obj = copied(node)
    moved["metadata"]["labels"] |= {key: zone for key in ZONE_KEYS if key in labels_of(node)}
    return moved


def _node_of(instance: str, view: WorldView) -> Obj | None:
    return next((node for node in view.cluster.store.each("nodes") if instance_behind(node) == instance), None)
