"""Reads of a deployment: every read is made, whatever the others give. Changes nothing.

Decides which reads there are, which permission each takes, and which clusters the deployment serves: the environment
that all its functions share names them."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from leeward.doctor import expected
from leeward.doctor.facts import Facts, Function, Identity, InspectedCluster, Network, Served
from leeward.doctor.gather_cluster import inspect_cluster
from leeward.doctor.reading import Cause, Read, Unavailable, read, read_each
from leeward.model.group import Group
from leeward.model.termination import Status, TerminationRecord
from leeward.ports import Ports
from leeward.ports.doctor import Deployment
from leeward.ports.records import Claims

ERRORS_OF = timedelta(hours=1)
FAILURES_OF = timedelta(days=1)
NOWHERE = Unavailable(
    permission="lambda:GetFunction", reason="no cluster of the deployment is known", cause=Cause.FAILED
)

PortsOf = Callable[[str], Ports]


def gather(deployment: Deployment, ports_of: PortsOf, identity: Identity, *, asked: str | None, now: datetime) -> Facts:
    """Gather the facts. `ports_of`: a cluster's ports, by its name; `asked`: the only cluster to read, None: all."""
    functions = read_each(expected.FUNCTIONS, "lambda:GetFunction", deployment.function)
    settings = environment(functions.values())
    served = clusters_of(settings)
    groups = read("autoscaling:DescribeAutoScalingGroups", lambda: tuple(deployment.groups()))
    clusters = _clusters(deployment, ports_of, _wanted(served, asked), groups, queue_arns_of(settings))
    first = ports_of(clusters[0].name) if clusters else None
    return Facts(
        now=now,
        identity=identity,
        asked=asked,
        serves=None if served is None else tuple(one.name for one in served),
        concurrency=read("lambda:GetAccountSettings", deployment.concurrency),
        functions=functions,
        network=_network(deployment, functions),
        groups=groups,
        clusters=clusters,
        records=_records(first.claims) if first else NOWHERE,
        running=read("states:ListExecutions", first.executions.all_running) if first else NOWHERE,
        **_parts(deployment, functions, now),
    )


def _network(deployment: Deployment, functions: dict[str, Read[Function | None]]) -> Read[Network | None]:
    """Read the VPC that functions run in, the same for all of them; None where none does."""
    in_vpc = [found for found in functions.values() if isinstance(found, Function) and found.vpc]
    if not in_vpc:
        return None
    vpc, subnets = in_vpc[0].vpc, in_vpc[0].subnets
    return read("ec2:DescribeVpcEndpoints and ec2:DescribeRouteTables", lambda: deployment.network(vpc, subnets))


def _parts(deployment: Deployment, functions: dict[str, Read[Function | None]], now: datetime) -> dict[str, Any]:
    """Read the parts that belong to neither a cluster nor a run."""
    rules = read("events:ListRules", lambda: deployment.rules(expected.PREFIX))
    named = (*expected.RULES, *expected.SCHEDULES)
    there = named if isinstance(rules, Unavailable) else [name for name in named if name in rules]
    since = now - FAILURES_OF
    return {
        "counts": read("cloudwatch:GetMetricData", lambda: deployment.counts(tuple(functions), now - ERRORS_OF, now)),
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
        "oldest_message": read("cloudwatch:GetMetricData", lambda: deployment.oldest_message(expected.QUEUE, now)),
        "table": read("dynamodb:DescribeTable", lambda: deployment.table(expected.TABLE)),
        "rules": rules,
        "targets": read_each(there, "events:ListTargetsByRule", lambda name: tuple(deployment.targets(name))),
        "alarms": read("cloudwatch:DescribeAlarms", lambda: deployment.alarms(expected.PREFIX)),
    }


def _wanted(served: tuple[Served, ...] | None, asked: str | None) -> tuple[tuple[str, Served | None], ...]:
    """Return the clusters to read. One that the deployment does not serve is skipped: it has nothing of Leeward."""
    if served is None:
        return ((asked, None),) if asked else ()
    return tuple((one.name, one) for one in served if asked in {None, one.name})


def _clusters(
    deployment: Deployment,
    ports_of: PortsOf,
    wanted: tuple[tuple[str, Served | None], ...],
    groups: Read[tuple[Group, ...]],
    queue_arns: frozenset[str],
) -> tuple[InspectedCluster, ...]:
    known = () if isinstance(groups, Unavailable) else groups
    return tuple(
        inspect_cluster(name, served, deployment, ports_of(name), known, queue_arns) for name, served in wanted
    )


def _records(claims: Claims) -> Read[tuple[TerminationRecord, ...]]:
    def look() -> tuple[TerminationRecord, ...]:
        names = claims.open_instances()
        found = claims.read_all(names) if names else {}
        return tuple(record for record in found.values() if record.status is Status.OPEN)

    return read("dynamodb:Query and dynamodb:BatchGetItem", look)


def environment(functions: Iterable[Read[Function | None]]) -> dict[str, str]:
    """Return the environment of the first function that could be read; empty where none could."""
    for found in functions:
        if found is not None and not isinstance(found, Unavailable) and found.environment.get("CLUSTERS"):
            return dict(found.environment)
    return {}


def clusters_of(settings: dict[str, str]) -> tuple[Served, ...] | None:
    """Return the clusters, or None where the setting is missing or no list of clusters."""
    try:
        listed = json.loads(settings.get("CLUSTERS", ""))
        return tuple(Served(name=str(raw["name"]), role=str(raw.get("actRole") or "")) for raw in listed)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def queue_arns_of(settings: dict[str, str]) -> frozenset[str]:
    """Return the targets that a hook of Leeward may notify."""
    try:
        topics = [str(topic) for topic in json.loads(settings.get("HOOK_TOPICS") or "[]")]
    except (ValueError, TypeError):
        topics = []
    return frozenset(topics) | ({settings["QUEUE_ARN"]} if settings.get("QUEUE_ARN") else frozenset())
