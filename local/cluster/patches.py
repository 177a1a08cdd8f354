"""The patch types of the API server: JSON patch, merge patch, strategic merge patch.

Server-side apply is approximated on top of the strategic merge in `apply.py`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import jsonpatch

from .errors import ApiError, bad_request, unsupported_media
from .objects import Obj, copied


class PatchType(StrEnum):
    """Patch types by the Content-Type that requests them."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


# patchMergeKey of the Go types, by the name of the list. `ports` merges by containerPort in containers, by port in
# services; `taints` and `tolerations` have no merge key and are replaced as a whole, which is why kubectl sends all.
_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "port"),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_MERGED_PRIMITIVES = frozenset({"finalizers", "podCIDRs"})


def patch_type(content_type: str) -> PatchType:
    """Return the patch type. Raises 415 for any other content type."""
    plain = content_type.split(";", 1)[0].strip()
    try:
        return PatchType(plain)
    except ValueError:
        listed = ", ".join(kind.value for kind in PatchType)
        raise unsupported_media(
            f"the body of the request was in an unknown format - accepted media types include: {listed}"
        ) from None


def patched(obj: Obj, patch: Any, kind: PatchType) -> Obj:
    """Return the patched copy of `obj`. Raises 400 or 422 for a patch that does not apply."""
    if kind is PatchType.JSON:
        return _json_patched(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request("a merge patch must be an object")
    merged: Obj = _strategic(copied(obj), copied(patch)) if kind is not PatchType.MERGE else _merged(obj, patch)
    return merged


def _json_patched(obj: Obj, patch: Any) -> Obj:
    try:
        result: Obj = jsonpatch.apply_patch(obj, patch)
    except jsonpatch.JsonPatchTestFailed as failure:
        raise ApiError(
            422, "Invalid", f"the server rejected our request due to an error in our request: {failure}"
        ) from (failure)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError) as failure:
        raise ApiError(422, "Invalid", f"the server rejected our request: {failure}") from failure
    return result


def _merged(target: Any, patch: Any) -> Any:
    """Apply a merge patch by RFC 7386."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _strategic(target: Any, patch: Any) -> Any:
    """Apply a strategic merge of maps: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/x`, `$setElementOrder/x`."""
    if not isinstance(patch, dict):
        return patch
    result: Obj = target if isinstance(target, dict) else {}
    directive = patch.pop("$patch", None)
    if directive in ("replace", "delete"):
        return patch if directive == "replace" else {}
    retained = patch.pop("$retainKeys", None)
    if retained is not None:
        result = {key: value for key, value in result.items() if key in retained}
    orders = {key: patch.pop(key) for key in list(patch) if key.startswith("$setElementOrder/")}
    for key, value in patch.items():
        _merge_key(result, key, value)
    for key, order in orders.items():
        _reorder(result, key.removeprefix("$setElementOrder/"), order)
    return result


def _merge_key(result: Obj, key: str, value: Any) -> None:
    if key.startswith("$deleteFromPrimitiveList/"):
        field = key.removeprefix("$deleteFromPrimitiveList/")
        result[field] = [item for item in result.get(field) or [] if item not in value]
    elif value is None:
        result.pop(key, None)
    elif isinstance(value, list):
        result[key] = _merged_list(key, result.get(key), value)
    else:
        result[key] = _strategic(result.get(key), value)


def _merged_list(field: str, present: Any, patch: list[Any]) -> list[Any]:
    present = present or []
    if field in _MERGED_PRIMITIVES:
        return [*present, *(item for item in patch if item not in present)]
    key = merge_key(field, [*present, *patch])
    if key is None:
        return patch
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    result = list(present)
    for item in patch:
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        _merge_item(result, key, item)
    return result


def _merge_item(result: list[Any], key: str, item: Obj) -> None:
    index = next((i for i, have in enumerate(result) if have.get(key) == item[key]), None)
    if item.get("$patch") == "delete":
        if index is not None:
            del result[index]
    elif index is None:
        result.append(_strategic({}, item))
    else:
        result[index] = _strategic(result[index], item)


def merge_key(field: str, items: list[Any]) -> str | None:
    """Return the key by which a list of maps is merged, None for an atomic list."""
    for key in _MERGE_KEYS.get(field, ()):
        if any(isinstance(item, dict) and key in item for item in items):
            return key
    return None


def _reorder(result: Obj, field: str, order: list[Any]) -> None:
    items = result.get(field)
    if not items:
        return
    key = merge_key(field, items)
    wanted = [entry.get(key) if key and isinstance(entry, dict) else entry for entry in order]

    def position(item: Any) -> int:
        identity = item.get(key) if key else item
        return wanted.index(identity) if identity in wanted else len(wanted)

    result[field] = sorted(items, key=position)
