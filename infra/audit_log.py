"""Subscription to a cluster's audit log, where its owner keeps one: a deleted Node is noticed in seconds instead of
within a minute.

EKS writes it to CloudWatch Logs (EKS user guide, "Send control plane logs to CloudWatch Logs"). A subscription calls
the minute reconciler, which reads the state itself and neither needs nor trusts the log's content.
"""

from aws_cdk import aws_logs as logs
from aws_cdk import aws_logs_destinations as destinations
from constructs import Construct

from infra.function import LeewardFunction
from infra.settings import Cluster

DELETED = '{ ($.stage = "ResponseComplete") && ($.verb = "delete") && ($.objectRef.resource = "nodes") }'


def hear_deletions(scope: Construct, cluster: Cluster, function: LeewardFunction) -> None:
    """Call the function when a Node of the cluster was deleted. The log group must exist: EKS creates it when the audit
    log is enabled."""
    part = cluster.name.capitalize()
    group = logs.LogGroup.from_log_group_name(scope, f"{part}Audit", f"/aws/eks/{cluster.name}/cluster")
    logs.SubscriptionFilter(
        scope,
        f"{part}Deletions",
        log_group=group,
        destination=destinations.LambdaDestination(function.function),
        filter_pattern=logs.FilterPattern.literal(DELETED),
        filter_name=function.names.subscription_filter,
    )
