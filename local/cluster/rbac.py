"""Role-based access control over the roles and bindings that are stored in the cluster.

Additive, as the real one: a request is allowed when some binding of the user or one of its groups leads to a rule that
matches. Aggregated cluster roles and escalation checks are left out. Allowed requests are counted, so that a test can
compare a role with its use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from local.cluster.errors import ApiError, forbidden
from local.cluster.objects import Obj, namespace_of
from local.cluster.paths import Target
from local.cluster.store import Store
from local.cluster.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED, User

_GROUP = "rbac.authorization.k8s.io"
_DISCOVERY = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/readyz",
    "/openapi",
    "/openapi/*",
    "/version",
    "/version/",
]
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access that a user was allowed. A non-resource request has its path as `resource`."""

    user: str
    verb: str
    group: str
    resource: str


class Authorizer:
    """Authorizer of requests. `clock` in seconds since 1970. The API server answers before its caches of roles are
    filled: until then every user but a member of system:masters is refused.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._filled_at = 0.0
        self.used: Counter[Access] = Counter()

    def restart(self, seconds: float) -> None:
        """Drop the caches; they are filled again after so many seconds (0.2 to 1.1 on a real server)."""
        self._filled_at = self._clock() + seconds

    @property
    def filled(self) -> bool:
        """True when the roles are known, as the health check poststarthook/rbac/bootstrap-roles reports."""
        return self._clock() >= self._filled_at

    def check(self, user: User, target: Target) -> None:
        """Raise 403 in the words of the real server."""
        if not self.allows(user, target):
            raise _refused(user, target)
        access = Access(user=user.name, verb=target.verb, group=target.group, resource=target.authorized_resource)
        self.used[access] += 1

    def check_path(self, user: User, verb: str, path: str) -> None:
        """Raise 403 for paths that are no resources (discovery, health)."""
        if not self.allows_path(user, verb, path):
            raise forbidden(f'forbidden: User "{user.name}" cannot {verb} path "{path}"', {})

    def allows(self, user: User, target: Target) -> bool:
        if user.is_master:
            return True
        return any(_rule_matches(rule, target) for rule in self.rules(user, target.namespace))

    def allows_path(self, user: User, verb: str, path: str) -> bool:
        if user.is_master:
            return True
        return any(_path_matches(rule, verb, path) for rule in self.rules(user, None))

    def rules(self, user: User, namespace: str | None) -> Iterator[Obj]:
        """Return the policy rules that apply to a user, cluster-wide and in that namespace."""
        if not self.filled:
            return
        for binding in self._store.each("clusterrolebindings"):
            if _names(binding, user):
                yield from self._role(binding["roleRef"], None)
        for binding in self._store.each("rolebindings") if namespace else ():
            if namespace_of(binding) == namespace and _names(binding, user):
                yield from self._role(binding["roleRef"], namespace)

    def _role(self, reference: Obj, namespace: str | None) -> list[Obj]:
        if reference["kind"] == "ClusterRole":
            role = self._store.find("clusterroles", reference["name"])
        else:
            role = self._store.find("roles", reference["name"], namespace)
        return (role or {}).get("rules") or []


def _names(binding: Obj, user: User) -> bool:
    return any(_is_subject(subject, binding, user) for subject in binding.get("subjects") or [])


def _is_subject(subject: Obj, binding: Obj, user: User) -> bool:
    match subject.get("kind"):
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            namespace = subject.get("namespace") or namespace_of(binding)
            return user.name == f"system:serviceaccount:{namespace}:{subject['name']}"
        case _:
            return False


def _rule_matches(rule: Obj, target: Target) -> bool:
    if not _covers(rule.get("verbs"), target.verb) or not _covers(rule.get("apiGroups"), target.group):
        return False
    wanted = target.authorized_resource
    resources = rule.get("resources") or []
    star = f"*/{target.subresource}" if target.subresource else ""
    if "*" not in resources and wanted not in resources and star not in resources:
        return False
    names = rule.get("resourceNames")
    return not names or target.name in names


def _covers(values: list[str] | None, wanted: str) -> bool:
    return values is not None and ("*" in values or wanted in values)


def _path_matches(rule: Obj, verb: str, path: str) -> bool:
    if not _covers(rule.get("verbs"), verb):
        return False
    for pattern in rule.get("nonResourceURLs") or []:
        if pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1])):
            return True
    return False


def _refused(user: User, target: Target) -> ApiError:
    qualified = f"{target.plural}.{target.group}" if target.group else target.plural
    about = f'{qualified} "{target.name}"' if target.name else qualified
    where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    message = (
        f'{about} is forbidden: User "{user.name}" cannot {target.verb} resource "{target.authorized_resource}"'
        f' in API group "{target.group}" {where}'
    )
    details: Obj = {"kind": target.plural}
    if target.name:
        details["name"] = target.name
    if target.group:
        details["group"] = target.group
    return forbidden(message, details)


def bootstrap_objects() -> list[tuple[str, Obj]]:
    """Return the default roles and bindings without which no client could even discover the API."""
    reviews = {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    }
    identity = {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}
    everything = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]
    roles: dict[str, tuple[list[Obj], list[str]]] = {
        "cluster-admin": (everything, [MASTERS]),
        "system:discovery": ([{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}], [AUTHENTICATED]),
        "system:basic-user": ([{**reviews, "verbs": ["create"]}, {**identity, "verbs": ["create"]}], [AUTHENTICATED]),
        "system:public-info-viewer": (
            [{"nonResourceURLs": _PUBLIC, "verbs": ["get"]}],
            [AUTHENTICATED, UNAUTHENTICATED],
        ),
    }
    found: list[tuple[str, Obj]] = []
    for name, (rules, groups) in roles.items():
        metadata = {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}
        found.append(("clusterroles", {"metadata": dict(metadata), "rules": rules}))
        subjects = [{"apiGroup": _GROUP, "kind": "Group", "name": group} for group in groups]
        reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name}
        found.append(("clusterrolebindings", {"metadata": dict(metadata), "roleRef": reference, "subjects": subjects}))
    return found
