"""Construction of the real ports; the only place that knows which adapter implements which port.

Calls no AWS API: clients are made when they are first used. A function's ports live as long as its process."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from leeward.adapters import lazy as adapters
from leeward.adapters.aws.access import SESSION_NAME, Access, AssumedRole, NoAccess, OwnCredentials
from leeward.adapters.aws.claims import DynamoClaims
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.clusters import ClusterEntry, EksClusters, cluster_client
from leeward.adapters.aws.executions import StepFunctionsExecutions, StepFunctionsNamedExecutions
from leeward.adapters.aws.groups import AutoScalingGroups
from leeward.adapters.aws.instances import Ec2Instances, Ec2Network
from leeward.adapters.aws.policies import ParameterStorePolicies
from leeward.adapters.aws.queues import SqsDeadLetters, SqsRedelivery
from leeward.adapters.aws.table import DynamoTable
from leeward.adapters.lazy import lazy
from leeward.adapters.settings import KubernetesAccess, ServedCluster, Settings
from leeward.adapters.telemetry import event_lost, throttled
from leeward.model.well_known import DISRUPTION, MANAGED_UPGRADE, TERMINATION, UPGRADE
from leeward.ports import AwsPorts, Ports
from leeward.telemetry import Telemetry
from leeward.time_budget import TimeBudget

if TYPE_CHECKING:
    from leeward.adapters.caller import Elsewhere
    from leeward.adapters.places import Accounts
    from leeward.ports.clock import Clock
    from leeward.ports.doctor import DeploymentReader
    from leeward.ports.executions import PastExecutions
    from leeward.ports.places import AwsPlace
    from leeward.ports.raw import RawAws
    from leeward.ports.records import PastTerminations

POLICY_PREFIX = "/leeward"
TABLE_NAME = "leeward"
RESERVE_SECONDS = 2.0  # of an invocation: to report how it ended


class SystemClock:
    """`ports.clock.Clock` of a running process."""

    def now(self) -> datetime:
        """Return the present in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)


@cache
def lambda_clients() -> AwsClients:
    """Return the AWS clients of this process's function."""
    return AwsClients(throttled=throttled)


def invocation_ports(context: object) -> Ports:
    """Return the ports of one invocation: its remote calls end before Lambda ends the function, which then reports what
    failed. Without a context (a manual invocation) nothing limits them. A process serves one invocation at a time.
    """
    ports, remaining = lambda_ports(), getattr(context, "get_remaining_time_in_millis", None)
    if remaining is None:
        return ports
    budget = TimeBudget.of(ports.clock, max(0.0, remaining() / 1000 - RESERVE_SECONDS))
    lambda_clients().serve_until(budget)
    return ports.within(budget)


@cache
def lambda_ports() -> Ports:
    """Build the ports of this process's function. Raises InvalidInputError naming every wrong setting."""
    settings = Settings.from_env(os.environ)
    clients, clock = lambda_clients(), SystemClock()
    session = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", SESSION_NAME)
    accounts = _accounts(settings, clients, clock, session)
    access = _role_of(settings.kubernetes_access, clients, clock, session, accounts)
    entry = ClusterEntry(access=access, event_lost=event_lost, clients_of=accounts.clients_of if accounts else None)
    return build(settings, clients, clock, entry=entry, say=_log, accounts=accounts)


def known_regions() -> frozenset[str]:
    """Return the Regions of EC2 that botocore knows, of every partition."""
    return AwsClients().known_regions()


def command_line_ports(
    cluster: str,
    region: str | None = None,
    account: str | None = None,
    deployment: str = "",
    *,
    profile: str | None = None,
    elsewhere: Elsewhere | None = None,
) -> Ports:
    """Build the ports of `leeward --cluster NAME`: the caller's own credentials (those of `profile` where it is named),
    everything else by its fixed name, that of the usual deployment without `deployment`. `elsewhere`: the account and
    Region of the cluster, None: those of the deployment.

    Without `account` STS returns the caller's. Raises AccessDeniedError without credentials, InvalidInputError without
    a Region or for an unknown profile.
    """
    from leeward.adapters.caller import caller_settings  # late, as below: no function has it

    clients = AwsClients(region, profile)
    settings = caller_settings(cluster, account, clients, deployment, elsewhere)
    return _command_line_ports(settings, clients, elsewhere.clients(profile) if elsewhere else None)


