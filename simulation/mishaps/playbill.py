"""Mishaps by the feature that puts them into a world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Protocol

from simulation.features import Feature
from simulation.mishaps.access import DeletedCluster, RefusedTokens
from simulation.mishaps.boot_deaths import BootDeaths
from simulation.mishaps.deletions import DeletedGroups, DeletedTemplates
from simulation.mishaps.karpenter import KarpenterNodes
from simulation.mishaps.lost_policies import LostPolicies
from simulation.mishaps.owners import InstanceRefreshes, LimitsChange, Replicas
from simulation.mishaps.pods import LateBindings, OldCaches
from simulation.mishaps.reversals import CanceledMaintenance, LiftedTaints
from simulation.mishaps.versions import TwoVersions

if TYPE_CHECKING:
    from simulation.site import Site
    from simulation.world import World


class Mishap(Protocol):
    """Event that happens to a cluster `every` so many seconds, unless nothing is there for it."""

    @property
    def every(self) -> float: ...

    def play(self) -> None: ...


MISHAPS: Mapping[Feature, Callable[[World | Site, Random], Mishap]] = {
    Feature.BOOT_DEATHS: BootDeaths,
    Feature.POLICIES_LOST: LostPolicies,
    Feature.GROUPS_DELETED: DeletedGroups,
    Feature.TEMPLATES_DELETED: DeletedTemplates,
    Feature.LATE_PODS: LateBindings,
    Feature.LIFTED: LiftedTaints,
    Feature.CANCELED: CanceledMaintenance,
    Feature.LIMITS_CHANGE: LimitsChange,
    Feature.REFRESHES: InstanceRefreshes,
    Feature.REPLICAS_CHANGE: Replicas,
    Feature.OLD_CACHE: OldCaches,
    Feature.KARPENTER: KarpenterNodes,
    Feature.TOKENS_REFUSED: RefusedTokens,
    Feature.CLUSTER_DELETED: DeletedCluster,
    Feature.TWO_VERSIONS: TwoVersions,
}
