"""Catalogue of resources: their names and verbs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Kind of object. `subresources` maps the name to the verbs it takes."""

    plural: str
    group: str
    version: str
    kind: str
    namespaced: bool
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """`pods`, `deployments.apps`: the name of a resource in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def scalable(self) -> bool:
        return "scale" in self.subresources


def _core(plural: str, kind: str, *short: str, namespaced: bool = True, subs: str = "", all_: bool = False) -> Resource:
    return _of("", plural, kind, *short, namespaced=namespaced, subs=subs, all_=all_)


def _v2(group: str, plural: str, kind: str, *short: str, subs: str = "", all_: bool = False) -> Resource:
    return replace(_of(group, plural, kind, *short, subs=subs, all_=all_), version="v2")


def _of(
    group: str, plural: str, kind: str, *short: str, namespaced: bool = True, subs: str = "", all_: bool = False
) -> Resource:
    return Resource(
        plural=plural,
        group=group,
        version="v1",
        kind=kind,
        namespaced=namespaced,
        short=short,
        categories=("all",) if all_ else (),
        subresources=tuple(subs.split()),
    )


_CATALOGUE = (
    _core("nodes", "Node", "no", namespaced=False, subs="status"),
    _core("pods", "Pod", "po", subs="status eviction binding log resize", all_=True),
    _core("namespaces", "Namespace", "ns", namespaced=False, subs="status finalize"),
    _core("events", "Event", "ev"),
    _core("endpoints", "Endpoints", "ep"),
    _core("componentstatuses", "ComponentStatus", "cs", namespaced=False),
    _core("configmaps", "ConfigMap", "cm"),
    _core("secrets", "Secret"),
    _core("services", "Service", "svc", subs="status", all_=True),
    _core("serviceaccounts", "ServiceAccount", "sa"),
    _core("persistentvolumes", "PersistentVolume", "pv", namespaced=False, subs="status"),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", subs="status"),
    _core("replicationcontrollers", "ReplicationController", "rc", subs="status scale", all_=True),
    _of(
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
    ),
    _of(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        namespaced=False,
        subs="status",
    ),
    _of(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        namespaced=False,
    ),
    _of("apps", "deployments", "Deployment", "deploy", subs="status scale", all_=True),
    _of("apps", "replicasets", "ReplicaSet", "rs", subs="status scale", all_=True),
    _of("apps", "daemonsets", "DaemonSet", "ds", subs="status", all_=True),
    _of("apps", "statefulsets", "StatefulSet", "sts", subs="status scale", all_=True),
    _v2("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", subs="status", all_=True),
    _of("batch", "jobs", "Job", subs="status", all_=True),
    _of("coordination.k8s.io", "leases", "Lease"),
    _of("discovery.k8s.io", "endpointslices", "EndpointSlice"),
    _of("policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", subs="status"),
    _of("storage.k8s.io", "volumeattachments", "VolumeAttachment", namespaced=False, subs="status"),
    _of("storage.k8s.io", "storageclasses", "StorageClass", "sc", namespaced=False),
    _of("storage.k8s.io", "csinodes", "CSINode", namespaced=False),
    _of("resource.k8s.io", "deviceclasses", "DeviceClass", namespaced=False),
    _of("resource.k8s.io", "resourceclaims", "ResourceClaim", subs="status"),
    _of("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    _of("resource.k8s.io", "resourceslices", "ResourceSlice", namespaced=False),
    _of("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc", namespaced=False),
    _of("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", namespaced=False),
    _of("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _of("rbac.authorization.k8s.io", "roles", "Role"),
    _of("rbac.authorization.k8s.io", "rolebindings", "RoleBinding"),
)

BY_PLURAL: dict[str, Resource] = {resource.plural: resource for resource in _CATALOGUE}
BY_KIND: dict[str, Resource] = {resource.kind: resource for resource in _CATALOGUE}
# answered without being stored
REVIEW_GROUP = "authorization.k8s.io"
IDENTITY_GROUP = "authentication.k8s.io"
GROUPS: tuple[str, ...] = tuple(sorted({r.group for r in _CATALOGUE if r.group} | {REVIEW_GROUP, IDENTITY_GROUP}))


def version_of(group: str) -> str:
    """Return the one version in which a group is served."""
    return next((resource.version for resource in _CATALOGUE if resource.group == group), "v1")


def in_group(group: str, version: str) -> list[Resource]:
    return [resource for resource in _CATALOGUE if (resource.group, resource.version) == (group, version)]


def resource_named(plural: str) -> Resource:
    """Return the resource. Raises KeyError with the name of a resource that is not in the catalogue."""
    return BY_PLURAL[plural]
