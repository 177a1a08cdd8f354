"""Server-side apply, approximated: ownership is tracked among appliers only.

An applier owns the fields of its last configuration. Fields that it no longer sends are removed unless another
applier owns them; a field that another applier owns with a different value is a conflict, unless forced. Writers that
do not apply (update, patch) own nothing here, so the real server can report conflicts that this one does not.
"""

from __future__ import annotations

import json
from typing import Any

from .errors import ApiError
from .objects import Obj, copied
from .patches import PatchType, merge_key, patched

Path = tuple[str, ...]
_IDENTITY = {"apiVersion", "kind", "managedFields", "name", "namespace", "uid", "resourceVersion", "creationTimestamp"}


def applied(old: Obj | None, configuration: Obj, *, manager: str, force: bool, now: str) -> Obj:
    """Return the object after the apply. Raises 409 with a cause for every conflicting field."""
    base: Obj = copied(old) if old is not None else {"metadata": {}}
    entries = [entry for entry in base["metadata"].get("managedFields") or [] if entry.get("operation") == "Apply"]
    mine = next((entry for entry in entries if entry.get("manager") == manager), None)
    others = [entry for entry in entries if entry is not mine]
    wanted = _leaves(configuration)
    conflicts = _conflicts(base, wanted, others)
    if conflicts and not force:
        raise _refused(conflicts)
    taken = {path for path, _ in conflicts}
    if mine is not None:
        held = {path for entry in others for path in _paths(entry["fieldsV1"])} - taken
        for path in _paths(mine["fieldsV1"]):
            if path not in wanted and path not in held:
                _remove(base, path)
    result = patched(base, configuration, PatchType.STRATEGIC)
    kept = [_without(entry, taken) for entry in others]
    own = _entry(configuration, manager, now, wanted)
    result["metadata"]["managedFields"] = [*(entry for entry in kept if entry["fieldsV1"]), own]
    return result


def _leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Return every field set by a configuration: maps and keyed lists are walked, other lists are one field."""
    found: dict[Path, Any] = {}
    for key, item in value.items():
        if key in _IDENTITY and path in ((), ("f:metadata",)):
            continue
        found.update(_field_leaves(key, item, (*path, f"f:{key}")))
    return found


def _field_leaves(name: str, item: Any, path: Path) -> dict[Path, Any]:
    if isinstance(item, dict) and item:
        return _leaves(item, path)
    key = merge_key(name, item) if isinstance(item, list) else None
    if key is None:
        return {path: item}
    found: dict[Path, Any] = {}
    for entry in item:
        step = "k:" + json.dumps({key: entry.get(key)}, separators=(",", ":"))
        found.update(_leaves(entry, (*path, step)))
    return found


def _paths(tree: Obj, path: Path = ()) -> list[Path]:
    if not tree:
        return [path]
    return [found for key, branch in tree.items() for found in _paths(branch, (*path, key))]


def _tree(paths: list[Path]) -> Obj:
    root: Obj = {}
    for path in paths:
        branch = root
        for step in path:
            branch = branch.setdefault(step, {})
    return root


def _conflicts(base: Obj, wanted: dict[Path, Any], others: list[Obj]) -> list[tuple[Path, str]]:
    found = []
    for entry in others:
        for path in _paths(entry["fieldsV1"]):
            if path in wanted and _value(base, path) != wanted[path]:
                found.append((path, str(entry.get("manager"))))
    return found


def _refused(conflicts: list[tuple[Path, str]]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager}"',
            "field": "." + ".".join(step.removeprefix("f:") for step in path),
        }
        for path, manager in conflicts
    ]
    count = f"{len(conflicts)} conflict" + ("s" if len(conflicts) > 1 else "")
    listed = ", ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    return ApiError(409, "Conflict", f"Apply failed with {count}: {listed}", details={"causes": causes})


def _step(value: Any, step: str) -> Any:
    if step.startswith("f:"):
        return value.get(step[2:]) if isinstance(value, dict) else None
    wanted = json.loads(step[2:])
    entries = value if isinstance(value, list) else []
    return next((entry for entry in entries if all(entry.get(k) == v for k, v in wanted.items())), None)


def _value(base: Obj, path: Path) -> Any:
    value: Any = base
    for step in path:
        value = _step(value, step)
    return value


def _remove(base: Obj, path: Path) -> None:
    holder = _value(base, path[:-1])
    if isinstance(holder, dict) and path[-1].startswith("f:"):
        holder.pop(path[-1][2:], None)
    if not holder and len(path) > 2 and path[-2].startswith("f:"):
        _remove(base, path[:-1])


def _without(entry: Obj, taken: set[Path]) -> Obj:
    kept = [path for path in _paths(entry["fieldsV1"]) if path not in taken]
    return {**entry, "fieldsV1": _tree(kept)}


def _entry(configuration: Obj, manager: str, now: str, wanted: dict[Path, Any]) -> Obj:
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": configuration.get("apiVersion", "v1"),
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": _tree(list(wanted)),
    }
