"""Annotations on nodes of selected groups that show the findings to people and to the next run (docs/features.md, K6,
K7, K15): since when a node is empty, whether it has expired, since when and in which fields it has drifted, the
hashes of its launch settings, and whose anti-affinity by zone means its pods.

An annotation is removed when its method is switched off or the node is in order again. Terminating nodes, and those
that another manager owns, are left unchanged. The same snapshot with the changes applied yields no changes.
`annotation_changes` decides, `write_annotations` writes one patch per node.

kube-scheduler honours a required anti-affinity from both sides. A termination asks for the zones of its pods only where
a rule compares zones, and the pods of one node do not show the rules of all others; the planner sees them all.
`leeward.dev/kept-apart-by` names the namespaces of these others, so that a replacement's zone is chosen by their rules,
too. It is as old as the planner's last observation."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from leeward.disruption.candidates import expires, workload_on
from leeward.disruption.methods.emptiness import empty_since, why_off
from leeward.disruption.methods.expiration import why_kept_forever
from leeward.disruption.planning_state import PlanningState, always
from leeward.drift.detect import annotations
from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors, reraise
from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.node_owners import disruption_taint_of, foreign
from leeward.model.times import format_instant
from leeward.model.well_known import is_hook_mark
from leeward.policy.document import NodePolicy
from leeward.ports.kubernetes import Kubernetes
from leeward.scheduling.pod_affinity import PodGroup
from leeward.scheduling.pods import PodSpec
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.upgrade.automatic import image_moved

TRUE = "true"
NOT_FIXABLE = "DriftNotFixable"  # reason of an Event
LONGEST = 1000
MOST_NAMESPACES = 10  # of one node: each is a list of its pods
_OF_ZONES = frozenset({*well_known.ZONE_KEYS, well_known.ZONE_ID_LABEL})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationChange:
    """Change of one node as the snapshot shows it; `set` and `remove` name no key twice and change every key."""

    node: Node
    set: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """True if the change starts a timer, so that it is written before others."""
        return well_known.EMPTY_SINCE in self.set


def annotation_changes(snapshot: ClusterSnapshot, now: datetime) -> Sequence[AnnotationChange]:
    """Return the required changes, sorted by node name; `now` is the moment that is written."""
    return changes_in(PlanningState(snapshot if snapshot.now == now else replace(snapshot, now=now)))


def changes_in(state: PlanningState) -> Sequence[AnnotationChange]:
    """Return the changes of `annotation_changes` for an existing run, whose moment is the snapshot's."""
    changes: list[AnnotationChange] = []
    apart = kept_apart(state.snapshot)
    for node in sorted(state.snapshot.nodes, key=lambda node: node.name):
        wanted = _wanted(state, node, apart.get(node.name))
        set_ = {key: value for key, value in wanted.items() if value is not None and node.annotations.get(key) != value}
        removed = tuple(key for key, value in wanted.items() if value is None and key in node.annotations)
        if set_ or removed:
            changes.append(AnnotationChange(node=node, set=set_, remove=removed))
    return changes


def _wanted(state: PlanningState, node: Node, apart: str | None) -> dict[str, str | None]:
    """Return every annotation that this module manages; None: it must be absent. `apart`: as `kept_apart` has it."""
    policy = state.snapshot.policy_of_node(node)
    leaving = node.deleting or bool(disruption_taint_of(node, state.snapshot.now))
    if leaving or foreign(node):
        return {}
    if policy is None:
        return dict.fromkeys(well_known.FINDINGS) if _is_left_over(state.snapshot, node) else {}
    return {
        well_known.EMPTY_SINCE: _empty(state, node, policy),
        well_known.EXPIRED: _expired(state.snapshot, node, policy),
        well_known.IMAGE_MOVED: image_moved(state.snapshot, node, policy),
        well_known.KEPT_APART_BY: apart,
        **annotations(state.snapshot, node, state.drift[node.name]),
    }


def _is_left_over(snapshot: ClusterSnapshot, node: Node) -> bool:
    """Return whether no policy selects the node's group any more: what it carries would count when one does again. A
    group with a hook of Leeward may be another deployment's, which writes the same annotations; fn sync takes our own
    hook off.
    """
    group = snapshot.group_of(node)
    hooks = snapshot.hooks.get(group.name) if group is not None else None
    return hooks is not None and not any(is_hook_mark(hook.metadata) for hook in hooks)


