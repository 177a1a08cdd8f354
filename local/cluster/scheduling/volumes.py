"""VolumeBinding and VolumeZone: a pod fits where its volumes are, and where its missing volumes can be made.

Rules: `pkg/scheduler/framework/plugins/volumebinding` and `volumezone`. Left out: binding to volumes that an
administrator has made in advance (only claims that name theirs), capacity of storage, limits of attached volumes.
"""

from __future__ import annotations

from local.cluster.objects import Obj, is_deleting, labels_of, namespace_of
from local.cluster.selectors import expression_matches
from local.cluster.store import Store
from local.cluster.volumes import ZONE, claim_names, class_of, volume_of, waits_for_consumer, zone_terms

from .feasibility import term_matches

_CONFLICT = "node(s) had volume node affinity conflict"
_NO_VOLUME = "node(s) did not find available persistent volumes to bind"
_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


class VolumeRules:
    """Volume rules of one pod. `problem`: reason that it fits on no node, if any. `unbound`: claims that need a volume
    on the chosen node.
    """

    def __init__(self, pod: Obj, store: Store) -> None:
        self.problem: str | None = None
        self.unbound: list[Obj] = []
        self._terms: list[list[Obj]] = []
        self._topologies: list[list[Obj]] = []
        for name in claim_names(pod):
            claim = store.find("persistentvolumeclaims", name, namespace_of(pod))
            if claim is None:
                self.problem = self.problem or f'persistentvolumeclaim "{name}" not found'
            elif is_deleting(claim):
                self.problem = self.problem or f'persistentvolumeclaim "{name}" is being deleted'
            else:
                self._add(claim, store)

    def _add(self, claim: Obj, store: Store) -> None:
        volume = volume_of(claim, store)
        if volume is not None:
            terms = zone_terms(volume)
            if terms is not None:
                self._terms.append(terms)
            return
        storage_class = class_of(claim, store)
        if storage_class is None or not waits_for_consumer(storage_class):
            self.problem = self.problem or _UNBOUND
            return
        self.unbound.append(claim)
        self._topologies.append(storage_class.get("allowedTopologies") or [])

    def refusal(self, node: Obj) -> str | None:
        """Return the reason against this node."""
        for terms in self._terms:
            if not any(term_matches(term, node) for term in terms):
                return _CONFLICT
        for topologies in self._topologies:
            if ZONE not in labels_of(node) or not _is_allowed(topologies, node):
                return _NO_VOLUME
        return None


def _is_allowed(topologies: list[Obj], node: Obj) -> bool:
    """Return whether the class allows the node: without allowedTopologies always, else if one of its terms matches."""
    if not topologies:
        return True
    return any(
        all(expression_matches({**entry, "operator": "In"}, labels_of(node)) for entry in term["matchLabelExpressions"])
        for term in topologies
    )
