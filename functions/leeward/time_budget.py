"""Time limit of the remote calls of one invocation together: passed down with the ports, never a global.

A call whose budget is spent fails at once with a RetryableError, so that its caller still has the time to report it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leeward.policy.document import ClusterPolicies
    from leeward.ports.clock import Clock
    from leeward.ports.kubernetes import Clusters, Kubernetes


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBudget:
    """Instant at which the last call has to be over."""

    clock: Clock
    ends: datetime

    @classmethod
    def of(cls, clock: Clock, seconds: float) -> TimeBudget:
        """Return a budget that begins now."""
        return cls(clock=clock, ends=clock.now() + timedelta(seconds=seconds))

    @property
    def left(self) -> float:
        """Seconds until it is spent, 0 once it is."""
        return max(0.0, (self.ends - self.clock.now()).total_seconds())

    def part(self, seconds: float) -> TimeBudget:
        """Return a budget for one topic: so many seconds from now, and never more than what is left of this one."""
        return self.narrower(TimeBudget.of(self.clock, seconds))

    def narrower(self, other: TimeBudget | None) -> TimeBudget:
        """Return the budget that ends first."""
        return self if other is None or self.ends <= other.ends else other


class BoundedClusters:
    """`ports.kubernetes.Clusters` whose Kubernetes calls end with a budget."""

    def __init__(self, clusters: Clusters, budget: TimeBudget) -> None:
        self._clusters = clusters
        self._budget = budget

    def names(self) -> tuple[str, ...]:
        """Return the names in the settings' order."""
        return self._clusters.names()

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the cluster's policies."""
        return self._clusters.policies(cluster)

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return a client whose calls end with the budget, or with `within` where that ends earlier."""
        return self._clusters.kubernetes(cluster, within=self._budget.narrower(within))
