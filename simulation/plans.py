"""Plans that a world needs: shapes that `fleets` fills. Decides nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from leeward.policy.document import ClusterPolicies
from simulation.aws.compute import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerPlan:
    """Settings of Cluster Autoscaler, in seconds: how long a node is half empty before it may be removed, the rest
    after a growth, until a node that was kept is checked again, until an instance has to be registered. `least`: the
    share of a group's first size below which it does not go (its --nodes=MIN:MAX:NAME).
    """

    unneeded_seconds: float = 600
    after_growth_seconds: float = 600
    recheck_seconds: float = 300
    provision_seconds: float = 900
    least: float = 0.7


class Player(Protocol):
    """Source of what happens in a world. `over`: it begins nothing any more."""

    over: bool

    def begin(self) -> None: ...


class FleetPlan(Protocol):
    """Plan of one cluster with its groups, workloads (raw Kubernetes objects) and policies."""

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
    """Plan of an event that hits the fleet: `pick` chooses among those to which it can happen."""

    @property
    def at_seconds(self) -> float: ...
    @property
    def kind(self) -> str: ...
    @property
    def pick(self) -> int: ...
