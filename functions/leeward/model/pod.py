"""Pods, PodDisruptionBudgets and label selectors cut down to what decisions need, and the Deployment that decides
whether a lone pod of it can have a second before it leaves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Self

from leeward.model import well_known
from leeward.model.pod_limits import POD_AFFINITY, REQUIRED, TOLERATIONS, beyond_limit, not_judged
from leeward.model.raw_fields import instant, listed, mapping, mappings, metadata_of, number, text, texts

DEFAULT_GRACE_SECONDS = 30
LONGEST_GRACE_SECONDS = 10 * 365 * 86400  # the API has no bound: a time 2**63 s away is none that can be computed with
FINISHED = frozenset({"Succeeded", "Failed"})
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OF_ZONES = frozenset({*well_known.ZONE_KEYS, well_known.ZONE_ID_LABEL})
DRAIN_TAINTS = (UNSCHEDULABLE, well_known.DISRUPTED_TAINT)  # of a node that drains
TEMPLATE_HASH = "pod-template-hash"  # the Deployment controller labels its ReplicaSets' pods with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Controller of a pod."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """Toleration of a pod; empty key with Exists tolerates everything, empty effect matches every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Apply kube-scheduler's rule to one taint."""
        if self.effect and self.effect != effect:
            return False
        if self.operator == "Exists":
            return self.key in {"", key}
        return self.key == key and self.value == value


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """Pod object. `grace_seconds` is its own termination grace period, `node_terms` the raw nodeSelectorTerms that it
    requires of its node. `beyond_limit`: why no plan moves it: a list beyond the limits of planning
    (`pod_limits`), or rules that planning does not know (`not_judged`).
    """

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: Owner | None = None
    priority_class: str = ""
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    ready: bool = False
    tolerations: tuple[Toleration, ...] = ()
    empty_dir: bool = False
    disposable: bool = False  # Cluster Autoscaler's annotation names all its emptyDir volumes
    claims: tuple[str, ...] = ()  # names of PersistentVolumeClaims, those of ephemeral volumes too
    finalizers: tuple[str, ...] = ()
    deletion: datetime | None = None  # when its grace ends, None while it is not being deleted
    started: datetime | None = None
    ended: datetime | None = None  # when its last container ended, of a finished pod alone
    host_network: bool = False
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[Mapping[str, Any], ...] = ()
    beyond_limit: str = ""
    tied_to_zones: bool = False  # it has a required rule about other pods by zone: spread, affinity or anti-affinity

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a Pod of the API or of `kubectl get -o json`. Raises InvalidInputError for one without a name."""
        meta, spec, status = metadata_of(raw, "pod"), mapping(raw.get("spec")), mapping(raw.get("status"))
        conditions, volumes = mappings(status.get("conditions")), mappings(spec.get("volumes"))
        annotations, local = texts(meta.get("annotations")), {text(v.get("name")) for v in volumes if "emptyDir" in v}
        return cls(
            namespace=text(meta.get("namespace"), "default"),
            name=meta["name"],
            uid=text(meta.get("uid")),
            node=text(spec.get("nodeName")),
            phase=text(status.get("phase"), "Pending"),
            labels=texts(meta.get("labels")),
            annotations=annotations,
            owner=controller_of(mappings(meta.get("ownerReferences"))),
            priority_class=text(spec.get("priorityClassName")),
            grace_seconds=_bounded(number(spec.get("terminationGracePeriodSeconds"), DEFAULT_GRACE_SECONDS)),
            ready=any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions),
            tolerations=tuple(toleration(one) for one in _asked_for(mappings(spec.get("tolerations")))),
            empty_dir=bool(local),
            disposable=bool(local) and local <= _listed(annotations.get(well_known.SAFE_LOCAL_VOLUMES, "")),
            claims=tuple(_claims(meta["name"], volumes)),
            finalizers=listed(meta.get("finalizers")),
            deletion=instant(meta.get("deletionTimestamp")),
            started=instant(status.get("startTime")),
            ended=_ended(status) if text(status.get("phase")) in FINISHED else None,
            host_network=spec.get("hostNetwork") is True,
            node_selector=texts(spec.get("nodeSelector")),
            node_terms=_required_terms(spec),
            beyond_limit=beyond_limit(spec) or not_judged(spec),
            tied_to_zones=_is_tied_to_zones(spec),
        )

    @property
    def key(self) -> str:
        """Name as people write it: `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def mirror(self) -> bool:
        """True for the API's copy of a static pod: the kubelet owns it, evicting it does nothing."""
        return well_known.MIRROR_POD in self.annotations

    @property
    def of_daemon_set(self) -> bool:
        """True if a DaemonSet controls it: it ends with its node, and the next node has one of its own."""
        return self.owner is not None and self.owner.kind == "DaemonSet" and self.owner.api_version == "apps/v1"

    @property
    def finished(self) -> bool:
        """True if all its containers have ended for good."""
        return self.phase in FINISHED

    @property
    def evictable(self) -> bool:
        """True if a drain has to evict it: neither static nor of a DaemonSet, neither finished nor being deleted."""
        return not (self.mirror or self.of_daemon_set or self.finished or self.deletion is not None)

    @property
    def works(self) -> bool:
        """True if it keeps its node from being empty. A terminating pod of a StatefulSet is created again under its
        name, so it counts, as in Karpenter (pkg/utils/pod, IsReschedulable).
        """
        if self.deletion is not None:
            return self.owner is not None and self.owner.kind == "StatefulSet" and not self.finished
        return self.evictable

    @property
    def critical(self) -> bool:
        """True if it is drained last, as kubelet's graceful node shutdown and Karpenter do."""
        return self.priority_class in {"system-cluster-critical", "system-node-critical"}

    @property
    def safe_to_evict(self) -> bool:
        """True if voluntary disruption may evict it without a controller or with local data (Cluster Autoscaler)."""
        return self.annotations.get(well_known.SAFE_TO_EVICT) == "true"

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Return whether any toleration covers the taint."""
        return any(toleration.tolerates(key, value, effect) for toleration in self.tolerations)


def _listed(names: str) -> frozenset[str]:
    return frozenset(name.strip() for name in names.split(","))


def _bounded(grace: int) -> int:
    """Return a grace period that can be computed with; a negative one is 1 s, as the kubelet takes it."""
    return 1 if grace < 0 else min(grace, LONGEST_GRACE_SECONDS)


def pods_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the pods by the name of their node, pending ones under an empty name."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        found.setdefault(pod.node, []).append(pod)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudget:
    """PodDisruptionBudget of policy/v1 with the numbers of its status. `max_unavailable`, `min_available`: a count or a
    share such as `25%`, as the object says it.
    """

    namespace: str
    name: str
    selector: Mapping[str, Any] | None
    disruptions_allowed: int
    current_healthy: int = 0
    desired_healthy: int = 0
    always_allow_unhealthy: bool = False
    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    expected_pods: int = 0
    sync_failed: str = ""  # why the disruption controller cannot compute it, in the controller's words
    processed: bool = True  # False: the status is of an earlier generation, which the Eviction API refuses

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a PodDisruptionBudget of the API or of `kubectl get`. Raises InvalidInputError for one without a
        name.
        """
        meta, spec, status = metadata_of(raw, "budget"), mapping(raw.get("spec")), mapping(raw.get("status"))
        selector = spec.get("selector")
        return cls(
            namespace=text(meta.get("namespace"), "default"),
            name=meta["name"],
            selector=selector if isinstance(selector, dict) else None,
            disruptions_allowed=number(status.get("disruptionsAllowed")),
            current_healthy=number(status.get("currentHealthy")),
            desired_healthy=number(status.get("desiredHealthy")),
            always_allow_unhealthy=spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
            max_unavailable=_bound(spec.get("maxUnavailable")),
            min_available=_bound(spec.get("minAvailable")),
            expected_pods=number(status.get("expectedPods")),
            sync_failed=_sync_failed(status),
            processed=number(status.get("observedGeneration")) >= number(meta.get("generation")) or not status,
        )

    @property
    def key(self) -> str:
        """Name as people write it: `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def never_allows(self) -> bool:
        """True if it forbids every eviction however healthy its pods are: maxUnavailable 0, or minAvailable as large as
        the number of pods that its status expects. Shares are rounded up, as by the disruption controller (policy/v1).
        """
        if self.max_unavailable is not None:
            return self.max_unavailable in (0, "0%")
        if self.min_available is None or self.min_available == "100%":
            return self.min_available is not None
        return 0 < self.expected_pods <= scaled(self.min_available, self.expected_pods)

    def selects(self, pod: Pod) -> bool:
        """Return whether it selects the pod: empty selects all pods of the namespace, absent none (policy/v1)."""
        return (
            self.selector is not None
            and pod.namespace == self.namespace
            and matches_selector(self.selector, pod.labels)
        )


