"""What a world is made of, as far as it asks: shapes that `fleets` fills. Decides nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from leeward.policy.document import ClusterPolicies
from simulation.aws.compute import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerPlan:
    """Cluster Autoscaler's settings, in seconds: how long a node is half empty before it may go, the rest after a
    growth, until a node that was kept is looked at again, until an instance has to be registered. `least`: the share of
    a group's first size below which it does not go (its --nodes=MIN:MAX:NAME).
    """

    unneeded_seconds: float = 600
    after_growth_seconds: float = 600
    recheck_seconds: float = 300
    provision_seconds: float = 900
    least: float = 0.7


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
    @property
    def autoscaler(self) -> AutoscalerPlan | None: ...


class ArrivalPlan(Protocol):
    """Something that happens to the fleet: `pick` chooses among those to which it can happen."""

    @property
    def at_seconds(self) -> float: ...
    @property
    def kind(self) -> str: ...
    @property
    def pick(self) -> int: ...
