"""Discovery: the server's versions, groups and resources. It is plain discovery, which kubectl reads as well as the
aggregated one; the OpenAPI documents are those of `openapi`."""

from __future__ import annotations

from local.cluster import openapi
from local.cluster.objects import Obj
from local.cluster.resources import GROUPS, IDENTITY_GROUP, REVIEW_GROUP, VERBS, Resource, in_group, version_of

_REVIEWS = {
    REVIEW_GROUP: ("SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"),
    IDENTITY_GROUP: ("SelfSubjectReview",),
}


def document_at(path: str, version: str) -> Obj | None:
    """Return the answer of a discovery path; None for any other path. `version` is the server's (`v1.36.2`)."""
    found: Obj | None = None
    match [part for part in path.split("/") if part]:
        case ["version"]:
            found = version_info(version)
        case ["api"]:
            found = core_versions()
        case ["api", number]:
            found = resource_list("", number)
        case ["apis"]:
            found = group_list()
        case ["apis", group]:
            found = group_info(group)
        case ["apis", group, number]:
            found = resource_list(group, number)
        case ["openapi", "v3"]:
            found = openapi.index()
        case ["openapi", "v3", "api", number]:
            found = openapi.document("", number)
        case ["openapi", "v3", "apis", group, number]:
            found = openapi.document(group, number)
    return found


def version_info(version: str) -> Obj:
    major, minor = version.removeprefix("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{version}-leeward",
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def core_versions() -> Obj:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list() -> Obj:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in GROUPS]}


def group_info(name: str) -> Obj | None:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name)} if name in GROUPS else None


def _group(name: str) -> Obj:
    number = version_of(name)
    version = {"groupVersion": f"{name}/{number}", "version": number}
    return {"name": name, "versions": [version], "preferredVersion": version}


def resource_list(group: str, version: str) -> Obj | None:
    """Return the APIResourceList of a group version; None for one that does not exist."""
    if version != version_of(group) or (group and group not in GROUPS):
        return None
    if group in _REVIEWS:
        entries = [_review(kind) for kind in _REVIEWS[group]]
    else:
        entries = [entry for resource in in_group(group, version) for entry in _entries(resource)]
    # never "/v1" for the core group: kubectl would look for a group called ""
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": entries}


def _review(kind: str) -> Obj:
    singular = kind.lower()
    return {"name": f"{singular}s", "singularName": singular, "namespaced": False, "kind": kind, "verbs": ["create"]}


def _entries(resource: Resource) -> list[Obj]:
    entry: Obj = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(VERBS),
    }
    if resource.short:
        entry["shortNames"] = list(resource.short)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return [entry, *(_subresource(resource, name) for name in resource.subresources)]


def _subresource(resource: Resource, name: str) -> Obj:
    entry: Obj = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["get", "patch", "update"],
    }
    if name == "eviction":
        # exactly this, or kubectl drain silently deletes instead of evicting
        entry.update(kind="Eviction", group="policy", version="v1", verbs=["create"])
    elif name == "scale":
        entry.update(kind="Scale", group="autoscaling", version="v1")
    elif name == "binding":
        entry.update(kind="Binding", verbs=["create"])
    elif name == "log":
        entry["verbs"] = ["get"]
    elif name == "finalize":
        entry["verbs"] = ["update"]
    return entry
