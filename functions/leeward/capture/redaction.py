"""Fields of a Kubernetes object that a snapshot folder keeps, so that no secret travels with it.

Decides what is dropped: bookkeeping that no command reads, and the places in which people leave passwords: the literal
values of environment variables, commands and their arguments, probes and lifecycle handlers (their headers), and the
annotations of pods except those that decisions read. The variables of the VPC CNI's DaemonSet stay: they are its
settings. User data of launch templates is not handled here, and stays: nodes are compared with it."""

from collections.abc import Mapping
from typing import Any

from leeward.disruption.do_not_disrupt import DO_NOT_DISRUPT, DO_NOT_EVICT
from leeward.model.well_known import DISRUPTION_WINDOW, MIRROR_POD, POD_DELETION_COST, SAFE_TO_EVICT
from leeward.placement.cni import CONTAINER, DAEMON_SET
from leeward.ports.kubernetes import Listed

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # the whole object once more, with all that is dropped
READ_OF_PODS = frozenset(
    {*DO_NOT_DISRUPT, DO_NOT_EVICT, DISRUPTION_WINDOW, SAFE_TO_EVICT, POD_DELETION_COST, MIRROR_POD}
)
_RUNS = frozenset({"command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"})
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def kept(what: Listed, api_version: str, kind: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object as `kubectl get -o json` prints it, without the dropped fields."""
    found = {"apiVersion": api_version, "kind": kind, **raw, "metadata": _metadata(raw["metadata"])}
    match what:
        case Listed.PODS:
            return _pod(found, variables_of="")
        case Listed.DAEMON_SETS:
            meta, spec = raw["metadata"], raw.get("spec") or {}
            of_cni = f"{meta.get('namespace', 'default')}/{meta['name']}" == DAEMON_SET
            template = _pod(spec.get("template") or {}, variables_of=CONTAINER if of_cni else "")
            return {**found, "spec": {**spec, "template": template}}
        case _:
            return found


def _metadata(raw: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in raw.items() if key != "managedFields"}
    if "annotations" in found:
        found["annotations"] = {key: value for key, value in (found["annotations"] or {}).items() if key != APPLIED}
    return found


def _pod(raw: Mapping[str, Any], *, variables_of: str) -> dict[str, Any]:
    """Reduce a pod or the template of one. `variables_of`: the container whose variables keep their values."""
    meta, spec = dict(raw.get("metadata") or {}), dict(raw.get("spec") or {})
    if "annotations" in meta:
        meta["annotations"] = {key: value for key, value in (meta["annotations"] or {}).items() if key in READ_OF_PODS}
    for name in _CONTAINERS:
        if spec.get(name):
            spec[name] = [_container(one, variables_of=variables_of) for one in spec[name]]
    return {**raw, "metadata": meta, "spec": spec}


def _container(raw: Mapping[str, Any], *, variables_of: str) -> dict[str, Any]:
    found = {key: value for key, value in raw.items() if key not in _RUNS}
    if raw.get("env") and not (variables_of and raw.get("name") == variables_of):
        found["env"] = [{key: value for key, value in one.items() if key != "value"} for one in raw["env"]]
    return found
