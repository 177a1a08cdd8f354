"""Adapters that most functions never use: imported and built at their first call, so that the other functions start
cold without them. Each `*_of` function below imports and builds one; its return type is checked against the port.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from leeward.adapters.aws.clients import AwsClients
    from leeward.adapters.aws.table import DynamoTable
    from leeward.adapters.pauses import KnownPauses
    from leeward.adapters.settings import ServedCluster
    from leeward.ports.autoscaling import GroupChanges, Maxima
    from leeward.ports.clock import Clock
    from leeward.ports.compute import LaunchSources, PriceList, Templates
    from leeward.ports.eks import KnownNodegroups, ManagedUpdates, Nodegroups
    from leeward.ports.executions import PastExecutions
    from leeward.ports.monitoring import Alarms, LoadBalancers, RecoveryController, ServiceLimits
    from leeward.ports.raw import RawAws
    from leeward.ports.records import Catalog, Disruptions, PauseSwitches, PolicyStore, Upgrades

P = ParamSpec("P")
T = TypeVar("T")


def lazy(build: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return a stand-in for `build(*arguments, **named)`, which is called when one of its methods is."""
    return cast(T, _Lazy(lambda: build(*arguments, **named)))


class _Lazy:
    def __init__(self, build: Callable[[], object]) -> None:
        self._build = build
        self._built: object = None
        self._lock = threading.Lock()  # fn interruption works in threads; a cache that is built twice forgets

    def __getattr__(self, attribute: str) -> Any:
        with self._lock:
            if self._built is None:
                self._built = self._build()
        return getattr(self._built, attribute)


def price_list_of(clients: AwsClients) -> PriceList:
    """Build the reader of prices and instance types."""
    from leeward.adapters.aws.prices import AwsPriceList

    return AwsPriceList(clients)


def catalog_of(table: DynamoTable) -> Catalog:
    """Build the store of facts that fn sync keeps."""
    from leeward.adapters.aws.catalog import DynamoCatalog

    return DynamoCatalog(table)


def nodegroups_of(clients: AwsClients) -> Nodegroups:
    """Build the reader of managed node groups."""
    from leeward.adapters.aws.nodegroups import EksNodegroups

    return EksNodegroups(clients)


def known_nodegroups_of(
    clients: AwsClients, clock: Clock, *, chance: Callable[[], float], say: Callable[[str], None]
) -> KnownNodegroups:
    """Build the cache of managed node groups. `chance`: 0 to 1, spreads the refreshes; `say`: takes its warnings."""
    from leeward.node_template.cache import NodegroupCache

    return NodegroupCache(nodegroups_of(clients), clock, chance=chance, say=say)


def launches_of(clients: AwsClients) -> LaunchSources:
    """Build the reader of launch templates and configurations."""
    from leeward.adapters.aws.launch_templates import Ec2LaunchSources

    return Ec2LaunchSources(clients)


def load_balancers_of(clients: AwsClients, clock: Clock) -> LoadBalancers:
    """Build the port to Elastic Load Balancing."""
    from leeward.adapters.aws.load_balancers import AwsLoadBalancers

    return AwsLoadBalancers(clients, clock)


def group_changes_of(clients: AwsClients) -> GroupChanges:
    """Build the port through which upgrades change groups."""
    from leeward.adapters.aws.group_changes import AutoScalingGroupChanges

    return AutoScalingGroupChanges(clients)


def maxima_of(table: DynamoTable, scope: str = "") -> Maxima:
    """Build the store of raised maximum sizes of the groups of one account and Region."""
    from leeward.adapters.aws.maxima import DynamoMaxima

    return DynamoMaxima(table, scope)


def templates_of(clients: AwsClients) -> Templates:
    """Build the port to versions of launch templates and images."""
    from leeward.adapters.aws.launch_templates import Ec2Templates

    return Ec2Templates(clients)


def managed_updates_of(clients: AwsClients) -> ManagedUpdates:
    """Build the port to EKS' updates of managed node groups."""
    from leeward.adapters.aws.nodegroups import EksManagedUpdates

    return EksManagedUpdates(clients)


def service_limits_of(clients: AwsClients) -> ServiceLimits:
    """Build the reader of quotas and of what an upgrade needs beside the groups."""
    from leeward.adapters.aws.monitoring import AwsServiceLimits

    return AwsServiceLimits(clients)


def alarms_of(clients: AwsClients) -> Alarms:
    """Build the reader of CloudWatch alarms."""
    from leeward.adapters.aws.monitoring import CloudWatchAlarms

    return CloudWatchAlarms(clients)


def upgrades_of(table: DynamoTable, scope: str = "") -> Upgrades:
    """Build the store of upgrade records of the groups of one account and Region."""
    from leeward.adapters.aws.workflow_records import DynamoUpgrades

    return DynamoUpgrades(table, scope)


def disruptions_of(table: DynamoTable) -> Disruptions:
    """Build the store of disruption records."""
    from leeward.adapters.aws.workflow_records import DynamoDisruptions

    return DynamoDisruptions(table)


def pauses_of(table: DynamoTable) -> PauseSwitches:
    """Build the store of pauses."""
    from leeward.adapters.aws.pauses import DynamoPauses

    return DynamoPauses(table)


def policy_store_of(table: DynamoTable) -> PolicyStore:
    """Build the store of applied policies."""
    from leeward.adapters.aws.applied_policies import DynamoPolicies

    return DynamoPolicies(table)


def known_pauses_of(pauses: PauseSwitches, clock: Clock) -> KnownPauses:
    """Build the cache of the pause switches."""
    from leeward.adapters.pauses import KnownPauses

    return KnownPauses(pauses.read, clock)


def past_executions_of(clients: AwsClients, machines: str) -> PastExecutions:
    """Build the reader of execution histories. `machines`: the ARN that the state machines' names complete."""
    from leeward.adapters.aws.execution_history import StepFunctionsPast

    return StepFunctionsPast(clients, machines)


def raw_aws_of(clients: AwsClients, home: AwsClients, policy_prefix: str, table: str) -> RawAws:
    """Build the reader of AWS' answers for a snapshot folder. `home`: clients of the deployment, for its policies."""
    from leeward.adapters.aws.applied_policies import DynamoPolicies
    from leeward.adapters.aws.raw_output import AwsRawOutput
    from leeward.adapters.aws.table import DynamoTable

    return AwsRawOutput(clients, policy_prefix, DynamoPolicies(DynamoTable(home, table)).read, home)


def recovery_of(clients: AwsClients, served: Sequence[ServedCluster], home: str) -> RecoveryController:
    """Build the reader of zonal shifts. `home`: any ARN of the deployment."""
    from leeward.adapters.aws.recovery import ArcRecoveryController

    return ArcRecoveryController(clients, served, home)
