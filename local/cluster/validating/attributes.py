"""Attributes of one request in admission, and their match with the rules and selectors of a policy or webhook."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from local.cluster.objects import Obj, labels_of
from local.cluster.resources import Resource
from local.cluster.selectors import label_selector_matches
from local.cluster.store import Store

# policies and webhooks never apply to the objects that define them: a broken one could not be removed
EXEMPT_GROUP = "admissionregistration.k8s.io"
_OTHER_KINDS = {
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
}


class Operation(StrEnum):
    """Operations of an admission rule that the local cluster performs."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """admission.Attributes: `obj` is None for a deletion, `old` for a creation."""

    operation: Operation
    resource: Resource
    name: str
    namespace: str | None = None
    subresource: str = ""
    obj: Obj | None = None
    old: Obj | None = None
    dry_run: bool = False

    @property
    def kind(self) -> tuple[str, str, str]:
        """Group, version and kind of the object, which a subresource may change (Eviction, Scale)."""
        own = (self.resource.group, self.resource.version, self.resource.kind)
        return _OTHER_KINDS.get(self.subresource, own)


def rule_covers(rule: Obj, attributes: Attributes) -> bool:
    """Return whether one entry of `rules` or `resourceRules` covers the request."""
    resource = attributes.resource
    return (
        _named(rule.get("operations"), attributes.operation.value)
        and _named(rule.get("apiGroups"), resource.group)
        and _named(rule.get("apiVersions"), resource.version)
        and any(_covers(pattern, attributes) for pattern in rule.get("resources") or [])
        and _in_scope(rule.get("scope") or "*", attributes)
        and attributes.name in (rule.get("resourceNames") or [attributes.name])
    )


def _named(values: list[str] | None, wanted: str) -> bool:
    return "*" in (values or []) or wanted in (values or [])


def _covers(pattern: str, attributes: Attributes) -> bool:
    """Match `pods`, `pods/eviction`, `pods/*` (with the pods themselves), `*`, `*/scale`, `*/*`."""
    plural, _, subresource = pattern.partition("/")
    return plural in ("*", attributes.resource.plural) and subresource in ("*", attributes.subresource)


def _in_scope(scope: str, attributes: Attributes) -> bool:
    namespaced = attributes.resource.namespaced
    return scope == "*" or namespaced is (scope == "Namespaced")


def selected(matcher: Obj, attributes: Attributes, store: Store) -> bool:
    """Return whether `namespaceSelector` and `objectSelector` select the request; an absent selector selects
    everything.
    """
    return _namespace_selected(matcher.get("namespaceSelector") or {}, attributes, store) and _object_selected(
        matcher.get("objectSelector") or {}, attributes
    )


def _namespace_selected(selector: Obj, attributes: Attributes, store: Store) -> bool:
    """Match the namespace selector, which never excludes a cluster-scoped object that is no Namespace."""
    if attributes.resource.plural == "namespaces":
        return label_selector_matches(selector, labels_of(attributes.obj or attributes.old or {"metadata": {}}))
    if attributes.namespace is None:
        return True
    namespace = store.find("namespaces", attributes.namespace)
    return label_selector_matches(selector, labels_of(namespace) if namespace else {})


def _object_selected(selector: Obj, attributes: Attributes) -> bool:
    """Match the object before or after the write; an absent one matches only the empty selector."""
    labels = [labels_of(obj) for obj in (attributes.obj, attributes.old) if obj is not None]
    return any(label_selector_matches(selector, entry) for entry in labels or [{}])
