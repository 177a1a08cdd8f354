"""InterPodAffinity: required pod affinity and anti-affinity, and the anti-affinity of pods already placed.

Rules: `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`. Pods that are being deleted still count; pods
that have finished do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from local.cluster.encoding import encoded
from local.cluster.objects import Obj, labels_of, name_of, namespace_of, node_of
from local.cluster.selectors import label_selector_matches
from local.cluster.store import Store

from .placed import Placed, PodQuery

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_COMPANY = "node(s) didn't match pod affinity rules"
_AVOIDED = "node(s) didn't match pod anti-affinity rules"
_REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"

Domains = tuple[str, set[str]]  # topology key, values of it


def required_terms(pod: Obj, kind: str) -> list[Obj]:
    """Return the required terms of `podAffinity` or `podAntiAffinity`."""
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or []


def selector_for(pod: Obj, rule: Obj) -> Obj | None:
    """Return the rule's labelSelector with its matchLabelKeys and mismatchLabelKeys, which are replaced by the pod's
    own values.
    """
    selector: Obj | None = rule.get("labelSelector")
    added = [
        {"key": key, "operator": operator, "values": [labels_of(pod)[key]]}
        for field_name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in rule.get(field_name) or []
        if key in labels_of(pod)
    ]
    if not added or selector is None:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or []), *added]}


def query_for(pod: Obj, term: Obj, store: Store) -> PodQuery:
    """Return the query of the pods that a term of this pod selects: its own namespace unless the term names or selects
    others.
    """
    selector, named = term.get("namespaceSelector"), term.get("namespaces") or []
    namespaces: frozenset[str] | None
    if selector is None:
        namespaces = frozenset(named or [namespace_of(pod) or ""])
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        namespaces = None
    else:
        spaces = (name_of(s) for s in store.each("namespaces") if label_selector_matches(selector, labels_of(s)))
        namespaces = frozenset([*named, *spaces])
    return PodQuery(selector=selector_for(pod, term), namespaces=namespaces)


def domains_of(nodes: Iterable[str], key: str, store: Store) -> set[str]:
    """Return the values of a topology key on these nodes; nodes that are deleted or lack it have none."""
    found = (store.find("nodes", name) for name in nodes)
    return {labels_of(node)[key] for node in found if node is not None and key in labels_of(node)}


@dataclass(slots=True, kw_only=True)
class _Repeller:
    """Anti-affinity term that several pods share, and the nodes that they are on."""

    pod: Obj
    term: Obj
    nodes: Counter[str] = field(default_factory=Counter)


class Repelling:
    """Required anti-affinity of placed pods; the replicas of a workload share each term."""

    def __init__(self) -> None:
        self._repellers: dict[bytes, _Repeller] = {}

    def __bool__(self) -> bool:
        return bool(self._repellers)

    def note(self, pod: Obj, sign: int) -> None:
        """Count an added (+1) or removed (-1) pod."""
        for term in required_terms(pod, "podAntiAffinity"):
            key = encoded([namespace_of(pod), term, selector_for(pod, term)])
            repeller = self._repellers.setdefault(key, _Repeller(pod=pod, term=term))
            node = str(node_of(pod))
            repeller.nodes[node] += sign
            if not repeller.nodes[node]:
                del repeller.nodes[node]
            if not repeller.nodes:
                del self._repellers[key]

    def against(self, pod: Obj, store: Store) -> list[Domains]:
        """Return the domains in which placed pods do not allow a pod like this one."""
        return [
            (repeller.term["topologyKey"], domains_of(repeller.nodes, repeller.term["topologyKey"], store))
            for repeller in self._repellers.values()
            if query_for(repeller.pod, repeller.term, store).matches(namespace_of(pod) or "", labels_of(pod))
        ]


class AffinityRules:
    """Affinity rules of one pod, counted once and checked for every node."""

    def __init__(self, pod: Obj, store: Store, placed: Placed, repelling: Repelling) -> None:
        self._repelled = repelling.against(pod, store)
        self._avoided = [
            _occupied([query_for(pod, term, store)], term["topologyKey"], store, placed)
            for term in required_terms(pod, "podAntiAffinity")
        ]
        terms = required_terms(pod, "podAffinity")
        # a placed pod counts only when it matches all terms
        queries = [query_for(pod, term, store) for term in terms]
        self._wanted = [_occupied(queries, term["topologyKey"], store, placed) for term in terms]
        itself = all(query.matches(namespace_of(pod) or "", labels_of(pod)) for query in queries)
        self._first = itself and not any(domains for _, domains in self._wanted)

    def __bool__(self) -> bool:
        """Return whether there is any rule to check."""
        return bool(self._wanted or self._avoided or self._repelled)

    def refusal(self, node: Obj) -> str | None:
        """Return the reason against this node; the first pod with affinity to its own kind fits wherever the keys
        exist.
        """
        labels = labels_of(node)
        for key, domains in self._wanted:
            if key not in labels or (labels[key] not in domains and not self._first):
                return _NO_COMPANY
        if _is_in(labels, self._avoided):
            return _AVOIDED
        return _REPELLED if _is_in(labels, self._repelled) else None


def _occupied(queries: list[PodQuery], key: str, store: Store, placed: Placed) -> Domains:
    return key, domains_of(placed.on_nodes(queries, leaving=True), key, store)


def _is_in(labels: dict[str, str], places: list[Domains]) -> bool:
    return any(labels.get(key) in domains for key, domains in places)
