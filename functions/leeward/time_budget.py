"""Time limits of one invocation: of its remote calls together, and of its searches. Passed down, never a global.

A call whose budget is spent fails at once with a RetryableError, so that its caller still has the time to report it. A
search whose time is used up returns the best result so far."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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


class SearchTime:
    """Time of one search, whose best result counts when it ends. `ended`: the time ended it or a part of it.

    `more`: a further limit, asked before each try. Without a budget nothing but that limits the search.
    """

    def __init__(
        self,
        budget: TimeBudget | None = None,
        *,
        more: Callable[[], bool] | None = None,
        whole: SearchTime | None = None,
    ) -> None:
        self.budget, self.ended = budget, False
        self._more, self._whole = more, whole

    def more(self) -> bool:
        """Return whether another try may begin."""
        return self.in_time() and (self._more is None or self._more() or self._note())

    def in_time(self) -> bool:
        """Return whether a try that has begun may go on."""
        return self.budget is None or self.budget.left > 0 or self._note()

    def part(self, share: float) -> SearchTime:
        """Return the time of a part of the search: that share of what is left now."""
        budget = None if self.budget is None else self.budget.part(self.budget.left * share)
        return SearchTime(budget, more=self._more, whole=self)

    def _note(self) -> bool:
        self.ended = True
        if self._whole is not None:
            self._whole._note()
        return False


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
