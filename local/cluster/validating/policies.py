"""ValidatingAdmissionPolicy objects and their bindings: expressions that a request must satisfy.

Supported: `matchConstraints` and `matchResources` (rules, exclusions, selectors), `matchConditions`, `validations` with
`message` and `reason`, `failurePolicy`, the action Deny. A binding without Deny refuses nothing. Parameters, variables,
message expressions and audit annotations are refused on creation. Rules and words:
`apiserver/pkg/admission/plugin/policy/validating/dispatcher.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from local.cluster.errors import ApiError
from local.cluster.objects import Obj, name_of
from local.cluster.store import Store

from .attributes import Attributes, rule_covers, selected
from .cel import CelError, Expression, compiled

POLICIES = "validatingadmissionpolicies"
BINDINGS = "validatingadmissionpolicybindings"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


def refusal(store: Store, attributes: Attributes, user: str) -> ApiError | None:
    """Return the denial of the first binding whose policy the request does not satisfy."""
    for binding in store.sorted(BINDINGS):
        policy = store.find(POLICIES, binding["spec"].get("policyName", ""))
        if policy is None or "Deny" not in (binding["spec"].get("validationActions") or []):
            continue
        constraints = policy["spec"].get("matchConstraints") or {}
        narrower = binding["spec"].get("matchResources") or {}
        if not _constrained(constraints, attributes, store, required=True):
            continue
        if not _constrained(narrower, attributes, store, required=False):
            continue
        for message, reason in _failed(policy["spec"], _variables(attributes, user, store)):
            return _denied(policy, binding, attributes, message, reason)
    return None


def _constrained(match: Obj, attributes: Attributes, store: Store, *, required: bool) -> bool:
    """Return whether the constraints select the request. `required`: absent resource rules mean no resource instead of
    every resource.
    """
    rules = match.get("resourceRules") or []
    if (rules or required) and not any(rule_covers(rule, attributes) for rule in rules):
        return False
    if any(rule_covers(rule, attributes) for rule in match.get("excludeResourceRules") or []):
        return False
    return selected(match, attributes, store)


def _failed(spec: Obj, variables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return message and reason of every validation that does not hold."""
    fails_closed = spec.get("failurePolicy", "Fail") == "Fail"
    try:
        if not all(expression(entry["expression"])(variables) for entry in spec.get("matchConditions") or []):
            return
    except CelError as failure:
        if fails_closed:
            yield f"match condition failed: {failure}", ""
        return
    for entry in spec.get("validations") or []:
        text, reason = entry["expression"], entry.get("reason", "")
        try:
            if expression(text)(variables) is not True:
                yield entry.get("message") or f"failed expression: {text}", reason
        except CelError as failure:
            if fails_closed:
                yield f"expression '{text}' resulted in error: {failure}", ""


def _variables(attributes: Attributes, user: str, store: Store) -> dict[str, Any]:
    return {
        "object": attributes.obj,
        "oldObject": attributes.old,
        "namespaceObject": store.find("namespaces", attributes.namespace) if attributes.namespace else None,
        "request": request_of(attributes, user),
    }


def request_of(attributes: Attributes, user: str) -> Obj:
    """Return the fields of an AdmissionRequest except its uid and its objects."""
    resource, (group, version, kind) = attributes.resource, attributes.kind
    return {
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "subResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace or "",
        "operation": attributes.operation.value,
        "userInfo": {"username": user},
        "dryRun": attributes.dry_run,
    }


def _denied(policy: Obj, binding: Obj, attributes: Attributes, message: str, reason: str) -> ApiError:
    said = f"ValidatingAdmissionPolicy '{name_of(policy)}' with binding '{name_of(binding)}' denied request: {message}"
    resource, name = attributes.resource, attributes.name
    about = f'{resource.qualified} "{name}"' if name else resource.qualified
    details: Obj = {"name": name, "group": resource.group, "kind": resource.plural, "causes": [{"message": said}]}
    reason = reason or "Invalid"
    kept = {key: value for key, value in details.items() if value}
    return ApiError(_CODES.get(reason, 422), reason, f"{about} is forbidden: {said}", details=kept)


@lru_cache(maxsize=256)
def expression(text: str) -> Expression:
    """Return the compiled expression. Raises CelSyntaxError."""
    return compiled(text)
