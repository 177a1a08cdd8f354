"""Pods reduced to the fields that decide where they can run. Pods of one template share `Needs` and `PodIdentity`.

Requests are added up as kube-scheduler's NodeResourcesFit does; the host ports that a pod takes are read as NodePorts
does."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.model.pod import FINISHED, Owner, Toleration, controller_of, toleration
from leeward.model.pod_limits import beyond_limit, keeps_others_away, not_judged, without_rules
from leeward.model.quantity import CPU, MEMORY, PODS, amounts, total
from leeward.model.raw_fields import mapping, mappings, metadata_of, number, text, texts
from leeward.scheduling.malformed import UNREADABLE, malformed
from leeward.scheduling.pod_affinity import (
    Asker,
    Namespaces,
    PodTerm,
    SpreadConstraint,
    preferred_terms,
    required_terms,
    spread_constraints,
)
from leeward.scheduling.selectors import ANY_NODE, LabelRequirement, NodeChoice, PreferredNodes, preferred_nodes
from leeward.scheduling.volumes import NO_VOLUMES, Storage, VolumeNeeds

ANY_ADDRESS = "0.0.0.0"
_OF_PODS = (CPU, MEMORY)  # resources that `spec.resources` may set, with huge pages
NO_STORAGE = Storage(claims={}, volumes={}, classes={})
_ASKING = (
    "affinity",
    "hostNetwork",
    "nodeSelector",
    "overhead",
    "resources",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
)
# added to its pods by the DaemonSet controller (util.AddOrUpdateDaemonPodTolerations)
_DAEMON_EFFECTS = {
    "not-ready": "NoExecute",
    "unreachable": "NoExecute",
    "disk-pressure": "NoSchedule",
    "memory-pressure": "NoSchedule",
    "pid-pressure": "NoSchedule",
    "unschedulable": "NoSchedule",
}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class HostPort:
    """Port of the node. Two clash when port and protocol agree and one address is the other's or every address."""

    port: int
    protocol: str = "TCP"
    address: str = ANY_ADDRESS


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return the requests by resource, with one of `pods`. Source: component-helpers' resource.PodRequests (KEP 753,
    2837, 688).

    Containers and sidecars (init containers with restartPolicy Always) are summed; an ordinary init container runs
    beside the sidecars started before it, and the largest such moment counts; requests of the pod itself replace the
    sum; the overhead is added. Raises InvalidInputError for a malformed quantity.
    """
    running, sidecars = total(map(_requests, spec.get("containers") or ())), dict[str, int]()
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        wanted = total((_requests(container), sidecars))
        if container.get("restartPolicy") == "Always":
            running, sidecars = total((running, _requests(container))), wanted
        _raise_to(peak, wanted)
    _raise_to(running, peak)
    of_pod = amounts((spec.get("resources") or {}).get("requests"))
    running.update({name: value for name, value in of_pod.items() if _of_pod(name)})
    return {name: value for name, value in total((running, amounts(spec.get("overhead")))).items() if value} | {PODS: 1}


def as_held(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec with the requests that a running pod holds while it is resized in place: the largest of what it
    asks for, what the kubelet has allocated and what the container has; without the first where the resize is
    infeasible. Source: component-helpers' PodRequests with UseStatusResources (KEP 1287). Most specs are returned as
    they are.
    """
    parts = [(part, f"{part.removesuffix('s')}Statuses") for part in ("containers", "initContainers")]
    known = {one.get("name"): one for _, name in parts for one in status.get(name) or () if one.get("resources")}
    if not known or all(_is_settled(one, known) for part, _ in parts for one in spec.get(part) or ()):
        return spec
    infeasible = any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in status.get("conditions") or ()
    )
    for part, _ in parts:
        held = [_held(one, known.get(one.get("name")), infeasible=infeasible) for one in spec.get(part) or ()]
        spec = {**spec, part: held}
    return spec


