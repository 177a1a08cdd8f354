"""Ports of `leeward doctor` to a deployment, beside the ports that every package has. They are read-only.

Each method may raise a LeewardError; a missing object is None or empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.doctor.facts import (
        Binding,
        CallerIdentity,
        ClusterNetwork,
        ClusterRole,
        Counts,
        DeploymentAlarm,
        EksCluster,
        EventSource,
        FailedExecution,
        Function,
        MessageAge,
        Queue,
        RecordTable,
        TopicKey,
    )
    from leeward.model.concurrency import Concurrency
    from leeward.model.group import Group


class Rbac(Protocol):
    """RBAC and version of one cluster: the permissions that it grants."""

    def version(self) -> str:
        """Return the API server's version, such as v1.33.1."""
        ...

    def cluster_role(self, name: str) -> ClusterRole | None:
        """Return one ClusterRole."""
        ...

    def binding(self, name: str) -> Binding | None:
        """Return one ClusterRoleBinding."""
        ...

    def aws_auth(self) -> str | None:
        """Return `mapRoles` of the ConfigMap kube-system/aws-auth."""
        ...


class DeploymentReader(Protocol):
    """Everything that a deployment consists of, read with the caller's credentials."""

    def identity(self) -> CallerIdentity:
        """Return the caller, account and Region. Raises AccessDeniedError without credentials, InvalidInputError
        without a Region.
        """
        ...

    def concurrency(self) -> Concurrency:
        """Return Lambda's concurrent executions of the account and Region."""
        ...

    def network(self, vpc: str, subnets: Iterable[str]) -> ClusterNetwork:
        """Return the VPC's endpoints, and whether all of these subnets have a route out."""
        ...

    def function(self, name: str) -> Function | None:
        """Return one function."""
        ...

    def accounts(self, function: str) -> Mapping[str, str]:
        """Return what the function answers: cluster -> why it cannot act in the cluster's account, empty if it can."""
        ...

    def counts(self, functions: Iterable[str], since: datetime, now: datetime) -> Mapping[str, Counts]:
        """Return the errors and throttles of each function since then."""
        ...

    def message_age(self, queue: str, now: datetime) -> MessageAge:
        """Return the ages of the oldest messages of a queue that fn interruption reads."""
        ...

    def machine(self, name: str) -> str | None:
        """Return the status of a state machine."""
        ...

    def failures(self, machine: str, since: datetime) -> Sequence[FailedExecution]:
        """Return executions that failed or timed out since then, newest first; the newest with its error and cause."""
        ...

    def sources(self, function: str) -> Sequence[EventSource]:
        """Return the function's event source mappings."""
        ...

    def queue(self, name: str) -> Queue | None:
        """Return one queue."""
        ...

    def table(self, name: str) -> RecordTable | None:
        """Return one table."""
        ...

    def rules(self, prefix: str) -> Mapping[str, bool]:
        """Return the rules of the default bus and of the webhooks' bus: name -> enabled."""
        ...

    def targets(self, rule: str) -> Sequence[str]:
        """Return the ARNs of a rule's targets."""
        ...

    def alarms(self, prefix: str) -> Mapping[str, DeploymentAlarm]:
        """Return the alarms by name."""
        ...

    def topic_key(self, topic: str) -> TopicKey | None:
        """Return the encryption of an SNS topic."""
        ...

    def raw_subscriptions(self, topic: str, queue: str) -> Sequence[str]:
        """Return the ARNs of the topic's subscriptions that deliver raw messages to the queue with this ARN."""
        ...

    def groups(self) -> Sequence[Group]:
        """Return every Auto Scaling group of the account and Region, also those whose tags are wrong."""
        ...

    def tags(self, ids: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the tags of EC2 resources by id; one without tags, or that does not exist, is absent."""
        ...

    def cluster(self, name: str) -> EksCluster | None:
        """Return the cluster as EKS describes it."""
        ...

    def entry(self, cluster: str, role: str) -> Sequence[str] | None:
        """Return the Kubernetes groups of the role's access entry."""
        ...

    def rbac(self, cluster: str) -> Rbac:
        """Return the cluster's `Rbac` without calling its API yet."""
        ...
