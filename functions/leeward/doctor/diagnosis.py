"""All checks, in the order in which they are reported: the outermost first, since failures there explain the rest."""

from collections.abc import Callable, Iterable, Iterator

from leeward.doctor.checks import (
    account,
    accounts,
    cluster_roles,
    clusters,
    events,
    functions,
    groups,
    hooks,
    policies,
    queues,
    runs,
    templates,
    topics,
)
from leeward.doctor.facts import Facts, InspectedCluster
from leeward.doctor.finding import Finding, State

OfDeployment = Callable[[Facts], Iterator[Finding]]
OfCluster = Callable[[Facts, InspectedCluster], Iterator[Finding]]


def _alone(check: Callable[[InspectedCluster], Iterator[Finding]]) -> OfCluster:
    """Adapt a check that needs only the cluster."""
    return lambda _, cluster: check(cluster)


DEPLOYMENT: tuple[OfDeployment, ...] = (
    functions.functions,
    functions.version,
    functions.errors,
    functions.endpoints,
    functions.machines,
    functions.table,
    events.rules,
    events.schedules,
    events.sources,
    queues.queues,
    queues.policy,
    queues.age,
    queues.dead_letters,
    topics.raw_delivery,
    events.alarms,
    events.actions,
    topics.keys,
    runs.executions,
    runs.records,
    runs.upgrades,
    runs.disruptions,
    clusters.served,
    accounts.roles,
)
CLUSTER: tuple[OfCluster, ...] = (
    _alone(clusters.described),
    _alone(clusters.access),
    _alone(clusters.api_server),
    _alone(cluster_roles.roles),
    _alone(cluster_roles.bindings),
    _alone(cluster_roles.surge),
    clusters.sync,
    clusters.reach,
    _alone(clusters.other_deployments),
    clusters.left_behind_taints,
    _alone(policies.written),
    _alone(policies.selection),
    _alone(policies.switches),
    _alone(groups.tags),
    _alone(templates.template_tags),
    _alone(hooks.hooks),
    _alone(groups.processes),
    _alone(groups.refreshes),
    groups.lifecycle,
    groups.launches,
    _alone(groups.capacity_units),
)


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """Return every finding. Where nothing is deployed that is one sentence, not one for each part."""
    who = (*account.credentials(facts), *account.concurrency(facts))
    if facts.nothing_deployed:
        return (*who, account.nothing_deployed(facts.identity))
    of_deployment = (found for check in DEPLOYMENT for found in check(facts))
    of_clusters = (found for cluster in facts.clusters for check in CLUSTER for found in check(facts, cluster))
    return (*who, *of_deployment, *of_clusters)


def healthy(findings: Iterable[Finding]) -> bool:
    """Return whether nothing has failed; warnings, and what could not be read, are for people to judge."""
    return all(found.state is not State.FAILED for found in findings)