def command_line_past(
    cluster: str,
    region: str | None = None,
    account: str | None = None,
    deployment: str = "",
    *,
    profile: str | None = None,
    elsewhere: Elsewhere | None = None,
) -> tuple[Ports, PastExecutions]:
    """Build the inputs of `leeward report`: the same ports, and the history of Step Functions. Raises as they do."""
    from leeward.adapters.caller import caller_settings

    clients = AwsClients(region, profile)
    settings = caller_settings(cluster, account, clients, deployment, elsewhere)
    past = lazy(adapters.past_executions_of, clients, settings.state_machine_arn.removesuffix(TERMINATION))
    return _command_line_ports(settings, clients, elsewhere.clients(profile) if elsewhere else None), past


def command_line_history(
    cluster: str, region: str | None = None, account: str | None = None, *, profile: str | None = None
) -> tuple[Ports, PastTerminations]:
    """Build the inputs of `leeward metrics`: the ports, and all termination records. Raises as they do."""
    from leeward.adapters.aws.past_terminations import DynamoPastTerminations  # late: no function has it

    ports = command_line_ports(cluster, region, account, profile=profile)
    return ports, DynamoPastTerminations(DynamoTable(AwsClients(region, profile), TABLE_NAME))


def command_line_raw(
    region: str | None = None, *, profile: str | None = None, elsewhere: Elsewhere | None = None
) -> RawAws:
    """Build the reader of AWS for `leeward snapshot`, with the caller's own credentials; policies are the
    deployment's.
    """
    clients = AwsClients(region, profile)
    there = elsewhere.clients(profile) if elsewhere else clients
    return lazy(adapters.raw_aws_of, there, clients, POLICY_PREFIX, TABLE_NAME)


def command_line_deployment(
    region: str | None = None, *, profile: str | None = None, elsewhere: Elsewhere | None = None
) -> DeploymentReader:
    """Build the reader of the deployment for `leeward doctor`, with the caller's own credentials; `elsewhere`: of the
    account and Region of a cluster, in which the deployment has neither function nor table.
    """
    from leeward.adapters.doctor.deployment import AwsDeployment  # late: no function has it
    from leeward.adapters.doctor.rbac import ClusterRbac

    clients, clock = elsewhere.clients(profile) if elsewhere else AwsClients(region, profile), SystemClock()
    own = OwnCredentials(clients)
    return AwsDeployment(
        clients,
        lambda name: ClusterRbac(cluster_client(clients, clock, own, cluster=name, region=clients.region)),
    )


def _command_line_ports(settings: Settings, clients: AwsClients, there: AwsClients | None) -> Ports:
    """Build the ports of one cluster. `there`: the clients of its account and Region, where it is elsewhere."""
    clock, own = SystemClock(), OwnCredentials(there or clients)
    accounts = _accounts(settings, clients, clock, SESSION_NAME, there)
    clients_of = accounts.clients_of if accounts else None
    entry = ClusterEntry(access=lambda _: own, event_lost=_print, clients_of=clients_of)
    ports = build(settings, clients, clock, entry=entry, say=_print, accounts=accounts)
    return replace(ports.of_cluster(settings.clusters[0].name), caller=settings.caller)


