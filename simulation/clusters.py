"""Clusters that the simulated deployment serves."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from leeward.adapters.pauses import KnownPauses
from leeward.policy.document import ClusterPolicies
from leeward.ports.kubernetes import Kubernetes
from leeward.time_budget import TimeBudget
from simulation.faults import Injector
from simulation.timed_calls import TimedKubernetes

if TYPE_CHECKING:
    from simulation.connections import Connections


class SimClusters:
    """`ports.kubernetes.Clusters`. `written`: the policies by cluster, which may be rewritten. Each API has a gate
    of its own, which knows how long an answer takes. `pauses` returns what a new execution environment knows of the
    pause switch, nothing yet; `environment`: the one that calls.
    """

    def __init__(self, pauses: Callable[[], KnownPauses], environment: Callable[[], str]) -> None:
        self._pauses, self._environment = pauses, environment
        self._known: dict[str, KnownPauses] = {}
        self.written: dict[str, ClusterPolicies] = {}
        self._served: dict[str, tuple[Kubernetes, Injector]] = {}
        self.connections: Connections | None = None  # clients in front of the APIs, in worlds about access

    def serve(self, name: str, policies: ClusterPolicies, kubernetes: Kubernetes, gate: Injector) -> None:
        """Add a cluster."""
        self.written[name], self._served[name] = policies, (kubernetes, gate)

    def names(self) -> tuple[str, ...]:
        """Return the names in the order in which they were added."""
        return tuple(self._served)

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the written policies, with the pauses as the calling environment knows them."""
        environment = self._environment()
        if environment not in self._known:
            self._known[environment] = self._pauses()
        pauses, written = self._known[environment].of_cluster(cluster), self.written[cluster]
        return replace(written, pauses=pauses) if pauses.pauses or pauses.due or pauses.unreadable else written

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return its API; each call takes as long as the gate says, and ends with the budget."""
        kubernetes, gate = self._served[cluster]
        timed = cast(Kubernetes, TimedKubernetes(kubernetes, gate, within))
        if self.connections is None:
            return timed
        return self.connections.connect(cluster, timed, self._environment(), within)
