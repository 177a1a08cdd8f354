"""Fields of an object that `leeward snapshot` writes, so that no secret travels with the folder.

Decides by what is read, and not by where secrets are known to be: of Kubernetes objects a folder holds the fields that
`schema.json` names, which are those that commands read, and nothing else. Fields that Kubernetes will have tomorrow are
left out with them. Labels and annotations are maps of anything: they are kept for the kinds, and annotations by the
keys, that commands read. All annotations of Nodes stay, because a policy may name any.

AWS's answers stay as they are. The place for secrets in them is user data, which drift and the labels of new nodes
follow from: it stays as well, unless the snapshot is to be without it."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from leeward.adapters.folder.schema import definition
from leeward.disruption.do_not_disrupt import DO_NOT_DISRUPT, DO_NOT_EVICT
from leeward.model.launch import USER_DATA_LEFT_OUT
from leeward.model.well_known import DISRUPTION_WINDOW, MIRROR_POD, POD_DELETION_COST, SAFE_LOCAL_VOLUMES, SAFE_TO_EVICT
from leeward.placement.cni import CONTAINER, DAEMON_SET, VARIABLES

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # the whole object once more, with all that is dropped
READ_OF_PODS = frozenset(
    {*DO_NOT_DISRUPT, DO_NOT_EVICT, DISRUPTION_WINDOW, SAFE_TO_EVICT, SAFE_LOCAL_VOLUMES, POD_DELETION_COST, MIRROR_POD}
)
LABELLED = frozenset({"nodes", "pods", "pvs", "namespaces"})  # files of objects whose labels are read
Reduce = Callable[[Any], Any]


def kept(name: str, raw: Mapping[str, Any], *, user_data: bool = True) -> dict[str, Any]:
    """Return what the file NAME.json keeps of an element. `user_data` False: without that of launch templates and
    launch configurations.
    """
    match name:
        case "launch-template-versions":
            data = raw.get("LaunchTemplateData") or {}
            return dict(raw) if user_data else {**raw, "LaunchTemplateData": _without_user_data(data)}
        case "launch-configurations":
            return dict(raw) if user_data else _without_user_data(raw)
    found: dict[str, Any] = _reduction(name)(raw)
    found["metadata"] = _metadata(name, found["metadata"])
    if name == "daemonsets":
        _keep_variables(found)
    return found


def _without_user_data(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {**raw, "UserData": USER_DATA_LEFT_OUT} if raw.get("UserData") else dict(raw)


def _metadata(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    notes = found.get("annotations") or {}
    kept = {key: value for key, value in notes.items() if _is_read(name, key)}
    others = {key: value for key, value in found.items() if key != "annotations"}
    if name not in LABELLED:
        others.pop("labels", None)
    return {**others, "annotations": kept} if kept else others


def _is_read(name: str, annotation: str) -> bool:
    return annotation in READ_OF_PODS if name == "pods" else name == "nodes" and annotation != APPLIED


def _keep_variables(found: dict[str, Any]) -> None:
    """Remove the variables of containers, except those of the VPC CNI's that are its settings. `found` is a copy."""
    meta = found["metadata"]
    of_cni = f"{meta.get('namespace', 'default')}/{meta['name']}" == DAEMON_SET
    spec = (found.get("spec") or {}).get("template", {}).get("spec") or {}
    for container in spec.get("containers") or ():
        variables = container.pop("env", None) or ()
        if of_cni and container.get("name") == CONTAINER:
            container["env"] = [one for one in variables if one.get("name") in VARIABLES]


@cache
def _reduction(name: str) -> Reduce:
    """Return the function that reduces a value to what the definition of that name in `schema.json` has."""
    return _compiled(definition(name))


def _compiled(schema: Mapping[str, Any]) -> Reduce:
    if "$ref" in schema:
        return _reduction(schema["$ref"].rpartition("/")[2])
    match schema.get("type"):
        case "array":
            return _each(_compiled(schema["items"]))
        case "object":
            inner = {key: _compiled(value) for key, value in schema.get("properties", {}).items()}
            others = schema.get("additionalProperties")
            return _mapping(inner, _compiled(others) if others else None)
        case _:
            return _plain


def _mapping(inner: Mapping[str, Reduce], others: Reduce | None) -> Reduce:
    """Return the reduction of a mapping. `others`: that of values whose keys are not named; None: they are dropped."""

    def reduce(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return _plain(value)
        if others is not None:
            return {key: inner.get(key, others)(one) for key, one in value.items()}
        return {key: reduction(value[key]) for key, reduction in inner.items() if key in value}

    return reduce


def _each(inner: Reduce) -> Reduce:
    return lambda value: [inner(one) for one in value] if isinstance(value, list) else _plain(value)


def _plain(value: Any) -> Any:
    """Return a value without parts; anything else is dropped, as it is not what the schema says."""
    return None if isinstance(value, Mapping | list) else value
