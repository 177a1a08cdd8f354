"""Policy documents from the Parameter Store: one parameter each, canonical JSON, in the order of their names; where the
deployment has put none there, those that `leeward policy apply` has written."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from leeward.adapters.aws.clients import AwsClients, pages
from leeward.adapters.aws.errors import aws_call
from leeward.adapters.cache import ExpiringCache
from leeward.errors import InvalidPolicyError
from leeward.policy.document import ClusterPolicies

if TYPE_CHECKING:
    from leeward.ports.clock import Clock
    from leeward.ports.records import PolicyStore

POLICIES_LAST = timedelta(seconds=60)


class ParameterStorePolicies:
    """Policies in `{prefix}/CLUSTER/policies/NN-NAME`, read by one GetParametersByPath, else by one read of `applied`;
    kept for 60 s.
    """

    def __init__(self, clients: AwsClients, clock: Clock, prefix: str, applied: PolicyStore) -> None:
        self._clients = clients
        self._applied = applied
        self._prefix = prefix.rstrip("/")
        self._kept: ExpiringCache[str, ClusterPolicies] = ExpiringCache(clock, POLICIES_LAST)

    def of_cluster(self, cluster: str) -> ClusterPolicies:
        """Return all policies of the cluster. Raises InvalidPolicyError naming the parameter."""
        return self._kept.get(cluster, lambda: self._read(cluster))

    def _read(self, cluster: str) -> ClusterPolicies:
        from leeward.policy.parse import parse_documents  # late: cron lines and time zones cost a tenth of boto3

        path = f"{self._prefix}/{cluster}/policies"
        found: dict[str, str] = {}
        with aws_call("ssm:GetParametersByPath", path):
            for page in pages(self._clients.get("ssm"), "get_parameters_by_path", Path=path):
                found.update((raw["Name"], raw["Value"]) for raw in page.get("Parameters", ()))
        if found:
            return parse_documents([(name, _document(name, found[name])) for name in sorted(found)], cluster=cluster)
        applied = self._applied.read(cluster)
        named = [(f"policy apply, version {applied.version}: {name}", text) for name, text in applied.documents]
        parsed = parse_documents([(name, _document(name, text)) for name, text in named], cluster=cluster)
        return replace(parsed, applied=applied.version if applied.documents else 0)


def _document(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidPolicyError(f"{name}: found no JSON ({error}), expected a policy document") from error
