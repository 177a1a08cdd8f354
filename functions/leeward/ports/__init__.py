"""Ports to the outside, as small Protocols: the seam at which Lambda, the simulation and tests differ.

`adapters/wiring.py` alone builds the real ones. Every method is idempotent or says what repeats it; each may raise
`RetryableError` (call again later) and `AccessDeniedError`. The types of arguments and answers are imported for the
type checker alone, so that a function's cold start does not load types it never uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from leeward.model import well_known
from leeward.time_budget import BoundedClusters, TimeBudget

if TYPE_CHECKING:
    from leeward.ports.autoscaling import GroupChanges, Groups, Maxima
    from leeward.ports.clock import Clock
    from leeward.ports.compute import Instances, LaunchSources, Network, PriceList, Templates
    from leeward.ports.eks import KnownNodegroups, ManagedUpdates
    from leeward.ports.executions import Executions, NamedExecutions
    from leeward.ports.kubernetes import Clusters
    from leeward.ports.load_balancers import LoadBalancers
    from leeward.ports.monitoring import Alarms, ServiceLimits
    from leeward.ports.queues import DeadLetters, Redelivery
    from leeward.ports.records import Catalog, Claims, Disruptions, PauseSwitches, PolicyStore, Upgrades
    from leeward.ports.recovery import RecoveryController


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """All ports; a step takes those that it needs. `queue_arns`: the interruption queue and the hook topics, which
    identify Leeward's hooks. `hook_mark`: what fn sync marks its hooks with. `deployment`: the id of this one, the
    owner of its taints and records.
    `origins`: (account, region) of every cluster, empty strings for any; no pair at all: not checked. `budget`: what is
    left of the invocation for remote calls, None without a limit.
    """

    clock: Clock
    clusters: Clusters
    instances: Instances
    network: Network
    price_list: PriceList
    catalog: Catalog
    nodegroups: KnownNodegroups
    launches: LaunchSources
    groups: Groups
    claims: Claims
    executions: Executions
    dead_letters: DeadLetters
    redelivery: Redelivery
    load_balancers: LoadBalancers
    group_changes: GroupChanges
    maxima: Maxima
    templates: Templates
    managed_updates: ManagedUpdates
    service_limits: ServiceLimits
    alarms: Alarms
    upgrades: Upgrades
    upgrade_executions: NamedExecutions
    managed_upgrade_executions: NamedExecutions
    disruptions: Disruptions
    disruption_executions: NamedExecutions
    pauses: PauseSwitches
    policy_store: PolicyStore
    recovery: RecoveryController
    deployment: str
    queue_arns: frozenset[str] = frozenset()
    hook_mark: str = well_known.HOOK_MARK
    origins: frozenset[tuple[str, str]] = frozenset()
    budget: TimeBudget | None = None

    def within(self, budget: TimeBudget) -> Self:
        """Return the same ports, whose Kubernetes calls end with the budget or with the present one, whichever is
        earlier.
        """
        narrower = budget.narrower(self.budget)
        return replace(self, budget=narrower, clusters=BoundedClusters(self.clusters, narrower))

    def for_seconds(self, seconds: float) -> Self:
        """Return the ports `within` a budget that begins now."""
        return self.within(TimeBudget.of(self.clock, seconds))
