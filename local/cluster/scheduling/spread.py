"""PodTopologySpread: constraints that must hold (`whenUnsatisfiable: DoNotSchedule`).

Rules: `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go` and `common.go`. Pods that are being deleted
or have finished do not count. The softer constraints are preferences: `scores`.
"""

from __future__ import annotations

from dataclasses import dataclass

from local.cluster.objects import Obj, labels_of, name_of, namespace_of
from local.cluster.store import Store

from .affinity import selector_for
from .feasibility import matches_node
from .placed import Placed, PodQuery
from .taints import blocking_taint, tolerations_of

_SKEWED = "node(s) didn't match pod topology spread constraints"
_NO_LABEL = f"{_SKEWED} (missing required label)"


def constraints_of(pod: Obj, *, hard: bool) -> list[Obj]:
    """Return the pod's constraints of one kind."""
    found = pod["spec"].get("topologySpreadConstraints") or []
    return [entry for entry in found if (entry.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule") is hard]


def spread_query(pod: Obj, constraint: Obj) -> PodQuery:
    """Return the query of the pods that a constraint counts: those of the pod's namespace that its selector and label
    keys match.

    An empty selector counts none (`countPodsMatchSelector`).
    """
    selector = selector_for(pod, constraint) or {}
    some = selector.get("matchLabels") or selector.get("matchExpressions")
    return PodQuery(selector=selector if some else None, namespaces=frozenset({namespace_of(pod) or ""}))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """Counts of one constraint: pods in each domain, the minimum of them, and whether the pod itself will count."""

    key: str
    max_skew: int
    counts: dict[str, int]
    least: int
    itself: int

    def skews(self, domain: str) -> bool:
        return self.counts.get(domain, 0) + self.itself - self.least > self.max_skew


class SpreadRules:
    """Hard constraints of one pod, counted once and checked for every node."""

    def __init__(self, pod: Obj, store: Store, placed: Placed) -> None:
        constraints = constraints_of(pod, hard=True)
        keys = [entry["topologyKey"] for entry in constraints]
        nodes = [node for node in store.each("nodes") if all(key in labels_of(node) for key in keys)]
        self._tallies = [_tally(pod, entry, nodes, placed) for entry in constraints]

    def refusal(self, node: Obj) -> str | None:
        """Return the reason against this node."""
        labels = labels_of(node)
        for tally in self._tallies:
            if tally.key not in labels:
                return _NO_LABEL
            if tally.skews(labels[tally.key]):
                return _SKEWED
        return None


def _tally(pod: Obj, constraint: Obj, nodes: list[Obj], placed: Placed) -> _Tally:
    query, key = spread_query(pod, constraint), constraint["topologyKey"]
    there = placed.on_nodes([query], leaving=False)
    counts: dict[str, int] = {}
    for node in nodes:
        if _is_counted(pod, constraint, node):
            domain = labels_of(node)[key]
            counts[domain] = counts.get(domain, 0) + there.get(name_of(node), 0)
    enough = len(counts) >= int(constraint.get("minDomains") or 1)
    return _Tally(
        key=key,
        max_skew=int(constraint.get("maxSkew", 1)),
        counts=counts,
        least=min(counts.values(), default=0) if enough else 0,
        itself=int(query.matches(namespace_of(pod) or "", labels_of(pod))),
    )


def _is_counted(pod: Obj, constraint: Obj, node: Obj) -> bool:
    """Return whether the node's domain counts: nodeAffinityPolicy defaults to Honor and nodeTaintsPolicy to Ignore."""
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not matches_node(pod, node):
        return False
    honours_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
    return not honours_taints or blocking_taint(tolerations_of(pod), node) is None
