"""Refusals of the API server, in the words and the shapes of `k8s.io/apimachinery/pkg/api/errors`."""

from __future__ import annotations

from typing import Any

from .objects import Obj
from .resources import Resource


class ApiError(Exception):
    """Refusal that becomes a `Status` object.

    `code` is the HTTP status, `reason` a machine-readable word (may be empty: the real server leaves it out at times),
    `retry_after` whole seconds for the header of the same name.
    """

    def __init__(
        self, code: int, reason: str, message: str, *, details: Obj | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> Obj:
        """Return the `Status` body."""
        body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        if self.reason:
            body["reason"] = self.reason
        details = dict(self.details or {})
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        if details or self.details is not None:  # an empty one as well, as go-restful's refusals have it
            body["details"] = details
        body["code"] = self.code
        return body


def _details(resource: Resource, name: str) -> Obj:
    details = {"name": name, "kind": resource.plural}
    return {**details, "group": resource.group} if resource.group else details


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', details=_details(resource, name))


def no_such_path() -> ApiError:
    """Return the answer to a path of a served group that is no resource's."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: Resource, name: str) -> ApiError:
    message = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(resource, name))


def precondition_failed(resource: Resource, name: str, why: str) -> ApiError:
    """Return the failure of a deletion's precondition; unlike other conflicts it names the kind."""
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, details={**_details(resource, name), "kind": resource.kind})


def modified(resource: Resource, name: str) -> ApiError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def invalid(resource: Resource, name: str, causes: list[tuple[str, str, str]]) -> ApiError:
    """Return 422 with (field, reason, message) for each broken rule."""
    listed: list[dict[str, Any]] = [{"reason": why, "message": text, "field": field} for field, why, text in causes]
    text = ", ".join(f"{field}: {text}" for field, _, text in causes)
    text = f"[{text}]" if len(causes) > 1 else text
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'{qualified} "{name}" is invalid: {text}'
    details = {**_details(resource, name), "kind": resource.kind, "causes": listed}
    return ApiError(422, "Invalid", message, details=details)


def negative_scale(name: str, replicas: Any) -> ApiError:
    """Return the refusal of a negative Scale, which is an object of its own group, whatever it scales."""
    text = f"Invalid value: {replicas}: must be greater than or equal to 0"
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": "spec.replicas"}]
    details = {"name": name, "group": "autoscaling", "kind": "Scale", "causes": causes}
    message = f'Scale.autoscaling "{name}" is invalid: spec.replicas: {text}'
    return ApiError(422, "Invalid", message, details=details)


def forbidden(message: str, details: Obj | None = None) -> ApiError:
    return ApiError(403, "Forbidden", message, details=details)


def internal_error(message: str) -> ApiError:
    return ApiError(
        500, "InternalError", f"Internal error occurred: {message}", details={"causes": [{"message": message}]}
    )


def not_a_number(version: str) -> str:
    """Return the words of Go's parser for an invalid resourceVersion."""
    return f'strconv.ParseUint: parsing "{version}": invalid syntax'


def too_large_version(asked: int, current: int) -> ApiError:
    """Return the refusal of a version that the watch cache has not seen within its wait of three seconds."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", f"Timeout: {message}", details={"causes": causes}, retry_after=1)


def exact_at_zero() -> ApiError:
    """Return the refusal of a list at exactly version 0, which is no version."""
    text = 'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
    causes = [{"reason": "FieldValueForbidden", "message": text, "field": "resourceVersionMatch"}]
    message = f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {text}'
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes}
    return ApiError(422, "Invalid", message, details=details)


def namespace_terminating(resource: Resource, name: str, namespace: str) -> ApiError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    about = f'{resource.qualified} "{name}"' if name else resource.qualified
    return forbidden(f"{about} is forbidden: {why}", {**_details(resource, name), "causes": [cause]})


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def unsupported_media(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})
