"""Parsing of a request's URL into its target, as the API server's RequestInfo does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from local.cluster.resources import BY_PLURAL, IDENTITY_GROUP, REVIEW_GROUP, Resource

_WRITING = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Target of a resource request. `verb` is the RBAC verb; `resource` None for review kinds and unknown resources."""

    verb: str
    group: str
    plural: str
    resource: Resource | None
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    @property
    def authorized_resource(self) -> str:
        """Resource as RBAC rules spell it: `pods`, `pods/eviction`."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


def truthy(value: str | None) -> bool:
    """Return a query boolean: any spelling but `0` and `false` is true; absent is false."""
    return value is not None and value.lower() not in ("0", "false", "")


def target_of(method: str, path: str, query: Mapping[str, str]) -> Target | None:
    """Return the resource request behind a URL, None for discovery and other paths."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = rest[0], _part(rest, 1), _part(rest, 2)
    found = BY_PLURAL.get(plural)
    known = found is not None and (found.group, found.version) == (group, version)
    if known and found is not None and subresource and subresource not in found.subresources:
        known = False
    return Target(
        verb=_verb(method, name, query),
        group=group,
        plural=plural,
        resource=found if known else None,
        namespace=namespace,
        name=name,
        subresource=subresource,
    )


def _part(parts: list[str], index: int) -> str | None:
    return parts[index] if len(parts) > index else None


def is_review(target: Target) -> bool:
    return target.group in (REVIEW_GROUP, IDENTITY_GROUP)


def _verb(method: str, name: str | None, query: Mapping[str, str]) -> str:
    if method in ("GET", "HEAD"):
        if truthy(query.get("watch")):
            return "watch"
        return "get" if name else "list"
    if method == "DELETE" and not name:
        return "deletecollection"
    return _WRITING.get(method, method.lower())
