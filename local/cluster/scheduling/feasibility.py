"""Feasibility of a pod on a node by itself, in the words of kube-scheduler's filter plugins.

NodeUnschedulable, TaintToleration, NodeAffinity, NodeResourcesFit and NodePorts. Rules that depend on other pods are in
`spread` and `affinity`, those that depend on volumes in `volumes`. NodeName needs no filter: such a pod has its node
already.
"""

from __future__ import annotations

from collections.abc import Collection

from local.cluster.objects import Obj, labels_of, name_of
from local.cluster.quantities import resource_list
from local.cluster.selectors import expression_matches

from .taints import UNSCHEDULABLE, blocking_taint, tolerated, tolerations_of

_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
_ANY_ADDRESS = "0.0.0.0"
_CORDON = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
CORDONED = "node(s) were unschedulable"

HostPort = tuple[str, str, int]  # address, protocol, port


def node_affinity_terms(pod: Obj) -> list[Obj] | None:
    """Return the required node selector terms, None when there are none (an empty list matches nothing)."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or []


def term_matches(term: Obj, node: Obj) -> bool:
    """Return whether one node selector term matches; an empty one matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    if not all(expression_matches(entry, labels_of(node)) for entry in expressions):
        return False
    return not fields or all(expression_matches(entry, {"metadata.name": name_of(node)}) for entry in fields)


def matches_node(pod: Obj, node: Obj) -> bool:
    """Check NodeAffinity: nodeSelector and required node affinity (`component-helpers` nodeaffinity)."""
    selector = pod["spec"].get("nodeSelector")
    if selector and any(labels_of(node).get(key) != value for key, value in selector.items()):
        return False
    terms = node_affinity_terms(pod)
    return terms is None or any(term_matches(term, node) for term in terms)


def only_node(pod: Obj) -> str | None:
    """Return the one node that the affinity names by `metadata.name`, as daemon pods have it."""
    terms = node_affinity_terms(pod)
    fields = terms[0].get("matchFields") if terms and len(terms) == 1 else None
    if fields and fields[0].get("operator") == "In" and len(fields[0].get("values") or []) == 1:
        return str(fields[0]["values"][0])
    return None


def heeds_cordons(pod: Obj) -> bool:
    """Return whether a cordon keeps the pod away (NodeUnschedulable), the same for every node."""
    return not tolerated(tolerations_of(pod), _CORDON)


def refusal(pod: Obj, node: Obj, requests: dict[str, int], free: dict[str, int]) -> str | None:
    """Return the reason that the pod does not fit on this node, None when it does; `free` as `requests` in
    thousandths.
    """
    tolerations = tolerations_of(pod)
    if node["spec"].get("unschedulable") and not tolerated(tolerations, _CORDON):
        return CORDONED
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
    """Return the amounts that pods may reserve on the node, in thousandths of each resource."""
    status = node.get("status") or {}
    return resource_list(status.get("allocatable") or status.get("capacity"))


def host_ports(pod: Obj) -> tuple[HostPort, ...]:
    """Return the ports of the node that the pod uses; with hostNetwork every container port is one."""
    spec = pod["spec"]
    found = []
    for container in spec.get("containers") or []:
        for port in container.get("ports") or []:
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else None)
            if number:
                found.append((port.get("hostIP") or _ANY_ADDRESS, port.get("protocol") or "TCP", int(number)))
    return tuple(found)


def ports_clash(wanted: tuple[HostPort, ...], taken: Collection[HostPort]) -> bool:
    """Return whether ports conflict (NodePorts): the same protocol and port, on one address or where either takes all
    addresses.
    """
    return any(
        (protocol, port) == (other_protocol, other_port) and (address == other or _ANY_ADDRESS in (address, other))
        for address, protocol, port in wanted
        for other, other_protocol, other_port in taken
    )
