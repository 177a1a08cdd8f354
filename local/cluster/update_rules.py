"""Rules of an update: which object and version it may name, and which fields of the stored object it keeps."""

from __future__ import annotations

from .errors import ApiError, bad_request, conflict, invalid, modified, not_a_number
from .objects import Obj, copied, name_of, namespace_of, uid_of
from .resources import Resource, resource_named

_SYSTEM_FIELDS = (
    "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "generation", "resourceVersion", "generateName",
)  # fmt: skip


def check_identity(kind: Resource, metadata: Obj, old: Obj) -> None:
    """Raise 400, 409 or 500 where the written metadata names another object or version than the stored one."""
    version = metadata.get("resourceVersion")
    if version and not str(version).isdecimal():
        raise ApiError(500, "", not_a_number(version))  # the real server sends this Status without a reason
    if version and version != old["metadata"]["resourceVersion"]:
        raise modified(kind, name_of(old))
    uid = metadata.get("uid")
    if uid and uid != uid_of(old):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(old)}"
        raise conflict(kind, name_of(old), why)
    if metadata.get("name") not in (None, name_of(old)):
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name_of(old)})"
        )
    if metadata.get("namespace") not in (None, "", namespace_of(old)):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_patched_uid(resource: str, old: Obj, new: Obj) -> None:
    """Refuse a patch that names another uid as invalid; an update would be in conflict."""
    uid = (new.get("metadata") or {}).get("uid")
    if uid not in (None, "", uid_of(old)):
        cause = ("metadata.uid", "FieldValueInvalid", f'Invalid value: "{uid}": field is immutable')
        raise invalid(resource_named(resource), name_of(old), [cause])


def keep_system_fields(metadata: Obj, old: Obj) -> None:
    """Keep the metadata that only the API server sets."""
    for key in _SYSTEM_FIELDS:
        if key in old["metadata"]:
            metadata[key] = old["metadata"][key]
        else:
            metadata.pop(key, None)


def keep_other_half(kind: Resource, new: Obj, old: Obj, subresource: str | None) -> None:
    """Keep the other half: a write to the object keeps its status, a write to its status keeps the rest."""
    if subresource == "status":
        for key in [*new, *old]:
            if key not in ("metadata", "status", "apiVersion", "kind"):
                _keep(key, new, old)
        if kind.plural == "pods":  # kube-apiserver: old kubelets corrupted them
            _keep("ownerReferences", new["metadata"], old["metadata"])
    elif subresource == "resize":
        _keep_but_resources(new, old)
    elif kind.has_status:
        _keep("status", new, old)


def _keep_but_resources(new: Obj, old: Obj) -> None:
    """Keep everything but the resources of containers: the pod is resized in place."""
    spec: Obj = copied(old["spec"])
    for part in ("containers", "initContainers"):
        wanted = {entry.get("name"): entry for entry in (new.get("spec") or {}).get(part) or []}
        for container in spec.get(part) or []:
            if container["name"] in wanted and (part == "containers" or container.get("restartPolicy") == "Always"):
                for key in ("resources", "resizePolicy"):
                    _keep(key, container, wanted[container["name"]])
    new["metadata"].clear()
    new["metadata"].update(copied(old["metadata"]))
    _keep("status", new, old)
    new["spec"] = spec


def _keep(key: str, new: Obj, old: Obj) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)
