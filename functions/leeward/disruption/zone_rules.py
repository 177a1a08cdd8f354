"""Nodes with pods that pods elsewhere keep out of their zones: required anti-affinity that the moved pod does not show.

kube-scheduler honours such a rule from both sides. A termination asks for the zones of its pods only where a rule
compares zones, and the pods of one node do not show the rules of all others; the planner sees them all. The annotation
names the namespaces of these others, so that a replacement's zone is chosen by their rules, too. It is as old as the
planner's last observation."""

from collections import defaultdict
from collections.abc import Mapping

from leeward.model import well_known
from leeward.scheduling.pod_affinity import PodGroup
from leeward.scheduling.pods import PodSpec
from leeward.snapshot.cluster import ClusterSnapshot

MOST_NAMESPACES = 10  # of one node: each is a list of its pods
_OF_ZONES = frozenset({*well_known.ZONE_KEYS, well_known.ZONE_ID_LABEL})


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
