"""Refusals of webhook configurations and policies that are malformed or that the local cluster cannot evaluate."""

from __future__ import annotations

from local.cluster.objects import Obj

from .cel import CelSyntaxError
from .policies import expression

Cause = tuple[str, str, str]  # field, reason, message

_REQUIRED, _INVALID, _UNSUPPORTED = "FieldValueRequired", "FieldValueInvalid", "FieldValueNotSupported"
_NOT_EVALUATED = ("paramKind", "variables", "auditAnnotations")


def webhook_configuration(obj: Obj, _old: Obj | None) -> list[Cause]:
    """Check a webhook configuration by `pkg/apis/admissionregistration/validation`."""
    causes: list[Cause] = []
    names: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or []):
        causes += _webhook(webhook, f"webhooks[{index}]")
        name = webhook.get("name", "")
        if name in names:
            causes.append((f"webhooks[{index}].name", "FieldValueDuplicate", f'Duplicate value: "{name}"'))
        names.add(name)
    return causes


def _webhook(webhook: Obj, field: str) -> list[Cause]:
    causes: list[Cause] = []
    if webhook.get("name", "").count(".") < 2:
        name = webhook.get("name", "")
        text = f'Invalid value: "{name}": should be a domain with at least three segments separated by dots'
        causes.append((f"{field}.name", _INVALID, text))
    if webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
        causes.append((f"{field}.sideEffects", _REQUIRED, "Required value: must specify one of None, NoneOnDryRun"))
    if not webhook.get("admissionReviewVersions"):
        causes.append(
            (f"{field}.admissionReviewVersions", _REQUIRED, "Required value: must specify one of v1, v1beta1")
        )
    if webhook.get("failurePolicy") not in ("Fail", "Ignore"):
        text = f'Unsupported value: "{webhook.get("failurePolicy")}": supported values: "Fail", "Ignore"'
        causes.append((f"{field}.failurePolicy", _UNSUPPORTED, text))
    if not 1 <= int(webhook.get("timeoutSeconds") or 0) <= 30:
        text = f"Invalid value: {webhook.get('timeoutSeconds')}: the timeout value must be between 1 and 30 seconds"
        causes.append((f"{field}.timeoutSeconds", _INVALID, text))
    client = webhook.get("clientConfig") or {}
    if bool(client.get("url")) is bool(client.get("service")):
        text = "Required value: exactly one of url or service is required"
        causes.append((f"{field}.clientConfig", _REQUIRED, text))
    return causes + _conditions(webhook, field)


def policy(obj: Obj, _old: Obj | None) -> list[Cause]:
    """Check a ValidatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    causes: list[Cause] = []
    if not (spec.get("matchConstraints") or {}).get("resourceRules"):
        causes.append(("spec.matchConstraints.resourceRules", _REQUIRED, "Required value"))
    if not spec.get("validations"):
        text = "Required value: validations or auditAnnotations must contain at least one item"
        causes.append(("spec.validations", _REQUIRED, text))
    for name in _NOT_EVALUATED:
        if spec.get(name):
            causes.append((f"spec.{name}", _UNSUPPORTED, "Unsupported value: the local cluster does not evaluate it"))
    for index, entry in enumerate(spec.get("validations") or []):
        field = f"spec.validations[{index}]"
        causes += _expression(entry.get("expression", ""), f"{field}.expression")
        if entry.get("messageExpression"):
            text = "Unsupported value: the local cluster does not evaluate it"
            causes.append((f"{field}.messageExpression", _UNSUPPORTED, text))
    return causes + _conditions(spec, "spec")


def binding(obj: Obj, _old: Obj | None) -> list[Cause]:
    """Check a ValidatingAdmissionPolicyBinding."""
    spec = obj.get("spec") or {}
    causes: list[Cause] = []
    for name in ("policyName", "validationActions"):
        if not spec.get(name):
            causes.append((f"spec.{name}", _REQUIRED, "Required value"))
    if spec.get("paramRef"):
        causes.append(("spec.paramRef", _UNSUPPORTED, "Unsupported value: the local cluster does not evaluate it"))
    return causes


def _conditions(holder: Obj, field: str) -> list[Cause]:
    entries = enumerate(holder.get("matchConditions") or [])
    return [
        cause
        for index, entry in entries
        for cause in _expression(entry.get("expression", ""), f"{field}.matchConditions[{index}].expression")
    ]


def _expression(text: str, field: str) -> list[Cause]:
    if not text.strip():
        return [(field, _REQUIRED, "Required value: expression is not specified")]
    try:
        expression(text)
    except CelSyntaxError as failure:
        return [(field, _INVALID, f'Invalid value: "{text}": compilation failed: {failure}')]
    return []
