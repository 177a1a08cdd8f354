"""DynamicResources and NodeDeclaredFeatures: a pod fits where its claims are allocated, and where the node's kubelet
declares what the pod needs of it.

Rules: `pkg/scheduler/framework/plugins/dynamicresources` and `nodedeclaredfeatures`. Left out: allocation. There is no
driver here, so a claim without an allocation is allocated on no node; nothing makes claims of a template, and nothing
reserves an allocated claim for its pods. kube-scheduler says nothing of a pod whose claim does not exist yet; here its
reason is the pod's condition.
"""

from __future__ import annotations

from local.cluster.nodes import RESTARTS_ALL
from local.cluster.objects import Obj, controller_of, is_deleting, namespace_of, path_name, uid_of
from local.cluster.store import Store

from .feasibility import term_matches

_NO_DEVICE = "cannot allocate all claims"
_ELSEWHERE = "resourceclaim not available on the node"
_UNDECLARED = "node(s) didn't match Pod's required features"


class ClaimRules:
    """Resource claims of one pod. `problem`: reason that it fits on no node, if any."""

    def __init__(self, pod: Obj, store: Store) -> None:
        self.problem: str | None = None
        self._unallocated = False
        self._terms: list[list[Obj]] = []
        for reference in pod["spec"].get("resourceClaims") or []:
            self.problem = self.problem or self._add(pod, reference, store)

    def _add(self, pod: Obj, reference: Obj, store: Store) -> str | None:
        """Add one claim. Return the reason that it keeps the pod from every node."""
        name = reference.get("resourceClaimName")
        if name is None:
            statuses = pod["status"].get("resourceClaimStatuses") or []
            made = next((one for one in statuses if one.get("name") == reference["name"]), None)
            if made is None:
                return f'pod "{path_name(pod)}": ResourceClaim not created yet'
            name = made.get("resourceClaimName")
            if name is None:  # its controller has decided that the pod needs none
                return None
        claim = store.find("resourceclaims", name, namespace_of(pod))
        if claim is None:
            return f'could not find resourceclaim "{namespace_of(pod)}/{name}"'
        if is_deleting(claim):
            return f'resourceclaim "{name}" is being deleted'
        if "resourceClaimName" not in reference and (controller_of(claim) or {}).get("uid") != uid_of(pod):
            return f"ResourceClaim {path_name(claim)} was not created for pod {path_name(pod)} (pod is not owner)"
        allocation = (claim.get("status") or {}).get("allocation")
        if allocation is None:
            self._unallocated = True
        elif allocation.get("nodeSelector"):
            self._terms.append(allocation["nodeSelector"].get("nodeSelectorTerms") or [])
        return None

    def refusal(self, node: Obj) -> str | None:
        """Return the reason against this node."""
        if self._unallocated:
            return _NO_DEVICE
        fits = all(any(term_matches(term, node) for term in terms) for terms in self._terms)
        return None if fits else _ELSEWHERE


class FeatureRules:
    """Features that the pod needs of its node's kubelet."""

    def refusal(self, node: Obj) -> str | None:
        """Return the reason against this node."""
        declared = (node.get("status") or {}).get("declaredFeatures") or []
        return None if RESTARTS_ALL in declared else _UNDECLARED


def restarts_all(pod: Obj) -> bool:
    """Return whether the exit of a container may restart all containers of the pod."""
    spec = pod["spec"]
    return any(
        rule.get("action") == "RestartAllContainers"
        for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
        for rule in container.get("restartPolicyRules") or []
    )