def _sync_failed(status: Mapping[str, Any]) -> str:
    """Return the message of the condition DisruptionAllowed with the reason SyncFailed (policy/v1), empty without."""
    failed = (one for one in mappings(status.get("conditions")) if one.get("reason") == "SyncFailed")
    return next((text(one.get("message")) or "SyncFailed" for one in failed), "")


def matches_selector(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether the labels match a LabelSelector (`matchLabels` and `matchExpressions`, all of them)."""
    for key, value in mapping(selector.get("matchLabels")).items():
        if labels.get(key) != value:
            return False
    expressions = selector.get("matchExpressions")
    return not expressions or all(_matches(expression, labels) for expression in mappings(expressions))


def _matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether the labels meet one line; none meet a line with an operator that Kubernetes does not have."""
    key, values = text(expression.get("key")), listed(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def _bound(value: Any) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _required_terms(spec: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    return tuple(mappings(mapping(affinity.get(REQUIRED)).get("nodeSelectorTerms")))


def _ended(status: Mapping[str, Any]) -> datetime | None:
    """Return the latest end of a container; None where no status names one, as of an evicted pod."""
    states = (mapping(one.get("state")) for one in mappings(status.get("containerStatuses")))
    ends = (instant(mapping(state.get("terminated")).get("finishedAt")) for state in states)
    return max((end for end in ends if end is not None), default=None)


def _is_tied_to_zones(spec: Mapping[str, Any]) -> bool:
    """Return whether kube-scheduler compares zones for the pod: a spread constraint with DoNotSchedule, or a required
    term of pod affinity or anti-affinity, whose topology key is a label of the zone.
    """
    if "topologySpreadConstraints" not in spec and "affinity" not in spec:  # as of most pods
        return False
    spread = mappings(spec.get("topologySpreadConstraints"))
    hard = [one for one in spread if one.get("whenUnsatisfiable") != "ScheduleAnyway"]
    affinity = mapping(spec.get("affinity"))
    terms = (one for kind in POD_AFFINITY for one in mappings(mapping(affinity.get(kind)).get(REQUIRED)))
    return any(text(one.get("topologyKey")) in _OF_ZONES for one in (*hard, *terms))


def _claims(pod: str, volumes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the claims by name, and those that ephemeral volumes bring (`POD-VOLUME`)."""
    for volume in volumes:
        if claim := text(mapping(volume.get("persistentVolumeClaim")).get("claimName")):
            yield claim
        elif volume.get("ephemeral") is not None:
            yield f"{pod}-{text(volume.get('name'))}"


def scaled(bound: int | str, of: int) -> int:
    """Return the number of pods that a budget's bound means: a count, or a share of `of` rounded up; any other value
    counts as 0, as the controller refuses it too.
    """
    if isinstance(bound, int):
        return bound
    share = bound.removesuffix("%")
    return -(-int(share) * of // 100) if bound.endswith("%") and share.isdecimal() else 0


def controller_of(references: Sequence[Mapping[str, Any]]) -> Owner | None:
    """Return the owner in `metadata.ownerReferences` that manages the object, if any does."""
    for reference in references:
        if reference.get("controller"):
            version, kind, name = (text(reference.get(part)) for part in ("apiVersion", "kind", "name"))
            return Owner(api_version=version, kind=kind, name=name)
    return None


def _asked_for(tolerations: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the tolerations; of a list beyond the limit those alone that a drain asks for (`DRAIN_TAINTS`)."""
    if len(tolerations) <= TOLERATIONS:
        return tolerations
    return [one for one in tolerations if not one.get("key") or one["key"] in DRAIN_TAINTS]


def toleration(raw: Mapping[str, Any]) -> Toleration:
    """Parse one element of `spec.tolerations`."""
    key, value, effect = text(raw.get("key")), text(raw.get("value")), text(raw.get("effect"))
    return _toleration(key, text(raw.get("operator"), "Equal"), value, effect)


@lru_cache(maxsize=1024)
def _toleration(key: str, operator: str, value: str, effect: str) -> Toleration:
    """Build a toleration, cached: nearly every pod has the same two."""
    return Toleration(key=key, operator=operator, value=value, effect=effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Deployment object. `replicas`: the number in its spec; `available`: pods ready for as long as it requires;
    `settled`: no rollout is under way; `recreate`: its old and new pods never run side by side.
    """

    namespace: str
    name: str
    resource_version: str
    replicas: int
    available: int
    settled: bool
    recreate: bool

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a Deployment of the API. Raises InvalidInputError for one without a name."""
        meta, spec, status = metadata_of(raw, "deployment"), mapping(raw.get("spec")), mapping(raw.get("status"))
        observed = number(status.get("observedGeneration")) >= number(meta.get("generation"))
        return cls(
            namespace=text(meta.get("namespace"), "default"),
            name=meta["name"],
            resource_version=text(meta.get("resourceVersion")),
            replicas=number(spec.get("replicas"), 1),
            available=number(status.get("availableReplicas")),
            settled=observed and number(status.get("updatedReplicas")) == number(status.get("replicas")),
            recreate=mapping(spec.get("strategy")).get("type") == "Recreate",
        )

    @property
    def key(self) -> str:
        """Name as people write it: `namespace/name`."""
        return f"{self.namespace}/{self.name}"


def deployment_named_by(pod: Pod) -> str | None:
    """Return the name of the pod's Deployment as its ReplicaSet shows it, without a read of either: DEPLOYMENT-HASH, if
    the pod carries the hash. None for a pod of anything else.
    """
    if pod.owner is None or pod.owner.kind != "ReplicaSet":
        return None
    name, suffix = pod.owner.name, f"-{pod.labels.get(TEMPLATE_HASH, '')}"
    return name.removesuffix(suffix) if len(suffix) > 1 and name.endswith(suffix) and name != suffix else None