def build(
    settings: Settings,
    clients: AwsClients,
    clock: Clock,
    *,
    entry: ClusterEntry,
    say: Callable[[str], None],
    accounts: Accounts | None = None,
) -> Ports:
    """Build every adapter, over the clients of each account and Region. `accounts`: those of clusters elsewhere; `say`
    takes messages that matter although nothing fails.
    """
    table = DynamoTable(clients, settings.table_name)
    policy_store, pauses = lazy(adapters.policy_store_of, table), lazy(adapters.pauses_of, table)
    policies = ParameterStorePolicies(clients, clock, settings.policy_prefix, policy_store)
    known_pauses = lazy(adapters.known_pauses_of, pauses, clock)
    own = _aws_ports(settings, clock, table, say, clients)
    places: tuple[AwsPlace, ...] = ()
    if accounts is not None:
        places = accounts.places(settings.clusters, partial(_aws_ports, settings, clock, table, say))
        own = accounts.nowhere
    return Ports(
        **own.by_name(),
        clock=clock,
        clusters=EksClusters(clients, clock, settings.clusters, policies, known_pauses, entry),
        catalog=lazy(adapters.catalog_of, table),
        claims=DynamoClaims(table, clock, settings.deployment),
        executions=StepFunctionsExecutions(clients, settings.state_machine_arn),
        dead_letters=SqsDeadLetters(clients, settings.dead_letter_queue_url),
        redelivery=SqsRedelivery(clients, settings.queue_url),
        upgrade_executions=_executions_of(UPGRADE, settings, clients),
        managed_upgrade_executions=_executions_of(MANAGED_UPGRADE, settings, clients),
        disruptions=lazy(adapters.disruptions_of, table),
        disruption_executions=_executions_of(DISRUPTION, settings, clients),
        pauses=pauses,
        policy_store=policy_store,
        deployment=settings.deployment,
        queue_arns=settings.queue_arns,
        hook_mark=settings.hook_mark,
        origins=frozenset((cluster.account, cluster.region) for cluster in settings.clusters),
        places=places,
    )


def _aws_ports(
    settings: Settings,
    clock: Clock,
    table: DynamoTable,
    say: Callable[[str], None],
    clients: AwsClients,
    scope: str = "",
) -> AwsPorts:
    """Return the ports that act in the clients' account and Region. `scope`: `ACCOUNT/REGION/`, before the names of
    groups in the table's keys.
    """
    return AwsPorts(
        instances=Ec2Instances(clients, clock),
        network=Ec2Network(clients),
        price_list=lazy(adapters.price_list_of, clients),
        nodegroups=lazy(adapters.known_nodegroups_of, clients, clock, chance=random.random, say=say),
        launches=lazy(adapters.launches_of, clients),
        groups=AutoScalingGroups(clients, clock),
        load_balancers=lazy(adapters.load_balancers_of, clients, clock),
        group_changes=lazy(adapters.group_changes_of, clients),
        maxima=lazy(adapters.maxima_of, table, scope),
        templates=lazy(adapters.templates_of, clients),
        managed_updates=lazy(adapters.managed_updates_of, clients),
        service_limits=lazy(adapters.service_limits_of, clients),
        alarms=lazy(adapters.alarms_of, clients),
        upgrades=lazy(adapters.upgrades_of, table, scope),
        recovery=lazy(adapters.recovery_of, clients, settings.clusters, settings.state_machine_arn),
    )


def _accounts(
    settings: Settings, clients: AwsClients, clock: Clock, session: str, there: AwsClients | None = None
) -> Accounts | None:
    """Return the accounts of the clusters, None where all are in the deployment's own account and Region. `there`:
    clients that act in the clusters' account and Region; None: roles are assumed.
    """
    if there is None and not any(cluster.member_role for cluster in settings.clusters):
        return None
    from leeward.adapters.places import Accounts  # late: most deployments have none

    return Accounts(clients, clock, session=session, there=there)


def _executions_of(machine: str, settings: Settings, clients: AwsClients) -> StepFunctionsNamedExecutions:
    """Build the executions of another state machine of the same deployment."""
    return StepFunctionsNamedExecutions(clients, settings.state_machine_arn.removesuffix(TERMINATION) + machine)


def _log(sentence: str) -> None:
    Telemetry("node-template").warning(sentence)


def _print(sentence: str) -> None:
    sys.stderr.write(f"leeward: {sentence}\n")


def _role_of(
    access: KubernetesAccess, clients: AwsClients, clock: Clock, session: str, accounts: Accounts | None
) -> Callable[[ServedCluster], Access]:
    """Return the choice of a cluster's credentials. Sessions carry the function's name, so that the cluster's audit log
    distinguishes the functions of one role. In another account the session that calls AWS signs in to the cluster too.
    """

    def choose(cluster: ServedCluster) -> Access:
        if access is KubernetesAccess.NONE:
            return NoAccess()
        if accounts is not None and cluster.member_role:
            return OwnCredentials(accounts.clients_of(cluster))
        region = cluster.region or clients.region
        return AssumedRole(clients, clock, role=cluster.role(access), region=region, session=session)

    return choose
