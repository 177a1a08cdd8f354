"""Attributes of one request in admission, and whether the rules and selectors of a policy or webhook match them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from local.cluster.objects import Obj, labels_of
from local.cluster.resources import Resource
from local.cluster.selectors import label_selector_matches
from local.cluster.store import Store

# policies and webhooks do not apply to the objects that define them: otherwise a broken one could not be removed
EXEMPT_GROUP = "admissionregistration.k8s.io"
_SUBRESOURCE_KINDS = {  # (group, version, kind) of the object that a request to the subresource carries
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
    """Attributes of a request, as Go's `admission.Attributes`. `obj`: the object after the request, None for a
    deletion; `old`: the object before it, None for a creation.
    """

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
        """Group, version and kind of the object in the request; subresources have their own (Eviction, Scale)."""
        of_resource = (self.resource.group, self.resource.version, self.resource.kind)
        return _SUBRESOURCE_KINDS.get(self.subresource, of_resource)


def rule_covers(rule: Obj, attributes: Attributes) -> bool:
    """Return whether one entry of `rules` or `resourceRules` covers the request."""
    resource = attributes.resource
    return (
        _includes(rule.get("operations"), attributes.operation.value)
        and _includes(rule.get("apiGroups"), resource.group)
        and _includes(rule.get("apiVersions"), resource.version)
        and any(_names_resource(pattern, attributes) for pattern in rule.get("resources") or [])
        and _in_scope(rule.get("scope") or "*", attributes)
        and attributes.name in (rule.get("resourceNames") or [attributes.name])
    )


def _includes(values: list[str] | None, value: str) -> bool:
    return "*" in (values or []) or value in (values or [])


def _names_resource(pattern: str, attributes: Attributes) -> bool:
    """Match `pods`, `pods/eviction`, `pods/*` (with the pods themselves), `*` (no subresource), `*/scale`, `*/*`."""
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
    """Match the namespace selector. Of cluster-scoped objects it applies to Namespaces alone, by their own labels."""
    if attributes.resource.plural == "namespaces":
        return label_selector_matches(selector, _labels(attributes)[0])
    if attributes.namespace is None:
        return True
    namespace = store.find("namespaces", attributes.namespace)
    return label_selector_matches(selector, labels_of(namespace) if namespace else {})


def _object_selected(selector: Obj, attributes: Attributes) -> bool:
    """Match the object after the write or before it: either is enough."""
    return any(label_selector_matches(selector, labels) for labels in _labels(attributes))


def _labels(attributes: Attributes) -> list[dict[str, str]]:
    """Return the labels of the object after the write and before it; every request has at least one of the two."""
    return [labels_of(obj) for obj in (attributes.obj, attributes.old) if obj is not None]
