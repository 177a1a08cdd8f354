"""Pods that planning does not place: those beyond a limit, and those with rules that planning does not know.

The author of a pod chooses its lists, and the API server bounds only the size of the whole object (some 1.5 MiB): a few
pods with thousands of terms would otherwise use up the time of every plan of the cluster. Each limit is several times
what manifests in use have.

Such a pod counts as unmovable for plans, with a reason that names the limit or the rule: "it fits" would be a guess,
and the pod would stay pending. Evictions do not ask: an interruption, a termination or an upgrade drains it like any
other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

# Charts of applications have one to four terms: own replicas apart by host and by zone, near a cache. Each term is
# counted for every pod that it may mean, so this is the most expensive list.
POD_AFFINITY_TERMS = 32
# Of the preferred ones, those that plans follow, the heaviest of each kind: a preference may be left out, a rule not.
PREFERRED_TERMS = 8
# Alternatives of a node: one to ten (capacity type, architecture, instance families).
NODE_AFFINITY_TERMS = 64
# Two come from the API server, up to eight more from the DaemonSet controller, a few name dedicated nodes.
TOLERATIONS = 64
# One for hosts and one for zones; each is counted for every pod that it may mean.
SPREAD_CONSTRAINTS = 8
# Ingress controllers and agents take one to five. A media server that lists a range port by port is beyond it.
HOST_PORTS = 64
# cpu, memory, ephemeral storage, huge pages, accelerators, network interfaces.
RESOURCES = 32
# Lines of all selectors and terms together, those of `nodeSelector` included: about two for each term.
REQUIREMENTS = 512
# Values and namespaces listed in them: a list of all instance types of EC2 has about 1,000.
VALUES = 4_096

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
POD_AFFINITY = ("podAntiAffinity", "podAffinity")
_RULES = ("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints")
_CONTAINERS = ("containers", "initContainers")
_AMOUNTS = ("requests", "limits")
_KEPT_RESOURCES = ("cpu", "memory")
_READ = "that planning reads"
RESOURCE_CLAIMS = "resource claims (DRA), and planning does not know which nodes have the devices"
POD_GROUP = "a pod group, and the eviction of one member may cost the others"
RESTART_RULES = "a rule that restarts all containers (RestartAllContainers), and planning does not know which nodes can"
_GROUPS = ("schedulingGroup", "workloadRef")  # since Kubernetes 1.36, and its name in 1.35


def beyond_limit(spec: Mapping[str, Any]) -> str:
    """Return which list of a raw pod `spec` is beyond its limit, empty where none is. A list of another type than its
    schema allows counts as empty here: its reader names the error.
    """
    with suppress(TypeError, AttributeError):
        if _is_plain(spec):
            return ""
    for what, count, limit in _counts(spec):
        if count > limit:
            return f"{count:,} {what}, more than the {limit:,} {_READ}"
    return ""


def is_list(reason: str) -> bool:
    """Return whether the reason for which no plan moves a pod is a list that its author can shorten."""
    return reason.endswith(_READ)


def keeps_others_away(spec: Mapping[str, Any]) -> bool:
    """Return whether the pod may keep other pods off its node: required anti-affinity, or host ports."""
    away = _mapping(_mapping(spec.get("affinity")).get(POD_AFFINITY[0])).get(REQUIRED)
    return bool(away) or bool(_host_ports(spec))


def without_rules(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with its requests of cpu and memory alone: what planning still reads of a pod beyond a limit."""
    rest = {name: value for name, value in spec.items() if name not in _RULES}
    for name in _CONTAINERS:
        rest[name] = [_bare(_mapping(one)) for one in _sequence(spec.get(name))]
    return _bare(rest)


