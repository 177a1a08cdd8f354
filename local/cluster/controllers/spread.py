"""Topology spread constraints and required pod (anti-)affinity, including the anti-affinity of pods already there."""

from __future__ import annotations

from local.cluster.objects import Obj, is_deleting, is_finished, labels_of, namespace_of, node_of
from local.cluster.selectors import label_selector_matches
from local.cluster.store import Store

from .fit import matches_node

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _terms(pod: Obj, kind: str) -> list[Obj]:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or []


class SpreadRules:
    """The rules that one pod's placement is under, counted once and asked for every node."""

    def __init__(self, pod: Obj, store: Store, anti_affine: list[Obj]) -> None:
        self._pod = pod
        self._store = store
        constraints = pod["spec"].get("topologySpreadConstraints") or []
        hard = [entry for entry in constraints if entry.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"]
        affinity, anti = _terms(pod, "podAffinity"), _terms(pod, "podAntiAffinity")
        self._spread = [self._counts(entry) for entry in hard]
        self._wanted = [self._affinity(term) for term in affinity]
        self._avoided = [(term["topologyKey"], self._domains(term)) for term in anti]
        self._avoided += self._unwelcome(anti_affine)

    def refusal(self, node: Obj) -> str | None:
        labels = labels_of(node)
        for key, domains, free in self._wanted:
            if key not in labels or (labels[key] not in domains and not free):
                return "node(s) didn't match pod affinity rules"
        for key, domains in self._avoided:
            if labels.get(key) in domains:
                return "node(s) didn't match pod anti-affinity rules"
        for key, skew, counts in self._spread:
            if key not in labels:
                return "node(s) didn't match pod topology spread constraints (missing required label)"
            if counts.get(labels[key], 0) + 1 - min(counts.values(), default=0) > skew:
                return "node(s) didn't match pod topology spread constraints"
        return None

    def _placed(self, selector: Obj | None, namespaces: list[str]) -> list[Obj]:
        return [
            pod
            for pod in self._store.each("pods")
            if node_of(pod)
            and namespace_of(pod) in namespaces
            and not is_deleting(pod)
            and not is_finished(pod)
            and label_selector_matches(selector, labels_of(pod))
        ]

    def _namespaces(self, term: Obj) -> list[str]:
        return term.get("namespaces") or [namespace_of(self._pod) or ""]

    def _domain(self, pod: Obj, key: str) -> str | None:
        node = self._store.find("nodes", node_of(pod) or "")
        return labels_of(node).get(key) if node is not None else None

    def _domains(self, term: Obj) -> set[str | None]:
        key = term["topologyKey"]
        placed = self._placed(term.get("labelSelector"), self._namespaces(term))
        return {self._domain(pod, key) for pod in placed} - {None}

    def _affinity(self, term: Obj) -> tuple[str, set[str | None], bool]:
        """The last value: nobody is there yet and the pod itself matches, so the first one may go anywhere."""
        domains = self._domains(term)
        itself = label_selector_matches(term.get("labelSelector"), labels_of(self._pod))
        return term["topologyKey"], domains, not domains and itself

    def _counts(self, constraint: Obj) -> tuple[str, int, dict[str, int]]:
        key = constraint["topologyKey"]
        counts = {
            labels_of(node)[key]: 0
            for node in self._store.each("nodes")
            if key in labels_of(node) and matches_node(self._pod, node)
        }
        for pod in self._placed(constraint.get("labelSelector"), [namespace_of(self._pod) or ""]):
            domain = self._domain(pod, key)
            if domain in counts:
                counts[domain] += 1
        return key, int(constraint.get("maxSkew", 1)), counts

    def _unwelcome(self, anti_affine: list[Obj]) -> list[tuple[str, set[str | None]]]:
        """Domains that pods already placed keep free of pods like this one."""
        found: list[tuple[str, set[str | None]]] = []
        for other in anti_affine:
            for term in _terms(other, "podAntiAffinity"):
                namespaces = term.get("namespaces") or [namespace_of(other)]
                if namespace_of(self._pod) not in namespaces:
                    continue
                if label_selector_matches(term.get("labelSelector"), labels_of(self._pod)):
                    found.append((term["topologyKey"], {self._domain(other, term["topologyKey"])} - {None}))
        return found


def has_anti_affinity(pod: Obj) -> bool:
    return bool(_terms(pod, "podAntiAffinity"))


def needs_counting(pod: Obj) -> bool:
    """Whether the pod itself brings rules about other pods."""
    return bool(pod["spec"].get("topologySpreadConstraints") or _terms(pod, "podAffinity") or has_anti_affinity(pod))