def write_drift_events(
    state: PlanningState,
    changes: Iterable[AnnotationChange],
    kubernetes: Kubernetes,
    more: Callable[[], bool] = always,
    note: Callable[[str, LeewardError], object] = reraise,
) -> int:
    """Return the number of Events: one on each node of which it has just been found that new nodes of its group would
    show its differences too. The annotation, written with the same changes, keeps it from being said again.
    """
    said = 0
    for change in changes:
        if well_known.DRIFT_NOT_FIXABLE not in change.set or not more():
            continue
        drift = state.drift[change.node.name]
        message = f"it is not replaced for all of its drift: {drift.not_fixed}"[:LONGEST]
        with isolate_errors(partial(note, change.node.name)), suppress(ObjectGoneError):
            kubernetes.event(change.node, reason=NOT_FIXABLE, message=message, warning=True, now=state.snapshot.now)
            said += 1
    return said


def _empty(state: PlanningState, node: Node, policy: NodePolicy) -> str | None:
    """Keep the existing timestamp while the node is empty, unless a pod has run since. A node that is not Ready does
    not become empty: no pod could land there yet.
    """
    if why_off(state.snapshot, policy) or workload_on(state.snapshot, node) or node.name in state.arrivals:
        return None
    if since := empty_since(state.snapshot, node):
        return format_instant(since)
    return format_instant(state.snapshot.now) if node.ready else None


def _expired(snapshot: ClusterSnapshot, node: Node, policy: NodePolicy) -> str | None:
    moment = expires(node, policy.disruption)
    if moment is None or why_kept_forever(snapshot, node, policy):
        return None
    return TRUE if moment <= snapshot.now else None


def write_annotations(
    changes: Iterable[AnnotationChange],
    kubernetes: Kubernetes,
    more: Callable[[], bool] = always,
    note: Callable[[str, LeewardError], object] = reraise,
) -> int:
    """Return the number of nodes that now carry the requested annotations. `more` says whether there is time for
    another node; the remaining changes are requested again next time. Idempotent: writing again changes nothing; a node
    that is gone counts as done.

    `note` receives each node that could not be written and the error, so that the other nodes are still written;
    without it the first error is raised.
    """
    written = 0
    for change in sorted(changes, key=lambda change: (not change.waits, change.node.name)):
        if not more():
            break
        with isolate_errors(partial(note, change.node.name)), suppress(ObjectGoneError):
            kubernetes.annotate(change.node, {**change.set, **dict.fromkeys(change.remove)})
            written += 1
    return written


def kept_apart(snapshot: ClusterSnapshot) -> Mapping[str, str]:
    """Return the value of `leeward.dev/kept-apart-by` for each node that needs it: namespaces, sorted, by commas."""
    holders: dict[PodGroup, set[str]] = defaultdict(set)
    for pod in snapshot.pod_specs:
        for term in pod.needs.away if pod.node else ():
            if term.key in _OF_ZONES:
                holders[term.group].add(pod.namespace)
    known: dict[int, frozenset[str]] = {}  # by identity, which pods of one template share
    found: dict[str, set[str]] = defaultdict(set)
    for pod in snapshot.pod_specs if holders else ():
        if pod.node and not pod.stays:
            key = id(pod.identity)
            if key not in known:
                known[key] = _namespaces(pod, holders)
            found[pod.node] |= known[key] - ({pod.namespace} if _is_tied(pod) else set())
    return {node: ",".join(sorted(names)[:MOST_NAMESPACES]) for node, names in found.items() if names}


def _namespaces(pod: PodSpec, holders: Mapping[PodGroup, set[str]]) -> frozenset[str]:
    labels = dict(pod.identity.labels)
    held = (namespaces for group, namespaces in holders.items() if group.holds(pod.namespace, labels))
    return frozenset[str]().union(*held)


def _is_tied(pod: PodSpec) -> bool:
    """Return whether rules of its own have the pods of its namespace compared already (`Pod.tied_to_zones`)."""
    spread = {rule.key for rule in pod.needs.spread if rule.required}
    return not _OF_ZONES.isdisjoint(spread.union(term.key for term in (*pod.needs.near, *pod.needs.away)))