def _bare(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a container, or the spec itself, without host ports and further resources."""
    amounts = {kind: _mapping(_mapping(part.get("resources")).get(kind)) for kind in _AMOUNTS}
    resources = {kind: {name: of[name] for name in _KEPT_RESOURCES if name in of} for kind, of in amounts.items()}
    return {name: value for name, value in part.items() if name != "ports"} | {"resources": resources}


def _is_plain(spec: Mapping[str, Any]) -> bool:
    """Return whether a glance shows that every list is short, as of most pods: this runs for each pod of the cluster.

    Raises TypeError or AttributeError for a list of another type.
    """
    if "affinity" in spec or "topologySpreadConstraints" in spec or "nodeSelector" in spec or "initContainers" in spec:
        return False
    if len(spec.get("tolerations") or ()) > TOLERATIONS:
        return False
    containers = spec.get("containers") or ()
    if not isinstance(containers, list) or len(containers) > 1 or spec.get("resources"):
        return False
    for one in containers:
        amounts = one.get("resources") or {}
        if (
            len(one.get("ports") or ()) > HOST_PORTS
            or sum(len(amounts.get(kind) or ()) for kind in _AMOUNTS) > RESOURCES
        ):
            return False
    return True


def _counts(spec: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Yield (list, its length, its limit), the cheapest first: lines are counted only where all lists are short."""
    affinity = _mapping(spec.get("affinity"))
    pods = [term for kind in POD_AFFINITY for term in _terms(_mapping(affinity.get(kind)))]
    node = _mapping(affinity.get("nodeAffinity"))
    nodes = [_mapping(one) for one in _sequence(_mapping(node.get(REQUIRED)).get("nodeSelectorTerms"))]
    nodes += [_mapping(_mapping(one).get("preference")) for one in _sequence(node.get(PREFERRED))]
    spread = [_mapping(one) for one in _sequence(spec.get("topologySpreadConstraints"))]
    yield "pod affinity terms", len(pods), POD_AFFINITY_TERMS
    yield "node affinity terms", len(nodes), NODE_AFFINITY_TERMS
    yield "tolerations", len(_sequence(spec.get("tolerations"))), TOLERATIONS
    yield "topology spread constraints", len(spread), SPREAD_CONSTRAINTS
    yield "host ports", len(_host_ports(spec)), HOST_PORTS
    yield "resources", len(_resources(spec)), RESOURCES
    lines, values = len(_mapping(spec.get("nodeSelector"))), 0
    selectors = [_mapping(term.get(name)) for term in pods for name in ("labelSelector", "namespaceSelector")]
    for selector in (*selectors, *(_mapping(one.get("labelSelector")) for one in spread)):
        more = _of_lines(_sequence(selector.get("matchExpressions")))
        lines, values = lines + more[0] + len(_mapping(selector.get("matchLabels"))), values + more[1]
    values += sum(len(_sequence(term.get("namespaces"))) for term in pods)
    for term in nodes:
        for name in ("matchExpressions", "matchFields"):
            more = _of_lines(_sequence(term.get(name)))
            lines, values = lines + more[0], values + more[1]
    yield "label requirements", lines, REQUIREMENTS
    yield "label values", values, VALUES


def _terms(affinity: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    preferred = (_mapping(one).get("podAffinityTerm") for one in _sequence(affinity.get(PREFERRED)))
    return [_mapping(term) for term in (*_sequence(affinity.get(REQUIRED)), *preferred)]


def _of_lines(expressions: Iterable[Any]) -> tuple[int, int]:
    counts = [len(_sequence(_mapping(one).get("values"))) for one in expressions]
    return len(counts), sum(counts)


def _host_ports(spec: Mapping[str, Any]) -> Sequence[Any]:
    """Return the ports that the pod takes of its node: every port where it uses the node's network."""
    containers = [_mapping(one) for name in _CONTAINERS for one in _sequence(spec.get(name))]
    ports = [_mapping(port) for one in containers for port in _sequence(one.get("ports"))]
    return ports if spec.get("hostNetwork") else [port for port in ports if port.get("hostPort")]


def _resources(spec: Mapping[str, Any]) -> set[str]:
    holders = [spec, *(_mapping(one) for name in _CONTAINERS for one in _sequence(spec.get(name)))]
    parts = (_mapping(_mapping(one.get("resources")).get(kind)) for one in holders for kind in _AMOUNTS)
    return {name for part in parts for name in part}


def _mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _sequence(raw: Any) -> Sequence[Any]:
    return raw if isinstance(raw, list | tuple) else ()


def not_judged(spec: Mapping[str, Any]) -> str:
    """Return what a raw pod `spec` has that planning does not follow, empty where there is nothing."""
    if spec.get("resourceClaims"):
        return RESOURCE_CLAIMS
    if any(spec.get(name) is not None for name in _GROUPS):
        return POD_GROUP
    with suppress(TypeError, AttributeError):  # their reader names the error
        for part in ("containers", "initContainers"):
            for container in spec.get(part) or ():
                rules = container.get("restartPolicyRules") or ()
                if rules and any(rule.get("action") == "RestartAllContainers" for rule in rules):
                    return RESTART_RULES
    return ""
