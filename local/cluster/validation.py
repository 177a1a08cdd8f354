"""Refusals of objects: the rules of the API server that a node-lifecycle client can break.

Not the whole of `k8s.io/kubernetes/pkg/apis/*/validation`: names, labels, annotations, taints, selectors, events,
disruption budgets, and immutable fields.
"""

from __future__ import annotations

import re
from typing import Any

from local.cluster.validating.rules import binding, policy, webhook_configuration

from .errors import invalid
from .objects import Obj, copied, is_deleting, labels_of, namespace_of
from .resources import Resource
from .selectors import label_selector_matches

Cause = tuple[str, str, str]  # field, reason, message

_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_LOOSE_NAME = re.compile(r"^[^/%]+$")  # path segment names: RBAC objects are called system:…
_KEY_NAME = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ANNOTATIONS_LIMIT = 256 * 1024
_EVENT_MESSAGE = 1024


def check(resource: Resource, obj: Obj, old: Obj | None, subresource: str | None = None) -> None:
    """Raise 422 Invalid with every broken rule."""
    causes = _metadata(resource, obj)
    rules = _resize if subresource == "resize" else _RULES.get(resource.kind)
    if rules is not None:
        causes += rules(obj, old)
    if old is not None:
        causes += _kept(resource, obj, old)
    if causes:
        raise invalid(resource, obj["metadata"].get("name", ""), causes)


