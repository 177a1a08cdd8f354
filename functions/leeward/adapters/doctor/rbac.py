"""`ports.doctor.Rbac` on one cluster's API."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters.kubernetes.answers import ApiRequest
from leeward.adapters.kubernetes.client import ClusterClient
from leeward.doctor.facts import Binding, ClusterRole, Rule
from leeward.errors import ObjectGoneError

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


class ClusterRbac:
    """RBAC objects of a cluster, one GET each."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def version(self) -> str:
        """Read `/version`, which every authenticated caller may read."""
        request = ApiRequest(verb="get", resource="version", path="/version")
        return str(self._client.ask(request).get("gitVersion") or "it answers")

    def cluster_role(self, name: str) -> ClusterRole | None:
        """Read the role's rules one by one."""
        raw = self._get("clusterroles", f"{_RBAC}/clusterroles/{name}")
        return None if raw is None else ClusterRole(rules=_rules(raw))

    def binding(self, name: str) -> Binding | None:
        """Read the binding's role, and the groups among its subjects."""
        raw = self._get("clusterrolebindings", f"{_RBAC}/clusterrolebindings/{name}")
        if raw is None:
            return None
        groups = tuple(one["name"] for one in raw.get("subjects") or () if one.get("kind") == "Group")
        return Binding(role=(raw.get("roleRef") or {}).get("name", ""), groups=groups)

    def aws_auth(self) -> str | None:
        """Read `mapRoles`, a YAML text."""
        raw = self._get("configmaps", "/api/v1/namespaces/kube-system/configmaps/aws-auth")
        return None if raw is None else str((raw.get("data") or {}).get("mapRoles") or "")

    def _get(self, resource: str, path: str) -> Mapping[str, Any] | None:
        try:
            return self._client.ask(ApiRequest(verb="get", resource=resource, path=path))
        except ObjectGoneError:
            return None


def _rules(raw: Mapping[str, Any]) -> frozenset[Rule]:
    """Return the rules that apply to all objects: one with resourceNames allows only some objects, and none of
    Leeward's has a name that is known in advance.
    """
    return frozenset(
        (group, resource, verb)
        for rule in raw.get("rules") or ()
        if not rule.get("resourceNames")
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
        for verb in rule.get("verbs") or ()
    )
