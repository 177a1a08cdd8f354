"""`kubectl auth can-i` and `whoami`: access reviews, in JSON or in the protobuf that kubectl sends in any case.

Of protobuf only the parts that these two messages need are read: strings in nested messages.
"""

from __future__ import annotations

import json

from local.cluster import protobuf
from local.cluster.errors import bad_request
from local.cluster.objects import Obj
from local.cluster.paths import Target
from local.cluster.rbac import Authorizer
from local.cluster.resources import BY_PLURAL, IDENTITY_GROUP
from local.cluster.users import User

_RESOURCE_FIELDS = {1: "namespace", 2: "verb", 3: "group", 4: "version", 5: "resource", 6: "subresource", 7: "name"}
_PATH_FIELDS = {1: "path", 2: "verb"}


def review(authorizer: Authorizer, user: User, plural: str, body: bytes) -> Obj:
    """Return the answered review. Raises 400 for a body that cannot be read."""
    if plural == "selfsubjectreviews":
        return _identity(user)
    if plural == "selfsubjectrulesreviews":
        return _rules(authorizer, user, _namespace_asked(body))
    spec = parsed_spec(body)
    if plural == "subjectaccessreviews":
        user = User(name=spec.get("user", ""), groups=tuple(spec.get("groups") or ()))
    allowed = _allowed(authorizer, user, spec)
    kind = "SelfSubjectAccessReview" if plural.startswith("self") else "SubjectAccessReview"
    return {
        "kind": kind,
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": {"allowed": allowed, **({} if allowed else {"reason": "no matching role binding"})},
    }


def _identity(user: User) -> Obj:
    """Return the answer to `kubectl auth whoami`."""
    who = {"username": user.name, "groups": list(user.groups)}
    version = f"{IDENTITY_GROUP}/v1"
    return {"kind": "SelfSubjectReview", "apiVersion": version, "metadata": {}, "status": {"userInfo": who}}


def _allowed(authorizer: Authorizer, user: User, spec: Obj) -> bool:
    path = spec.get("nonResourceAttributes")
    if path:
        return authorizer.allows_path(user, path.get("verb", ""), path.get("path", ""))
    asked = spec.get("resourceAttributes") or {}
    plural = asked.get("resource", "")
    target = Target(
        verb=asked.get("verb", ""),
        group=asked.get("group", ""),
        plural=plural,
        resource=BY_PLURAL.get(plural),
        namespace=asked.get("namespace") or None,
        name=asked.get("name") or None,
        subresource=asked.get("subresource") or None,
    )
    return authorizer.allows(user, target)


def _rules(authorizer: Authorizer, user: User, namespace: str) -> Obj:
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}] if user.is_master else []
    rules = [*everything, *authorizer.rules(user, namespace)]
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        },
    }


def _namespace_asked(body: bytes) -> str:
    if body.startswith(protobuf.MAGIC):
        spec = dict(_fields(_message(body))).get(2, b"")
        return dict(_fields(spec)).get(1, b"").decode()
    return str((json.loads(body or b"{}").get("spec") or {}).get("namespace") or "")


def parsed_spec(body: bytes) -> Obj:
    """Return the spec of a SelfSubjectAccessReview or SubjectAccessReview."""
    if not body.startswith(protobuf.MAGIC):
        try:
            spec: Obj = json.loads(body or b"{}").get("spec") or {}
        except ValueError as failure:
            raise bad_request(f"the body of a review is neither JSON nor protobuf: {failure}") from failure
        return spec
    fields = dict(_fields(dict(_fields(_message(body))).get(2, b"")))
    if 1 in fields:
        return {"resourceAttributes": _strings(fields[1], _RESOURCE_FIELDS)}
    return {"nonResourceAttributes": _strings(fields.get(2, b""), _PATH_FIELDS)}


def _message(body: bytes) -> bytes:
    """Return the message inside runtime.Unknown: typeMeta = 1, raw = 2."""
    return dict(_fields(body[len(protobuf.MAGIC) :])).get(2, b"")


def _fields(message: bytes) -> list[tuple[int, bytes]]:
    """Return the texts and messages inside; numbers are ignored."""
    return [(number, value) for number, value in protobuf.fields(message) if isinstance(value, bytes)]


def _strings(message: bytes, names: dict[int, str]) -> Obj:
    return {names[number]: value.decode() for number, value in _fields(message) if number in names and value}
