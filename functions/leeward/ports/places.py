"""Places of a deployment: each account and Region in which it serves clusters, with the AWS ports that act there.

A deployment in one account and Region has none. One with several acts only through the ports of a place, which know the
clusters of that place alone: whatever names another account's cluster is refused before AWS or Kubernetes is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from leeward.errors import InvalidInputError
from leeward.ports import AwsPorts

if TYPE_CHECKING:
    from leeward.policy.document import ClusterPolicies
    from leeward.ports.kubernetes import Clusters, Kubernetes
    from leeward.time_budget import TimeBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsPlace:
    """Account and Region, the clusters that are served there, and the ports that act there."""

    account: str
    region: str
    clusters: tuple[str, ...]
    aws: AwsPorts

    @property
    def name(self) -> str:
        """Name of the place for messages and keys: `222233334444/eu-west-1`."""
        return f"{self.account}/{self.region}"


class ClustersOfPlace:
    """`ports.kubernetes.Clusters` of one place. Raises InvalidInputError for a cluster of any other."""

    def __init__(self, clusters: Clusters, names: Sequence[str]) -> None:
        self._clusters = clusters
        self._names = tuple(names)

    def names(self) -> tuple[str, ...]:
        """Return the names of the clusters of the place, in the order of the settings."""
        return self._names

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the policies of one of them."""
        return self._clusters.policies(self._known(cluster))

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return the API of one of them."""
        return self._clusters.kubernetes(self._known(cluster), within=within)

    def _known(self, cluster: str) -> str:
        if cluster not in self._names:
            expected = ", ".join(self._names) or "none"
            raise InvalidInputError(f"found cluster {cluster!r} of another account or Region, expected: {expected}")
        return cluster


class Nowhere:
    """AWS port of a deployment with several accounts before a cluster is named: every call raises InvalidInputError."""

    def __getattr__(self, attribute: str) -> Any:
        def refuse(*_: object, **__: object) -> NoReturn:
            raise InvalidInputError(f"{attribute}: found no cluster, expected one that names the account to act in")

        return refuse


def ports_of_no_account() -> AwsPorts:
    """Return the ports of a deployment with several accounts before a cluster is named."""
    refusing: Any = Nowhere()
    return AwsPorts(**dict.fromkeys(AwsPorts.names(), refusing))
