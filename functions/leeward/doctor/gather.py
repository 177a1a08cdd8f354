"""Reads of a deployment. All of them are made, whether or not others fail, and none changes anything.

Decides which reads are made, which permission each needs, and which clusters the deployment serves: the environment
that its functions share names them. `doctor.checks` decides what the facts mean."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from leeward.doctor import expected
from leeward.doctor.facts import CallerIdentity, ClusterNetwork, Facts, Function, InspectedCluster, Served
from leeward.doctor.gather_cluster import inspect_cluster
from leeward.doctor.reading import ErrorCause, Read, UnreadFact, read, read_each
from leeward.model.termination import Status, TerminationRecord
from leeward.ports import Ports
from leeward.ports.doctor import DeploymentReader
from leeward.ports.records import Claims

FUNCTION_ERROR_WINDOW = timedelta(hours=1)
EXECUTION_FAILURE_WINDOW = timedelta(days=1)
NO_CLUSTER = UnreadFact(
    permission="lambda:GetFunction", reason="no cluster of the deployment is known", cause=ErrorCause.FAILED
)

PortsOf = Callable[[str], Ports]


def gather(
    deployment: DeploymentReader,
    ports_of: PortsOf,
    identity: CallerIdentity,
    *,
    requested_cluster: str | None,
    now: datetime,
    there: DeploymentReader | None = None,
) -> Facts:
    """Gather the facts. `ports_of`: a cluster's ports, by its name; `requested_cluster`: the only cluster to read,
    None: all. `there`: the reader of the account and Region of that cluster, with the caller's credentials in it;
    without it only clusters at home are read.
    """
    functions = read_each(expected.FUNCTIONS, "lambda:GetFunction", deployment.function)
    settings = environment(functions.values())
    served = clusters_of(settings)
    wanted = _wanted(served, requested_cluster)
    elsewhere = tuple(cluster for _, cluster in wanted if cluster is not None and cluster.member_role)
    reached = tuple((name, cluster) for name, cluster in wanted if there is not None or cluster not in elsewhere)
    clusters = _clusters(there or deployment, ports_of, reached, queue_arns_of(settings))
    first = ports_of(wanted[0][0]) if wanted else None
    return Facts(
        now=now,
        identity=identity,
        requested_cluster=requested_cluster,
        serves=None if served is None else tuple(cluster.name for cluster in served),
        concurrency=read("lambda:GetAccountSettings", deployment.concurrency),
        functions=functions,
        network=_network(deployment, functions),
        clusters=clusters,
        elsewhere=elsewhere,
        accounts=read_each(expected.ACTING, "lambda:InvokeFunction", deployment.accounts) if elsewhere else {},
        records=_records(first.claims) if first else NO_CLUSTER,
        running=read("states:ListExecutions", first.executions.all_running) if first else NO_CLUSTER,
        raw_subscriptions=_raw_subscriptions(deployment, settings),
        **_parts(deployment, functions, now),
    )


def _raw_subscriptions(deployment: DeploymentReader, settings: Mapping[str, str]) -> dict[str, Read[tuple[str, ...]]]:
    return read_each(
        topics_of(settings),
        "sns:ListSubscriptionsByTopic and sns:GetSubscriptionAttributes",
        lambda topic: tuple(deployment.raw_subscriptions(topic, settings.get("QUEUE_ARN", ""))),
    )


def _network(deployment: DeploymentReader, functions: dict[str, Read[Function | None]]) -> Read[ClusterNetwork | None]:
    """Read the VPC of the functions, which is the same for all of them; None: they run in none."""
    in_vpc = [function for function in functions.values() if isinstance(function, Function) and function.vpc]
    if not in_vpc:
        return None
    vpc, subnets = in_vpc[0].vpc, in_vpc[0].subnets
    return read("ec2:DescribeVpcEndpoints and ec2:DescribeRouteTables", lambda: deployment.network(vpc, subnets))


def _parts(deployment: DeploymentReader, functions: dict[str, Read[Function | None]], now: datetime) -> dict[str, Any]:
    """Read the fields of `Facts` that belong to neither a cluster nor an execution."""
    rules = read("events:ListRules", lambda: deployment.rules(expected.PREFIX))
    expected_rules = (*expected.RULES, *expected.SCHEDULES)
    existing = expected_rules if isinstance(rules, UnreadFact) else [name for name in expected_rules if name in rules]
    since = now - EXECUTION_FAILURE_WINDOW
    alarms = read("cloudwatch:DescribeAlarms", lambda: deployment.alarms(expected.PREFIX))
    ringing = {} if isinstance(alarms, UnreadFact) else alarms
    topics = sorted({topic for alarm in ringing.values() for topic in alarm.topics})
    return {
        "counts": read(
            "cloudwatch:GetMetricData", lambda: deployment.counts(tuple(functions), now - FUNCTION_ERROR_WINDOW, now)
        ),
        "machines": read_each(expected.MACHINES, "states:DescribeStateMachine", deployment.machine),
        "failures": read_each(
            expected.MACHINES,
            "states:ListExecutions and states:DescribeExecution",
            lambda name: tuple(deployment.failures(name, since)),
        ),
        "sources": read_each(
            expected.SOURCES, "lambda:ListEventSourceMappings", lambda name: tuple(deployment.sources(name))
        ),
        "queues": read_each(expected.QUEUES, "sqs:GetQueueUrl and sqs:GetQueueAttributes", deployment.queue),
        "ages": read_each(
            expected.READ_QUEUES, "cloudwatch:GetMetricData", lambda name: deployment.message_age(name, now)
        ),
        "table": read("dynamodb:DescribeTable", lambda: deployment.table(expected.TABLE)),
        "rules": rules,
        "targets": read_each(existing, "events:ListTargetsByRule", lambda name: tuple(deployment.targets(name))),
        "alarms": alarms,
        "alarm_topics": read_each(
            topics, "sns:GetTopicAttributes, kms:DescribeKey and kms:GetKeyPolicy", deployment.topic_key
        ),
    }


def _wanted(served: tuple[Served, ...] | None, requested: str | None) -> tuple[tuple[str, Served | None], ...]:
    """Return the clusters to read, by name. A cluster that the deployment does not serve is skipped: it has no
    resources of Leeward.
    """
    if served is None:
        return ((requested, None),) if requested else ()
    return tuple((cluster.name, cluster) for cluster in served if requested in {None, cluster.name})


def _clusters(
    deployment: DeploymentReader,
    ports_of: PortsOf,
    wanted: tuple[tuple[str, Served | None], ...],
    queue_arns: frozenset[str],
) -> tuple[InspectedCluster, ...]:
    """Read the clusters of one account and Region; `deployment`: its reader."""
    if not wanted:
        return ()
    groups = read("autoscaling:DescribeAutoScalingGroups", lambda: tuple(deployment.groups()))
    return tuple(
        inspect_cluster(name, served, deployment, ports_of(name), groups, queue_arns) for name, served in wanted
    )


def _records(claims: Claims) -> Read[tuple[TerminationRecord, ...]]:
    def open_records() -> tuple[TerminationRecord, ...]:
        instances = claims.open_instances()
        records = claims.read_all(instances) if instances else {}
        return tuple(record for record in records.values() if record.status is Status.OPEN)

    return read("dynamodb:Query and dynamodb:BatchGetItem", open_records)


def environment(functions: Iterable[Read[Function | None]]) -> dict[str, str]:
    """Return the environment of the first readable function that names its clusters; empty if there is none."""
    for function in functions:
        if function is not None and not isinstance(function, UnreadFact) and function.environment.get("CLUSTERS"):
            return dict(function.environment)
    return {}


def clusters_of(settings: dict[str, str]) -> tuple[Served, ...] | None:
    """Return the clusters that the deployment serves; None: CLUSTERS is missing or not a list of clusters."""
    try:
        listed = json.loads(settings.get("CLUSTERS", ""))
        return tuple(
            Served(
                name=str(raw["name"]),
                roles=_roles(raw),
                account=str(raw.get("account") or ""),
                region=str(raw.get("region") or ""),
                member_role=str(raw.get("memberRole") or ""),
                external_id=str(raw.get("externalId") or ""),
            )
            for raw in listed
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _roles(raw: Mapping[str, Any]) -> dict[str, str]:
    return {role: str(raw[key]) for role, key in expected.ENTERED_AS.items() if raw.get(key)}


def topics_of(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ARNs of `senders.topics`."""
    try:
        return tuple(str(topic) for topic in json.loads(settings.get("HOOK_TOPICS") or "[]"))
    except (ValueError, TypeError):
        return ()


def queue_arns_of(settings: Mapping[str, str]) -> frozenset[str]:
    """Return the ARNs of the queue and the topics; Leeward answers the hooks that notify one of them."""
    queue = {settings["QUEUE_ARN"]} if settings.get("QUEUE_ARN") else frozenset()
    return frozenset(topics_of(settings)) | queue
