"""What a world is made of, as far as it asks: shapes that `fleets` fills. Decides nothing."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from leeward.policy.document import ClusterPolicies
from simulation.aws.compute import Plan


class FleetPlan(Protocol):
    """One cluster with its groups, workloads (raw Kubernetes objects) and policies."""

    @property
    def cluster(self) -> str: ...
    @property
    def groups(self) -> Sequence[Plan]: ...
    @property
    def workloads(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def policies(self) -> ClusterPolicies: ...


class ArrivalPlan(Protocol):
    """Something that happens to the fleet: `pick` chooses among those to which it can happen."""

    @property
    def at_seconds(self) -> float: ...
    @property
    def kind(self) -> str: ...
    @property
    def pick(self) -> int: ...
