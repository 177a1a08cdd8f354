"""Ports to the outside, as small Protocols: the seam at which Lambda, the simulation and tests differ.

`adapters/wiring.py` alone builds the real ones. Every method is idempotent or says what repeats it; each may raise
`RetryableError` (call again later) and `AccessDeniedError`. The types of arguments and answers are imported for the
type checker alone, so that a function's cold start does not load types it never uses."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.time_budget import BoundedClusters, TimeBudget

if TYPE_CHECKING:
    from leeward.ports.autoscaling import GroupChanges, Groups, Maxima
    from leeward.ports.clock import Clock
    from leeward.ports.compute import Instances, LaunchSources, Network, PriceList, Templates
    from leeward.ports.eks import KnownNodegroups, ManagedUpdates
    from leeward.ports.executions import DeadLetters, Executions, NamedExecutions, Redelivery
    from leeward.ports.kubernetes import Clusters
    from leeward.ports.monitoring import Alarms, LoadBalancers, RecoveryController, ServiceLimits
    from leeward.ports.places import AwsPlace
    from leeward.ports.records import Catalog, Claims, Disruptions, PauseSwitches, PolicyStore, Upgrades


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsPorts:
    """Ports to the services of one account and Region, and to the records of groups there, whose names may exist in
    others as well.
    """

    instances: Instances
    network: Network
    price_list: PriceList
    nodegroups: KnownNodegroups
    launches: LaunchSources
    groups: Groups
    load_balancers: LoadBalancers
    group_changes: GroupChanges
    maxima: Maxima
    templates: Templates
    managed_updates: ManagedUpdates
    service_limits: ServiceLimits
    alarms: Alarms
    upgrades: Upgrades
    recovery: RecoveryController

    @staticmethod
    def names() -> tuple[str, ...]:
        """Return the names of the AWS ports."""
        return tuple(field.name for field in fields(AwsPorts))

    def by_name(self) -> dict[str, Any]:
        """Return the AWS ports by their names."""
        return {name: getattr(self, name) for name in self.names()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports(AwsPorts):
    """All ports; a step takes those that it needs. The AWS ports act in the one account and Region of the deployment,
    or in those of `place`; where there are several places, in none before one is chosen.
    """

    clock: Clock
    clusters: Clusters
    catalog: Catalog
    claims: Claims
    executions: Executions
    dead_letters: DeadLetters
    redelivery: Redelivery
    upgrade_executions: NamedExecutions
    managed_upgrade_executions: NamedExecutions
    disruptions: Disruptions
    disruption_executions: NamedExecutions
    pauses: PauseSwitches
    policy_store: PolicyStore
    deployment: str  # the id of this one, the owner of its taints and records
    queue_arns: frozenset[str] = frozenset()  # the interruption queue and the hook topics, which identify our hooks
    hook_mark: str = well_known.HOOK_MARK  # what fn sync marks its hooks with
    # (account, region) of every cluster, empty strings for any; no pair at all: not checked
    origins: frozenset[tuple[str, str]] = frozenset()
    budget: TimeBudget | None = None  # what is left of the invocation for remote calls, None without a limit
    places: tuple[AwsPlace, ...] = ()  # accounts and Regions of a deployment that serves several
    place: AwsPlace | None = None
    caller: str = ""  # ARN of the person who calls the command line, as far as it is known

    def of_cluster(self, cluster: str) -> Self:
        """Return the ports that act in the cluster's account and Region, and know the clusters there alone. Raises
        InvalidInputError for a cluster that is in none of the places, or not in the one chosen before.
        """
        if not self.places:
            return self
        place = next((place for place in self.places if cluster in place.clusters), None)
        if place is None or self.place not in {None, place}:
            served = ", ".join(name for place in self.places for name in place.clusters)
            raise InvalidInputError(f"found cluster {cluster!r}, expected one of {served}")
        return self._act_in(place)

    def at(self, account: str, region: str) -> Self:
        """Return the ports of the place that an event names, in which alone it may speak; an empty Region is any one of
        the account. Where no cluster is served there, the ports know no cluster.
        """
        if not self.places:
            return self
        named = (place for place in self.places if place.account == account and region in {"", place.region})
        place = next(named, None)
        return self._act_in(place) if place else replace(self, clusters=self._clusters_named(()))

    def everywhere(self) -> tuple[Self, ...]:
        """Return the ports of each place; for look-ups by a name that does not say where it is."""
        return tuple(self._act_in(place) for place in self.places) or (self,)

    def _act_in(self, place: AwsPlace) -> Self:
        if self.place is place:
            return self
        return replace(
            self,
            **place.aws.by_name(),
            clusters=self._clusters_named(place.clusters),
            origins=frozenset({(place.account, place.region)}),
            place=place,
        )

    def _clusters_named(self, names: tuple[str, ...]) -> Clusters:
        from leeward.ports.places import ClustersOfPlace  # late: most deployments have one account and Region

        return ClustersOfPlace(self.clusters, names)

    def within(self, budget: TimeBudget) -> Self:
        """Return the same ports, whose Kubernetes calls end with the budget or with the present one, whichever is
        earlier.
        """
        narrower = budget.narrower(self.budget)
        return replace(self, budget=narrower, clusters=BoundedClusters(self.clusters, narrower))

    def for_seconds(self, seconds: float) -> Self:
        """Return the ports `within` a budget that begins now."""
        return self.within(TimeBudget.of(self.clock, seconds))
