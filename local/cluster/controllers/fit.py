"""Whether a pod fits on a node, in the words of kube-scheduler's filter plugins.

Filters: node name, cordon, taints, node selector and affinity, resources, volume zone. Topology spread and pod
(anti-)affinity are in `spread`. Scoring and the rest (ports, volumes per node) are left out.
"""

from __future__ import annotations

from local.cluster.objects import Obj, labels_of, name_of, namespace_of
from local.cluster.quantities import resource_list
from local.cluster.selectors import expression_matches
from local.cluster.store import Store

from .taints import UNSCHEDULABLE, blocking_taint, tolerated, tolerations_of

_ZONE = "topology.kubernetes.io/zone"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"


def node_affinity_terms(pod: Obj) -> list[Obj] | None:
    """The required node selector terms, None when there are none (an empty list matches nothing)."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or []


def term_matches(term: Obj, node: Obj) -> bool:
    """One node selector term; an empty one matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    named = {"metadata.name": name_of(node)}
    return all(expression_matches(entry, labels_of(node)) for entry in expressions) and all(
        expression_matches(entry, named) for entry in fields
    )


def matches_node(pod: Obj, node: Obj) -> bool:
    """nodeSelector and required node affinity."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    terms = node_affinity_terms(pod)
    return terms is None or any(term_matches(term, node) for term in terms)


def only_node(pod: Obj) -> str | None:
    """The one node that the affinity names by `metadata.name`, as daemon pods have it."""
    terms = node_affinity_terms(pod)
    fields = terms[0].get("matchFields") if terms and len(terms) == 1 else None
    if fields and fields[0].get("operator") == "In" and len(fields[0].get("values") or []) == 1:
        return str(fields[0]["values"][0])
    return None


def refusal(pod: Obj, node: Obj, requests: dict[str, int], free: dict[str, int]) -> str | None:
    """Why the pod does not fit on this node, None when it does; `free` as `requests` in thousandths."""
    tolerations = tolerations_of(pod)
    cordon = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
    if node.get("spec", {}).get("unschedulable") and not tolerated(tolerations, cordon):
        return "node(s) were unschedulable"
    taint = blocking_taint(tolerations, node)
    if taint is not None:
        return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value') or ''}}}"
    if not matches_node(pod, node):
        return _AFFINITY
    return _short_of(requests, free)


def _short_of(requests: dict[str, int], free: dict[str, int]) -> str | None:
    for name, amount in requests.items():
        if amount and amount > free.get(name, 0):
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return None


def allocatable_of(node: Obj) -> dict[str, int]:
    status = node.get("status") or {}
    return resource_list(status.get("allocatable") or status.get("capacity"))


def volume_terms(pod: Obj, store: Store) -> list[list[Obj]]:
    """The node selector terms of each persistent volume that the pod's claims are bound to; every list must match."""
    found = []
    for volume in pod["spec"].get("volumes") or []:
        claim_name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        claim = store.find("persistentvolumeclaims", claim_name, namespace_of(pod)) if claim_name else None
        pv = store.find("persistentvolumes", ((claim or {}).get("spec") or {}).get("volumeName") or "")
        if pv is None:
            continue
        required = (pv["spec"].get("nodeAffinity") or {}).get("required")
        if required is not None:
            found.append(required.get("nodeSelectorTerms") or [])
        elif _ZONE in labels_of(pv):
            expression = {"key": _ZONE, "operator": "In", "values": labels_of(pv)[_ZONE].split("__")}
            found.append([{"matchExpressions": [expression]}])
    return found


def missing_claim(pod: Obj, store: Store) -> str | None:
    """The first claim that does not exist: the pod cannot be scheduled anywhere."""
    for volume in pod["spec"].get("volumes") or []:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if name and store.find("persistentvolumeclaims", name, namespace_of(pod)) is None:
            return str(name)
    return None