def _is_settled(container: Mapping[str, Any], known: Mapping[Any, Any]) -> bool:
    asked, one = (container.get("resources") or {}).get("requests"), known.get(container.get("name"))
    return one is None or all(
        not has or has == asked for has in (one["resources"].get("requests"), one.get("allocatedResources"))
    )


def _held(container: Mapping[str, Any], status: Mapping[str, Any] | None, *, infeasible: bool) -> Mapping[str, Any]:
    if status is None:
        return container
    resources, most = container.get("resources") or {}, dict[str, Any]()
    asked = None if infeasible else resources.get("requests")
    for part in (asked, status["resources"].get("requests"), status.get("allocatedResources")):
        for name, quantity in (part or {}).items():
            if name not in most or amounts({name: quantity})[name] > amounts({name: most[name]})[name]:
                most[name] = quantity
    return {**container, "resources": {**resources, "requests": most}}


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    """Return the requests of a container. A limit without a request is the request: the API server writes it so into
    pods, not into templates.
    """
    resources = container.get("resources") or {}
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}


def _raise_to(target: dict[str, int], least: Mapping[str, int]) -> None:
    for name, value in least.items():
        target[name] = max(target.get(name, 0), value)


def _of_pod(name: str) -> bool:
    return name in _OF_PODS or name.startswith("hugepages-")