def _metadata(resource: Resource, obj: Obj) -> list[Cause]:
    metadata = obj["metadata"]
    causes = _name(resource, metadata.get("name") or "")
    for key, value in (metadata.get("labels") or {}).items():
        causes += _label("metadata.labels", key, value)
    annotations = metadata.get("annotations") or {}
    for key, value in annotations.items():
        if not isinstance(value, str):
            causes.append((f"metadata.annotations.{key}", "FieldValueInvalid", "Invalid value: must be a string"))
        causes += _key("metadata.annotations", key)
    if sum(len(str(key)) + len(str(value)) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        causes.append(
            ("metadata.annotations", "FieldValueTooLong", f"Too long: may not be more than {_ANNOTATIONS_LIMIT}")
        )
    for finalizer in metadata.get("finalizers") or []:
        if "/" not in finalizer and finalizer not in ("orphan", "foregroundDeletion", "kubernetes"):
            text = f'Invalid value: "{finalizer}": name is neither a standard finalizer name nor is it fully qualified'
            causes.append(("metadata.finalizers", "FieldValueInvalid", text))
    return causes


def _name(resource: Resource, name: str) -> list[Cause]:
    if not name:
        return [("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")]
    if resource.kind == "Event" and _LOOSE_NAME.match(name):
        return []  # legacy validation of Events requires no more of a name, not even a length
    pattern = _LOOSE_NAME if resource.group.startswith("rbac") else _SUBDOMAIN
    if len(name) > 253 or not pattern.match(name):
        text = f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumerics'
        return [("metadata.name", "FieldValueInvalid", f"{text}, '-' or '.', and must start and end with one")]
    return []


def _key(field: str, key: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    good = _KEY_NAME.match(name) and len(name) <= 63
    if slash:
        good = good and bool(_SUBDOMAIN.match(prefix.lower())) and len(prefix) <= 253
    return [] if good else [(field, "FieldValueInvalid", f'Invalid value: "{key}": not a qualified name')]


def _label(field: str, key: str, value: Any) -> list[Cause]:
    causes = _key(field, key)
    if not isinstance(value, str) or len(value) > 63 or not _VALUE.match(value):
        text = f'Invalid value: "{value}": a valid label must be an empty string or consist of alphanumeric characters'
        causes.append((field, "FieldValueInvalid", f"{text}, '-', '_' or '.', and be at most 63 characters"))
    return causes


def _kept(resource: Resource, obj: Obj, old: Obj) -> list[Cause]:
    if is_deleting(old):
        added = set(obj["metadata"].get("finalizers") or []) - set(old["metadata"].get("finalizers") or [])
        if added:
            text = f"Forbidden: no new finalizers can be added if the object is being deleted, found {sorted(added)}"
            return [("metadata.finalizers", "FieldValueForbidden", text)]
    if resource.group == "apps" and obj.get("spec", {}).get("selector") != old.get("spec", {}).get("selector"):
        return [("spec.selector", "FieldValueInvalid", "Invalid value: field is immutable")]
    return []


def _node(obj: Obj, old: Obj | None) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(obj.get("spec", {}).get("taints") or []):
        field = f"spec.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        causes += _label(field, key, taint.get("value") or "")
        if effect not in _EFFECTS:
            text = f'Unsupported value: "{effect}": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            causes.append((f"{field}.effect", "FieldValueNotSupported", text))
        if (key, effect) in seen:
            causes.append((f"{field}", "FieldValueDuplicate", f'Duplicate value: "{key}:{effect}"'))
        seen.add((key, effect))
    before = (old or {}).get("spec", {}).get("providerID")
    if before and obj.get("spec", {}).get("providerID") != before:
        text = 'Forbidden: node updates may not change providerID except from "" to valid'
        causes.append(("spec.providerID", "FieldValueForbidden", text))
    return causes


def _pod(obj: Obj, old: Obj | None) -> list[Cause]:
    if not obj.get("spec", {}).get("containers"):
        return [("spec.containers", "FieldValueRequired", "Required value")]
    if old is None or _unchangeable(obj) == _unchangeable(old):
        return []
    text = (
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing"
        " tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
    )
    return [("spec", "FieldValueForbidden", text)]


def _unchangeable(pod: Obj) -> Obj:
    spec: Obj = copied(pod["spec"])
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or []:
            container.pop("image", None)
    for key in ("activeDeadlineSeconds", "tolerations"):
        spec.pop(key, None)
    return {key: value for key, value in spec.items() if value not in (None, [], {})}


def _resize(obj: Obj, old: Obj | None) -> list[Cause]:
    if old is None or _without_sizes(obj) == _without_sizes(old):
        return []
    return [("spec", "FieldValueForbidden", "Forbidden: only cpu and memory resources are mutable")]


def _without_sizes(pod: Obj) -> Obj:
    spec: Obj = copied(pod["spec"])
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        for amounts in (container.get("resources") or {}).values():
            for name in ("cpu", "memory") if isinstance(amounts, dict) else ():
                amounts.pop(name, None)
        container.pop("resizePolicy", None)
    return spec


def _workload(obj: Obj, _old: Obj | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    template_labels = labels_of({"metadata": {}, **(spec.get("template") or {})})
    selector = spec.get("selector")
    if not selector:
        return [("spec.selector", "FieldValueRequired", "Required value")]
    if not label_selector_matches(selector, template_labels):
        text = f"Invalid value: {template_labels}: `selector` does not match template `labels`"
        return [("spec.template.metadata.labels", "FieldValueInvalid", text)]
    return []


_STATEFUL_SET_MAY_CHANGE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip


def _stateful_set(obj: Obj, old: Obj | None) -> list[Cause]:
    causes = _workload(obj, old)
    if old is None or _without(obj["spec"], _STATEFUL_SET_MAY_CHANGE) == _without(
        old["spec"], _STATEFUL_SET_MAY_CHANGE
    ):
        return causes
    text = (
        "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
        " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are"
        " forbidden"
    )
    return [*causes, ("spec", "FieldValueForbidden", text)]


def _without(spec: Obj, keys: tuple[str, ...]) -> Obj:
    return {key: value for key, value in spec.items() if key not in keys}


def _job(obj: Obj, old: Obj | None) -> list[Cause]:
    template = obj["spec"]["template"]
    if template["spec"].get("restartPolicy") not in ("OnFailure", "Never"):
        text = 'Required value: valid values: "OnFailure", "Never"'
        return [("spec.template.spec.restartPolicy", "FieldValueRequired", text)]
    if old is not None and template != old["spec"]["template"] and not old["spec"].get("suspend"):
        return [("spec.template", "FieldValueInvalid", "Invalid value: field is immutable")]
    return []


def _budget(obj: Obj, _old: Obj | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        return [("spec", "FieldValueInvalid", "Invalid value: minAvailable and maxUnavailable cannot be both set")]
    causes: list[Cause] = []
    for key in ("minAvailable", "maxUnavailable"):
        value = spec.get(key)
        if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
            text = f'Invalid value: "{value}": a valid percent string must be a numeric string followed by an ending %'
            causes.append((f"spec.{key}", "FieldValueInvalid", text))
        elif isinstance(value, int) and value < 0:
            causes.append(
                (f"spec.{key}", "FieldValueInvalid", f"Invalid value: {value}: must be greater than or equal to 0")
            )
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy not in (None, "IfHealthyBudget", "AlwaysAllow"):
        text = f'Unsupported value: "{policy}": supported values: "AlwaysAllow", "IfHealthyBudget"'
        causes.append(("spec.unhealthyPodEvictionPolicy", "FieldValueNotSupported", text))
    return causes


def _event(obj: Obj, _old: Obj | None) -> list[Cause]:
    """Check an Event by legacy validation: it is in the namespace of its object, `default` for cluster objects."""
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    namespace = namespace_of(obj) or ""
    if about != namespace and not (about == "" and namespace == "default"):
        text = f'Invalid value: "{about}": does not match event.namespace'
        return [("involvedObject.namespace", "FieldValueInvalid", text)]
    message = obj.get("message") or ""
    if obj.get("eventTime") and len(message.encode()) > _EVENT_MESSAGE:  # legacy Events have no limit
        return [("message", "FieldValueInvalid", f"Invalid value: can have at most {_EVENT_MESSAGE} characters")]
    return []


_RULES = {
    "ValidatingWebhookConfiguration": webhook_configuration,
    "ValidatingAdmissionPolicy": policy,
    "ValidatingAdmissionPolicyBinding": binding,
    "Node": _node,
    "Pod": _pod,
    "Deployment": _workload,
    "ReplicaSet": _workload,
    "DaemonSet": _workload,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "PodDisruptionBudget": _budget,
    "Event": _event,
}