def host_ports(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """Return the ports of NodePorts: `hostPort` of containers and sidecars; with hostNetwork, every container port."""
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    found = {port for one in (*(spec.get("containers") or ()), *sidecars) for port in _ports(one, spec)}
    return tuple(sorted(found))


def _ports(container: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterable[HostPort]:
    for raw in container.get("ports") or ():
        port = raw.get("hostPort") or (raw["containerPort"] if spec.get("hostNetwork") else 0)
        if port:
            protocol, address = raw.get("protocol") or "TCP", raw.get("hostIP") or ANY_ADDRESS
            yield HostPort(port=int(port), protocol=protocol, address=address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Requirements of a pod for a node. `requests`: (resource, amount), with one of `pods`, sorted. `gates`: the gates
    it waits for before it is scheduled at all (SchedulingGates). `beyond_limit`: why it is not placed: a list beyond
    the limits of planning (`pod_limits`), whose rules are then not read, and with `closes_node` may keep other pods off
    its node; or rules that planning does not know (`not_judged`). Empty where it can be placed.
    `platform`: operating system and architecture that a plan keeps (`snapshot.gather`); kube-scheduler asks neither.
    """

    requests: tuple[tuple[str, int], ...]
    ports: tuple[HostPort, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    nodes: NodeChoice = ANY_NODE
    platform: tuple[LabelRequirement, ...] = ()
    volumes: VolumeNeeds = NO_VOLUMES
    near: tuple[PodTerm, ...] = ()
    away: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    gates: tuple[str, ...] = ()
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    preferred_near: tuple[PodTerm, ...] = ()
    preferred_away: tuple[PodTerm, ...] = ()
    beyond_limit: str = ""
    closes_node: bool = False

    @property
    def never_placed(self) -> str:
        """Reason why no node is chosen for such a pod, empty where one can be."""
        return f"a pod with {self.beyond_limit}" if self.beyond_limit else ""

    def asked(self, resource: str) -> int:
        """Return the requested amount of one resource."""
        return dict(self.requests).get(resource, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodIdentity:
    """Properties that other pods' rules depend on. `leaving`: it is being deleted, so spread constraints ignore it."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()
    leaving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodSpec:
    """One pod, compared by identity, not by equal fields. `node`: where it runs, empty while it is pending."""

    namespace: str
    name: str
    needs: Needs
    identity: PodIdentity
    order: tuple[int, int, int, str, str]  # whatever the input's is: priority, cpu and memory falling, then names
    node: str = ""
    owner: Owner | None = None
    mirror: bool = False
    created: str = ""  # RFC 3339 in UTC, so that the text sorts by time

    @property
    def queued(self) -> tuple[int, str, str, str]:
        """Sort key of kube-scheduler's queue (PrioritySort), the first comes first: priority, then age, then names."""
        return self.order[0], self.created, self.namespace, self.name

    @property
    def key(self) -> str:
        """Key `namespace/name` of the pod."""
        return f"{self.namespace}/{self.name}"

    @property
    def stays(self) -> bool:
        """True if it ends with its node and is not placed again: daemon pods, static pods, pods being deleted."""
        return self.mirror or self.identity.leaving or (self.owner is not None and self.owner.kind == "DaemonSet")

    def renamed(self, name: str) -> "PodSpec":
        """Return another pod with the same needs."""
        return replace(self, name=name, order=(*self.order[:4], name))


class PodReader:
    """Reader of raw pods into PodSpecs. Common parts of pods are kept once, which makes placing them fast.

    `namespaces`: labels by name, for namespaceSelector; `storage`: volumes that claims are bound to.
    """

    def __init__(self, *, namespaces: Namespaces | None = None, storage: Storage = NO_STORAGE) -> None:
        self._namespaces = namespaces or {}
        self._storage = storage
        self._needs: dict[Needs, Needs] = {}
        self._known: dict[tuple[PodIdentity | None, str, str, bool], Needs] = {}
        self._identities: dict[PodIdentity, PodIdentity] = {}

    def read(self, raw: Mapping[str, Any]) -> PodSpec:
        """Read one pod. Raises InvalidInputError, which names the pod, for input that its schema does not allow."""
        try:
            return self._read(raw)
        except UNREADABLE as error:
            raise malformed("pod", raw, error) from error

    def _read(self, raw: Mapping[str, Any]) -> PodSpec:
        meta = raw["metadata"]
        if not text(meta["name"]):
            raise InvalidInputError("metadata.name: found no text, expected a name")
        identity = self._identity(meta)
        spec = as_held(raw.get("spec") or {}, raw.get("status") or {})
        return _pod(raw, self._needs_of(raw, spec, identity), identity, -int(spec.get("priority") or 0))

    def unread(self, raw: Mapping[str, Any], error: InvalidInputError) -> PodSpec:
        """Return a pod that `read` refuses with this error, so that the others can be planned for: it counts as
        unmovable, and its node takes no other pods, as for a pod beyond the limits.
        """
        spec = mapping(raw.get("spec"))
        try:
            requests = pod_requests(without_rules(spec))
        except UNREADABLE:
            requests = {PODS: 1}
        what = f"a field that planning cannot read ({error})"
        needs = Needs(requests=tuple(sorted(requests.items())), beyond_limit=what, closes_node=True)
        return _pod(raw, needs, self._identity(metadata_of(raw, "pod")), -number(spec.get("priority")))

    def _identity(self, meta: Mapping[str, Any]) -> PodIdentity:
        labels, leaving = tuple(sorted(texts(meta.get("labels")).items())), bool(meta.get("deletionTimestamp"))
        identity = PodIdentity(namespace=text(meta.get("namespace"), "default"), labels=labels, leaving=leaving)
        return self._identities.setdefault(identity, identity)

    def read_all(self, pods: Iterable[Mapping[str, Any]]) -> list[PodSpec]:
        """Read the pods that have not finished: a finished pod holds nothing and counts nowhere."""
        return [self.read(raw) for raw in pods if (raw.get("status") or {}).get("phase") not in FINISHED]

    def daemon(self, raw: Mapping[str, Any]) -> PodSpec:
        """Return the pod that a raw DaemonSet runs on each node that accepts it, with the tolerations that it is given.

        Raises InvalidInputError, which names the DaemonSet.
        """
        try:
            return self._read(_daemon_pod(raw))
        except UNREADABLE as error:
            raise malformed("DaemonSet", raw, error) from error

    def _needs_of(self, raw: Mapping[str, Any], spec: Mapping[str, Any], identity: PodIdentity) -> Needs:
        """Return the needs of a pod. Pods whose specs are equal, apart from volumes, are read once; those with rules
        about other pods must have the same identity too.
        """
        beyond = beyond_limit(spec)
        closes = bool(beyond) and keeps_others_away(spec)
        if beyond:  # before the long list is written out as a key
            spec = without_rules(spec)
        else:  # its rules are read: they count for its neighbours, and a daemon pod stays with its node
            beyond = "" if _of_daemon_set(raw) else not_judged(spec)
        about_pods = spec.get("affinity") or spec.get("topologySpreadConstraints")
        key = identity if about_pods else None, _asked(spec), beyond, closes
        found = self._known.get(key)
        if found is None:
            found = self._parsed(spec, identity)
            found = self._known[key] = replace(found, beyond_limit=beyond, closes_node=closes) if beyond else found
        volumes = self._storage.needs(raw)
        if volumes is NO_VOLUMES:
            return found
        bound = replace(found, volumes=volumes)
        return self._needs.setdefault(bound, bound)

    def _parsed(self, spec: Mapping[str, Any], identity: PodIdentity) -> Needs:
        """Parse the needs without the volumes."""
        asker = Asker(namespace=identity.namespace, labels=dict(identity.labels), namespaces=self._namespaces)
        needs = Needs(
            requests=tuple(sorted(pod_requests(spec).items())),
            ports=host_ports(spec),
            tolerations=tuple(toleration(one) for one in spec.get("tolerations") or ()),
            nodes=NodeChoice.from_json(spec),
            spread=spread_constraints(spec, asker),
            gates=tuple(sorted(gate["name"] for gate in spec.get("schedulingGates") or ())),
            preferred_nodes=preferred_nodes(spec),
        )
        if spec.get("affinity"):
            needs = _about_pods(needs, spec, asker)
        return self._needs.setdefault(needs, needs)


def _pod(raw: Mapping[str, Any], needs: Needs, identity: PodIdentity, rank: int) -> PodSpec:
    meta, name = raw["metadata"], raw["metadata"]["name"]
    return PodSpec(
        namespace=identity.namespace,
        name=name,
        needs=needs,
        identity=identity,
        order=(rank, -needs.asked(CPU), -needs.asked(MEMORY), identity.namespace, name),
        node=text(mapping(raw.get("spec")).get("nodeName")),
        owner=controller_of(mappings(meta.get("ownerReferences"))),
        mirror=well_known.MIRROR_POD in texts(meta.get("annotations")),
        created=text(meta.get("creationTimestamp")),
    )


def _of_daemon_set(raw: Mapping[str, Any]) -> bool:
    owner = controller_of(mappings(raw["metadata"].get("ownerReferences")))
    return owner is not None and owner.kind == "DaemonSet"


def _asked(spec: Mapping[str, Any]) -> str:
    """Return every input of `Needs`, except volumes, as text."""
    asked = [spec.get(part) for part in _ASKING]
    for part in ("containers", "initContainers"):
        asked.append([(c.get("ports"), c.get("resources"), c.get("restartPolicy")) for c in spec.get(part) or ()])
    return repr(asked)


def _about_pods(needs: Needs, spec: Mapping[str, Any], asker: Asker) -> Needs:
    near, away = "podAffinity", "podAntiAffinity"
    return replace(
        needs,
        near=required_terms(spec, near, asker),
        away=required_terms(spec, away, asker),
        preferred_near=preferred_terms(spec, near, asker),
        preferred_away=preferred_terms(spec, away, asker),
    )


def _daemon_pod(raw: Mapping[str, Any]) -> dict[str, Any]:
    meta, template = raw["metadata"], raw["spec"]["template"]
    spec = template.get("spec") or {}
    effects = {**_DAEMON_EFFECTS, **({"network-unavailable": "NoSchedule"} if spec.get("hostNetwork") else {})}
    added = [{"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": effects[k]} for k in effects]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": meta["name"], "controller": True}
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": meta.get("namespace", "default"),
            "labels": (template.get("metadata") or {}).get("labels") or {},
            "ownerReferences": [owner],
        },
        "spec": {**spec, "tolerations": [*(spec.get("tolerations") or ()), *added]},
    }
